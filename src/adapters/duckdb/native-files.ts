/**
 * The native libraries inside the binary. Here, in the source tree, there are none: `bun run` uses the files of
 * node_modules and the C++ runtime of the machine. scripts/build-binary.ts replaces this whole module with one
 * that names the embedded files, so it stays this small and imports nothing.
 */
export interface NativeFile {
  /** File name; the loader matches libraries by SONAME, so it is only for people. */
  readonly name: string;
  /** Path inside the binary. */
  readonly path: string;
  /** Bytes. */
  readonly size: number;
  /** Lower-case hex. */
  readonly sha256: string;
  /** `quickHash` of the content: cheap enough to check at every start. */
  readonly quick: string;
}

/** In the order in which they must be loaded: libgcc_s, libstdc++, libduckdb. Empty outside a compiled binary. */
export const NATIVE_FILES: readonly NativeFile[] = [];

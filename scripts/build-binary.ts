/**
 * Builds `twg` as one file for this machine: the program as bytecode, libduckdb and the C++ runtime that it needs.
 *
 *   bun scripts/build-binary.ts [--out dist/twg]
 *
 * The result needs glibc alone (docs/decisions/0003-static-linking.md).
 */
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { quickHash } from "../src/adapters/duckdb/embedded.ts";
import type { NativeFile } from "../src/adapters/duckdb/native-files.ts";

const repo = resolve(import.meta.dir, "..");

export interface BuildOptions {
  /** Folder from which entry points are named; a Worker is addressed as `./src/lane.ts` below it. */
  readonly root: string;
  /** The first one is run. Relative to `root`. */
  readonly entrypoints: readonly string[];
  readonly outfile: string;
}

export interface BuiltBinary {
  readonly outfile: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly natives: readonly NativeFile[];
}

/** Throws an Error with a message for people if a library or an entry point is missing or the bundler fails. */
export async function buildBinary(options: BuildOptions): Promise<BuiltBinary> {
  const entrypoints = options.entrypoints.map((e) => join(options.root, e));
  for (const e of entrypoints) if (!existsSync(e)) throw new Error(`entry point ${e} is missing`);
  const natives = await Promise.all(nativeLibraries().map(describe));
  mkdirSync(dirname(options.outfile), { recursive: true });
  // Compiled beside its place, then moved: a running twg keeps its old file. The path becomes part of the content,
  // so it holds no process id or time.
  const staging = join(dirname(options.outfile), ".build");
  const built = join(staging, "twg");
  try {
    const result = await Bun.build({
      entrypoints,
      root: options.root,
      target: "bun",
      format: "esm",
      minify: true,
      splitting: true,
      bytecode: true,
      sourcemap: "none",
      define: { "process.env.NODE_ENV": JSON.stringify("production") },
      plugins: [embedNatives(natives)],
      compile: { outfile: built, autoloadDotenv: false, autoloadBunfig: false },
    });
    for (const log of result.logs) console.error(String(log));
    if (!result.success) throw new Error("the bundler failed");
    renameSync(built, options.outfile);
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
  const bytes = statSync(options.outfile).size;
  return { outfile: options.outfile, bytes, sha256: await sha256(options.outfile), natives };
}

/** Replaces src/adapters/duckdb/native-files.ts by one that names the embedded files. */
function embedNatives(natives: readonly NativeFile[]): Bun.BunPlugin {
  const lines = natives.map(
    (n, i) => `import file${i} from ${JSON.stringify(n.path)} with { type: "file" };`,
  );
  const entries = natives.map((n, i) => `{ ...${JSON.stringify(n)}, path: file${i} }`);
  const contents = `${lines.join("\n")}\nexport const NATIVE_FILES = [${entries.join(", ")}];\n`;
  return {
    name: "embed-natives",
    setup(build) {
      build.onLoad({ filter: /adapters\/duckdb\/native-files\.ts$/ }, () => ({ contents, loader: "js" }));
    },
  };
}

/** In load order. */
function nativeLibraries(): { name: string; path: string }[] {
  const duckdb = `@duckdb/node-bindings-linux-${process.arch}/libduckdb.so`;
  return [
    { name: "libgcc_s.so.1", path: systemLibrary("libgcc_s.so.1", "libgcc-s1") },
    { name: "libstdc++.so.6", path: systemLibrary("libstdc++.so.6", "libstdc++6") },
    { name: "libduckdb.so", path: Bun.resolveSync(duckdb, repo) },
  ];
}

/** The real file behind a SONAME: asks the compiler if there is one, else the loader's cache, else the usual folders. */
function systemLibrary(soname: string, debianPackage: string): string {
  const triplet = process.arch === "arm64" ? "aarch64-linux-gnu" : "x86_64-linux-gnu";
  const folders = [`/usr/lib/${triplet}`, `/lib/${triplet}`, "/usr/lib64", "/lib64", "/usr/lib", "/lib"];
  const candidates = [gccKnows(soname), ldconfigKnows(soname), ...folders.map((f) => join(f, soname))];
  const found = candidates.find((c) => c?.startsWith("/") && existsSync(c));
  if (found === undefined || found === null)
    throw new Error(
      `${soname} is not on this machine: install the package ${debianPackage} (apt-get install ${debianPackage})`,
    );
  return realpathSync(found);
}

/** Prints the bare name again if it knows no file of it. */
function gccKnows(soname: string): string | null {
  const gcc = Bun.which("gcc");
  return gcc === null
    ? null
    : Bun.spawnSync([gcc, `-print-file-name=${soname}`])
        .stdout.toString()
        .trim();
}

function ldconfigKnows(soname: string): string | null {
  const ldconfig = Bun.which("ldconfig") ?? Bun.which("/sbin/ldconfig");
  if (ldconfig === null) return null;
  const abi = process.arch === "arm64" ? "AArch64" : "x86-64";
  const lines = Bun.spawnSync([ldconfig, "-p"]).stdout.toString().split("\n");
  const line = lines.find((l) => l.trim().startsWith(`${soname} `) && l.includes(abi));
  return line?.split("=>")[1]?.trim() ?? null;
}

async function describe(library: { name: string; path: string }): Promise<NativeFile> {
  const fd = openSync(library.path, "r");
  const quick = quickHash(fd);
  closeSync(fd);
  return { ...library, size: statSync(library.path).size, sha256: await sha256(library.path), quick };
}

async function sha256(path: string): Promise<string> {
  const hash = new Bun.CryptoHasher("sha256");
  for await (const piece of Bun.file(path).stream()) hash.update(piece);
  return hash.digest("hex");
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { out: { type: "string", default: "dist/twg" } } });
  const built = await buildBinary({
    root: repo,
    entrypoints: ["src/main.ts", "src/lane.ts"],
    outfile: resolve(repo, values.out),
  });
  const line = (name: string, bytes: number, sha: string) =>
    console.log(`${name.padEnd(16)} ${(bytes / 1e6).toFixed(1).padStart(6)} MB  sha256 ${sha}`);
  for (const n of built.natives) line(n.name, n.size, n.sha256);
  line(values.out, built.bytes, built.sha256);
}

if (import.meta.main) {
  try {
    await main();
  } catch (e) {
    console.error(`build-binary: ${e instanceof Error ? e.message : String(e)}`);
    process.exit(1);
  }
}

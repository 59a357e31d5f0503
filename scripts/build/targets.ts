/** The machines that twg is built for, and what a binary for each is made of. */

export interface Target {
  /** Also the end of the file's name: `twg-linux-x64`. */
  readonly name: string;
  /** As Node and Bun name processors. */
  readonly arch: "x64" | "arm64";
  readonly libc: "glibc" | "musl";
  /** What Bun's compiler calls it. */
  readonly bunTarget: Bun.Build.CompileTarget;
  /** Package whose `bin/bun` the program is put into. */
  readonly runtime: string;
  /** Package of libduckdb.so. */
  readonly duckdb: string;
  /** Package of the CRC-32C addon, and the file in it. */
  readonly crc32: string;
  readonly crc32File: string;
}

function target(arch: "x64" | "arm64", libc: "glibc" | "musl"): Target {
  const musl = libc === "musl" ? "-musl" : "";
  const abi = libc === "musl" ? "musl" : "gnu";
  return {
    name: `linux-${arch}${musl}`,
    arch,
    libc,
    bunTarget: `bun-linux-${arch}${musl}` as Bun.Build.CompileTarget,
    runtime: `@oven/bun-linux-${arch === "arm64" ? "aarch64" : arch}${musl}`,
    duckdb: `@duckdb/node-bindings-linux-${arch}${musl}`,
    crc32: `@node-rs/crc32-linux-${arch}-${abi}`,
    crc32File: `crc32.linux-${arch}-${abi}.node`,
  };
}

export const TARGETS: readonly Target[] = [
  target("x64", "glibc"),
  target("arm64", "glibc"),
  target("x64", "musl"),
  target("arm64", "musl"),
];

/** The machine that this runs on. */
export function hostTarget(): Target {
  const libc = runsOnMusl() ? "musl" : "glibc";
  const found = TARGETS.find((t) => t.arch === process.arch && t.libc === libc);
  if (process.platform === "linux" && found !== undefined) return found;
  throw new Error(`twg is not built for ${process.platform} on ${process.arch}`);
}

/** Throws an Error that lists the names there are. */
export function targetNamed(name: string): Target {
  const found = TARGETS.find((t) => t.name === name);
  if (found !== undefined) return found;
  throw new Error(`no target ${name}; there are ${TARGETS.map((t) => t.name).join(", ")}`);
}

/** A Bun of glibc says which; one of musl says nothing. */
function runsOnMusl(): boolean {
  const report = process.report?.getReport() as { header?: { glibcVersionRuntime?: string } } | undefined;
  return report?.header !== undefined && report.header.glibcVersionRuntime === undefined;
}

/**
 * The file tree of a container image: twg, its C library, and nothing else. Dockerfile.distroless copies what this
 * makes, and test/machines runs it, so that what is tried is what is shipped.
 *
 *   bun scripts/build/image-root.ts --out FOLDER [--target linux-x64]
 */
import { chmodSync, copyFileSync, existsSync, mkdirSync, realpathSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { buildBinary } from "../build-binary.ts";
import { tripletOf, Unavailable, unpackedDebs } from "./parts.ts";
import { hostTarget, type Target, targetNamed } from "./targets.ts";

/** A file of the image: from where, and to where below its root. */
export interface ImageFile {
  readonly from: string;
  readonly to: string;
}

/** Owner of the folders that are written to; whoever runs as another user mounts volumes of their own. */
export const IMAGE_USER = 65_532;
const PROGRAM = "usr/local/bin/twg";

/** What the binary and its libraries ask the loader for, and what glibc itself loads to resolve names. */
export const GLIBC_PARTS: readonly string[] = [
  "libc.so.6",
  "libm.so.6",
  "libpthread.so.0",
  "libdl.so.2",
  "librt.so.1",
  "libresolv.so.2",
  "libnss_dns.so.2",
  "libnss_files.so.2",
];

/** Of this machine, or of Debian's cross package for another processor. Throws `Unavailable`. */
export async function glibcFiles(target: Target): Promise<ImageFile[]> {
  const triplet = tripletOf(target);
  const native = hostTarget().name === target.name;
  const debian = target.arch === "arm64" ? "arm64" : "amd64";
  const folder = native
    ? [`/lib/${triplet}`, "/lib64", "/lib"].find((f) => existsSync(join(f, "libc.so.6")))
    : join(await unpackedDebs(`libc6-${debian}`, [`libc6-${debian}-cross`]), `usr/${triplet}/lib`);
  if (folder === undefined) throw new Unavailable("this machine's glibc is in no folder that is known");
  const loader = target.arch === "arm64" ? "lib/ld-linux-aarch64.so.1" : "lib64/ld-linux-x86-64.so.2";
  const from = native ? `/${loader}` : join(folder, loader.slice(loader.lastIndexOf("/") + 1));
  return [
    { from, to: loader },
    ...GLIBC_PARTS.map((name) => ({ from: join(folder, name), to: `lib/${triplet}/${name}` })),
  ];
}

/** `binary` and the files of its C library below `root`, which is made. */
export function layImage(root: string, binary: string, libc: readonly ImageFile[]): void {
  for (const { from, to } of [{ from: binary, to: PROGRAM }, ...libc]) {
    const path = join(root, to);
    mkdirSync(dirname(path), { recursive: true });
    copyFileSync(realpathSync(from), path);
    chmodSync(path, 0o755);
  }
  for (const d of ["etc/twg", "data", "var/lib/twg", "tmp", "proc", "dev"])
    mkdirSync(join(root, d), { recursive: true });
  chmodSync(join(root, "tmp"), 0o1777);
  const twg = `${IMAGE_USER}:${IMAGE_USER}`;
  writeFileSync(
    join(root, "etc/passwd"),
    `root:x:0:0::/:/sbin/nologin\ntwg:x:${twg}::/var/lib/twg:/sbin/nologin\n`,
  );
  writeFileSync(join(root, "etc/group"), `root:x:0:\ntwg:x:${IMAGE_USER}:\n`);
  writeFileSync(join(root, "etc/nsswitch.conf"), "hosts: files dns\n");
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { out: { type: "string" }, target: { type: "string" } } });
  if (values.out === undefined) throw new Error("--out FOLDER is missing");
  const repo = resolve(import.meta.dir, "../..");
  const target = values.target === undefined ? hostTarget() : targetNamed(values.target);
  if (target.libc !== "glibc") throw new Error("there is no image of musl: docs/decisions/0012-binaries.md");
  const outfile = join(repo, "dist", `twg-${target.name}`);
  const { sha256 } = await buildBinary({
    root: repo,
    entrypoints: ["src/main.ts", "src/lane.ts"],
    outfile,
    target,
  });
  layImage(resolve(values.out), outfile, await glibcFiles(target));
  console.log(`${values.out}: twg for ${target.name}, sha256 ${sha256}`);
}

if (import.meta.main) {
  try {
    await main();
  } catch (e) {
    console.error(`image-root: ${e instanceof Error ? e.message : String(e)}`);
    process.exit(1);
  }
}

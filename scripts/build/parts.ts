/**
 * Fetches what a binary for another machine is made of into .cache/: npm packages by the lock file in pins/ (Bun checks
 * the hashes), and for glibc the C++ runtime from Debian's cross packages (apt checks the signatures).
 */
import { cpSync, existsSync, mkdirSync, readdirSync, realpathSync, renameSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { hostTarget, type Target } from "./targets.ts";

const repo = resolve(import.meta.dir, "../..");
const cache = join(repo, ".cache/build");
const pins = join(import.meta.dir, "pins");

/** Absolute paths. */
export interface Parts {
  /** The Bun that the program is put into; null means the one that builds. */
  readonly runtime: string | null;
  readonly crc32: string;
  /** Libraries to embed, in load order. */
  readonly libraries: readonly { readonly name: string; readonly path: string }[];
}

/** A part that this machine cannot get: a reason to skip a target, not to fail. */
export class Unavailable extends Error {}

/** Throws `Unavailable` if something that the target needs can't be had here. */
export async function partsOf(target: Target): Promise<Parts> {
  const host = hostTarget();
  const native = host.name === target.name;
  const modules = native ? join(repo, "node_modules") : await pinnedPackages();
  const file = (path: string) => {
    const whole = join(modules, path);
    if (!existsSync(whole)) throw new Unavailable(`${path} is not installed`);
    return realpathSync(whole);
  };
  return {
    runtime: native ? null : file(`${target.runtime}/bin/bun`),
    crc32: file(`${target.crc32}/${target.crc32File}`),
    libraries: [
      ...(await cppRuntime(target, native)),
      { name: "libduckdb.so", path: file(`${target.duckdb}/libduckdb.so`) },
    ],
  };
}

/** The folder of node_modules with the packages of all targets. Installed once for each content of pins/. */
async function pinnedPackages(): Promise<string> {
  const lock = await Bun.file(join(pins, "bun.lock")).text();
  const folder = join(cache, `packages-${Bun.hash(lock).toString(16)}`);
  const modules = join(folder, "node_modules");
  if (existsSync(modules)) return modules;
  const part = `${folder}.${process.pid}`;
  cpSync(pins, part, { recursive: true });
  const install = ["install", "--frozen-lockfile", "--ignore-scripts", "--cpu=*", "--os=*"];
  const done = Bun.spawnSync([process.execPath, ...install], { cwd: part, stdout: "pipe", stderr: "pipe" });
  if (!done.success) {
    rmSync(part, { recursive: true, force: true });
    const said = done.stderr.toString().trim().split("\n").at(-1) ?? "";
    throw new Unavailable(`the packages of other machines cannot be installed (${said})`);
  }
  settle(part, folder);
  return modules;
}

/**
 * A binary of glibc carries libgcc_s and libstdc++, which a distroless image lacks. One of musl carries neither: Bun's
 * own program needs musl's libstdc++ before any of ours runs.
 */
async function cppRuntime(target: Target, native: boolean): Promise<{ name: string; path: string }[]> {
  if (target.libc === "musl") return [];
  const find = native ? onThisMachine(target) : await inCrossPackages(target);
  return ["libgcc_s.so.1", "libstdc++.so.6"].map((name) => ({ name, path: find(name) }));
}

/** GNU's name of the machine, which Debian's folders carry. */
export function tripletOf(target: Target): string {
  return target.arch === "arm64" ? "aarch64-linux-gnu" : "x86_64-linux-gnu";
}

/** The real file behind a SONAME: asks the compiler if there is one, else the loader's cache, else the usual folders. */
function onThisMachine(target: Target): (soname: string) => string {
  const triplet = tripletOf(target);
  const folders = [`/usr/lib/${triplet}`, `/lib/${triplet}`, "/usr/lib64", "/lib64", "/usr/lib", "/lib"];
  return (soname) => {
    const candidates = [gccKnows(soname), ldconfigKnows(soname), ...folders.map((f) => join(f, soname))];
    const found = candidates.find((c) => c?.startsWith("/") && existsSync(c));
    const debian = soname === "libgcc_s.so.1" ? "libgcc-s1" : "libstdc++6";
    if (found === undefined || found === null)
      throw new Error(
        `${soname} is not on this machine: install the package ${debian} (apt-get install ${debian})`,
      );
    return realpathSync(found);
  };
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

/** Installed ones first; else the packages are fetched and unpacked into .cache/, which needs no rights. */
async function inCrossPackages(target: Target): Promise<(soname: string) => string> {
  const triplet = tripletOf(target);
  const debian = target.arch === "arm64" ? "arm64" : "amd64";
  const names = ["libgcc-s1", "libstdc++6"].map((n) => `${n}-${debian}-cross`);
  const installed = `/usr/${triplet}/lib`;
  const lib = existsSync(join(installed, "libstdc++.so.6"))
    ? installed
    : join(await unpackedDebs(`cross-${debian}`, names), `usr/${triplet}/lib`);
  return (soname) => {
    const path = join(lib, soname);
    if (!existsSync(path)) throw new Unavailable(`${names.join(" and ")} hold no ${soname}`);
    return realpathSync(path);
  };
}

/** `aptOptions` choose another release or processor. Kept in .cache/build/`name`; throws `Unavailable`. */
export async function unpackedDebs(
  name: string,
  packages: readonly string[],
  aptOptions: readonly string[] = [],
): Promise<string> {
  const folder = join(cache, name);
  if (existsSync(folder)) return folder;
  for (const tool of ["apt-get", "dpkg-deb"])
    if (Bun.which(tool) === null) throw new Unavailable(`${packages.join(", ")}: there is no ${tool} here`);
  const part = `${folder}.${process.pid}`;
  const debs = `${part}.debs`;
  mkdirSync(part, { recursive: true });
  mkdirSync(debs, { recursive: true });
  try {
    const said = download(debs, packages, aptOptions);
    const files = readdirSync(debs).filter((f) => f.endsWith(".deb"));
    if (files.length < packages.length)
      throw new Unavailable(`apt-get cannot fetch ${packages.join(", ")} (${said})`);
    for (const f of files) {
      const done = Bun.spawnSync(["dpkg-deb", "-x", join(debs, f), part], { stderr: "pipe" });
      if (!done.success) throw new Unavailable(`${f}: ${done.stderr.toString().trim()}`);
    }
    settle(part, folder);
  } finally {
    for (const f of [part, debs]) rmSync(f, { recursive: true, force: true });
  }
  return folder;
}

/** What apt said last. A machine whose lists are missing or old gets them once. */
function download(folder: string, packages: readonly string[], options: readonly string[]): string {
  const apt = (...args: string[]) =>
    Bun.spawnSync(["apt-get", "-q", "-o", "APT::Sandbox::User=root", ...options, ...args], {
      cwd: folder,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      timeout: 120_000,
    });
  let done = apt("download", ...packages);
  if (!done.success) {
    apt("update");
    done = apt("download", ...packages);
  }
  return done.stderr.toString().trim().split("\n").at(-1) ?? "";
}

/** Two builds may fetch the same at once: the first one's folder stays. */
function settle(part: string, folder: string): void {
  try {
    renameSync(part, folder);
  } catch (e) {
    if (!existsSync(folder)) throw e;
    rmSync(part, { recursive: true, force: true });
  }
}

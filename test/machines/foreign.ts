/**
 * What this machine needs to run binaries of others: qemu's user emulation, and a musl with its C++ runtime. Fetched
 * into .cache/build, nothing is installed. Throws `Unavailable` with the reason where something cannot be had.
 */
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { ImageFile } from "../../scripts/build/image-root.ts";
import { Unavailable, unpackedDebs } from "../../scripts/build/parts.ts";
import type { Target } from "../../scripts/build/targets.ts";

const cache = resolve(import.meta.dir, "../../.cache/build");

/** A static qemu that runs programs of the target's processor. */
export async function emulator(target: Target): Promise<string> {
  const machine = target.arch === "arm64" ? "aarch64" : "x86_64";
  const folder = await unpackedDebs("qemu-user-static", ["qemu-user-static"]);
  return join(folder, `usr/bin/qemu-${machine}-static`);
}

/** Older ones than 1.2.4 cannot load Bun (it has relative relocations, DT_RELR); Debian 12 has 1.2.3. */
const MUSL_RELEASE = "trixie";

/** What an Alpine image with libstdc++ holds of it. */
export async function muslFiles(target: Target): Promise<ImageFile[]> {
  const machine = target.arch === "arm64" ? "aarch64" : "x86_64";
  const musl = join(await muslPackage(target), `usr/lib/${machine}-linux-musl/libc.so`);
  const runtime = await muslRuntime(machine);
  const find = (start: string) => {
    const name = readdirSync(runtime).find((f) => f.startsWith(start));
    if (name === undefined) throw new Unavailable(`no ${start} for musl in ${runtime}`);
    return name;
  };
  const gcc = find("libgcc_s-");
  return [
    { from: musl, to: `lib/ld-musl-${machine}.so.1` },
    { from: musl, to: `lib/libc.musl-${machine}.so.1` },
    { from: join(runtime, find("libstdc++-")), to: "usr/lib/libstdc++.so.6" },
    // libstdc++ asks for it by the name that the wheel's maker gave it, libduckdb by its own.
    { from: join(runtime, gcc), to: `usr/lib/${gcc}` },
    { from: join(runtime, gcc), to: "usr/lib/libgcc_s.so.1" },
  ];
}

/** From a later Debian than this one may be, with lists of packages of its own: apt's settings stay as they are. */
async function muslPackage(target: Target): Promise<string> {
  const debian = target.arch === "arm64" ? "arm64" : "amd64";
  const state = join(cache, `apt-${MUSL_RELEASE}-${debian}`);
  for (const d of ["lists/partial", "archives/partial"]) mkdirSync(join(state, d), { recursive: true });
  const mirror = debianMirror();
  const keys = "/usr/share/keyrings/debian-archive-keyring.gpg";
  writeFileSync(join(state, "sources.list"), `deb [signed-by=${keys}] ${mirror} ${MUSL_RELEASE} main\n`);
  writeFileSync(join(state, "status"), "");
  const settings = {
    "Dir::Etc::SourceList": join(state, "sources.list"),
    "Dir::Etc::SourceParts": "/dev/null",
    "Dir::State::Lists": join(state, "lists"),
    "Dir::State::Status": join(state, "status"),
    "Dir::Cache": state,
    "APT::Architecture": debian,
    "APT::Architectures": debian,
    "Acquire::Languages": "none",
    "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
  };
  const options = Object.entries(settings).flatMap(([k, v]) => ["-o", `${k}=${v}`]);
  return unpackedDebs(`musl-${debian}`, ["musl"], options);
}

/** The one that this machine's own apt uses. */
function debianMirror(): string {
  const done = Bun.spawnSync(["apt-get", "indextargets", "--format", "$(REPO_URI)"], { stderr: "ignore" });
  const uris = done.success ? done.stdout.toString().split("\n") : [];
  const found = uris.find((u) => /\/debian\/?$/.test(u));
  if (found === undefined) throw new Unavailable("apt has no Debian mirror here");
  return found;
}

/**
 * Wheels for musl carry the libstdc++ and libgcc_s that they were built with, Alpine's: this one is small. pip checks
 * its hash.
 */
const WHEEL = "contourpy==1.3.1";
const WHEEL_HASHES: Readonly<Record<string, string>> = {
  x86_64: "61332c87493b00091423e747ea78200659dc09bdf7fd69edd5e98cef5d3e9a8d",
  aarch64: "1bf98051f1045b15c87868dbaea84f92408337d4f81d0e449ee41920ea121d3b",
};

async function muslRuntime(machine: "x86_64" | "aarch64"): Promise<string> {
  const folder = join(cache, `musl-runtime-${machine}`);
  const inside = join(folder, "contourpy.libs");
  if (existsSync(inside)) return inside;
  const part = `${folder}.${process.pid}`;
  mkdirSync(part, { recursive: true });
  try {
    writeFileSync(join(part, "r.txt"), `${WHEEL} --hash=sha256:${WHEEL_HASHES[machine]}\n`);
    const script = `python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: \
      --platform musllinux_1_2_${machine} --python-version 3.12 --require-hashes -r r.txt -d . &&
      python3 -m zipfile -e contourpy-*.whl .`;
    const done = Bun.spawnSync(["bash", "-c", script], { cwd: part, stdout: "pipe", stderr: "pipe" });
    if (!done.success) {
      const said = done.stderr.toString().trim().split("\n").at(-1);
      throw new Unavailable(`the C++ runtime of musl cannot be fetched (${said})`);
    }
    if (!existsSync(folder)) renameSync(part, folder);
  } finally {
    rmSync(part, { recursive: true, force: true });
  }
  return inside;
}

/**
 * A root folder that holds glibc and nothing else, as in a distroless base image, and a way to run a program
 * inside it. /proc, /dev/null and /dev/urandom are bind-mounted in a mount namespace of the call, so nothing
 * outlives it.
 */
import { copyFileSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";

/** The parts of glibc that the binary and its libraries may ask for, and the loader. */
export const GLIBC_PARTS = [
  "libc.so.6",
  "libm.so.6",
  "libpthread.so.0",
  "libdl.so.2",
  "librt.so.1",
  "ld-linux-x86-64.so.2",
];

export interface RunResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export class BareRoot {
  readonly folder = mkdtempSync(join(tmpdir(), "twg-bare-"));

  constructor() {
    for (const d of ["lib/x86_64-linux-gnu", "lib64", "proc", "dev", "tmp"])
      mkdirSync(join(this.folder, d), { recursive: true });
    for (const f of ["dev/null", "dev/urandom"]) writeFileSync(join(this.folder, f), "");
    for (const part of GLIBC_PARTS) {
      const loader = part.startsWith("ld-");
      const from = loader ? `/lib64/${part}` : `/lib/x86_64-linux-gnu/${part}`;
      copyFileSync(realpathSync(from), join(this.folder, loader ? "lib64" : "lib/x86_64-linux-gnu", part));
    }
  }

  /** Why programs cannot be run here, or null: entering another root needs a mount namespace. */
  static refused(): string | null {
    const probe = Bun.spawnSync(["unshare", ...flags(), "true"], { stderr: "pipe" });
    return probe.success ? null : probe.stderr.toString().trim();
  }

  add(program: string): string {
    const inside = `/${basename(program)}`;
    copyFileSync(program, join(this.folder, inside));
    return inside;
  }

  run(argv: readonly string[], env: Readonly<Record<string, string>> = {}): RunResult {
    const script = `
      set -e
      root=$1; shift
      mount --bind /dev/null "$root/dev/null"
      mount --bind /dev/urandom "$root/dev/urandom"
      mount -t proc proc "$root/proc" 2>/dev/null || mount --rbind /proc "$root/proc"
      exec "$(PATH=$PATH:/usr/sbin:/sbin command -v chroot)" "$root" "$@"`;
    const done = Bun.spawnSync(["unshare", ...flags(), "bash", "-c", script, "bash", this.folder, ...argv], {
      env: { PATH: process.env.PATH ?? "/usr/bin:/bin", ...env },
      stdout: "pipe",
      stderr: "pipe",
      timeout: 60_000,
    });
    return { code: done.exitCode, stdout: done.stdout.toString(), stderr: done.stderr.toString() };
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** As root a mount namespace is enough; anybody else becomes root of a user namespace first. */
function flags(): string[] {
  return process.getuid?.() === 0 ? ["--mount"] : ["--mount", "--user", "--map-root-user"];
}

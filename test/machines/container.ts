/**
 * Runs a program in an image's file tree as a container would: read-only, its own user without rights, a small /tmp,
 * only /data and /etc/twg/twg.toml from outside. The network is this machine's. Mounts live in a mount namespace of
 * the call, so nothing outlives it.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { type ImageFile, layImage } from "../../scripts/build/image-root.ts";

export interface ContainerOptions {
  readonly binary: string;
  readonly libc: readonly ImageFile[];
  /** A static program that runs the image's programs; null: this machine can. */
  readonly emulator: string | null;
}

export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A number that no user of this machine has and no file of the image belongs to. */
const SOME_USER = 1_234_567;
const TMP_SIZE = "64m";

const SCRIPT = `
  set -e
  root=$1 data=$2 config=$3 user=$4; shift 4
  mount --bind "$root" "$root"
  mount -t tmpfs -o mode=755,size=64k none "$root/dev"
  for d in null zero random urandom; do touch "$root/dev/$d"; mount --bind "/dev/$d" "$root/dev/$d"; done
  mount -t proc proc "$root/proc" 2>/dev/null || mount --rbind /proc "$root/proc"
  mount -t tmpfs -o mode=1777,nosuid,nodev,size=${TMP_SIZE} none "$root/tmp"
  mount --bind "$data" "$root/data"
  mount --bind "$config" "$root/etc/twg/twg.toml"
  mount -o remount,bind,ro "$root"
  exec setpriv --no-new-privs "$(PATH=$PATH:/usr/sbin:/sbin command -v chroot)" --userspec="$user:$user" --groups= "$root" "$@"`;

export class Container {
  readonly folder = mkdtempSync(join(tmpdir(), "twg-container-"));
  /** Seen inside as /data; the volume. */
  readonly data: string = join(this.folder, "data");
  readonly #root: string = join(this.folder, "root");
  readonly #config: string = join(this.folder, "twg.toml");
  readonly #program: readonly string[];

  constructor({ binary, libc, emulator }: ContainerOptions) {
    const extra = emulator === null ? [] : [{ from: emulator, to: `usr/bin/${basename(emulator)}` }];
    layImage(this.#root, binary, [...libc, ...extra]);
    writeFileSync(join(this.#root, "etc/twg/twg.toml"), "");
    mkdirSync(this.data);
    const run = Bun.spawnSync(["chown", `${SOME_USER}:${SOME_USER}`, this.data]);
    if (!run.success) throw new Error(run.stderr.toString());
    this.#program = [...extra.map((e) => `/${e.to}`), "/usr/local/bin/twg"];
  }

  /** Why containers cannot be laid here, or null: it takes root, to mount and to become another user. */
  static refused(): string | null {
    if (process.getuid?.() !== 0) return "only root can mount and change its user";
    const probe = Bun.spawnSync(["unshare", "--mount", "setpriv", "--no-new-privs", "true"], {
      stderr: "pipe",
    });
    return probe.success ? null : probe.stderr.toString().trim();
  }

  set config(toml: string) {
    writeFileSync(this.#config, toml);
  }

  spawn(args: readonly string[]): Bun.Subprocess<"ignore", "pipe", "pipe"> {
    const places = [this.#root, this.data, this.#config, String(SOME_USER)];
    return Bun.spawn(
      ["unshare", "--mount", "bash", "-c", SCRIPT, "bash", ...places, ...this.#program, ...args],
      {
        env: { PATH: process.env.PATH ?? "/usr/bin:/bin", CACHE_DIRECTORY: "/var/lib/twg/cache" },
        stdin: "ignore",
        stdout: "pipe",
        stderr: "pipe",
      },
    );
  }

  async run(...args: readonly string[]): Promise<Ran> {
    const child = this.spawn(args);
    const [stdout, stderr] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ]);
    return { code: await child.exited, stdout, stderr };
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

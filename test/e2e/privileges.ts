/** What only root can do, or what root must give up to be refused anything: tests say loudly what they left out. */
import { type Ended, type Pipeline, stream, Twg } from "./twg.ts";

const IS_ROOT = process.getuid?.() === 0;

const WITHOUT = "-dac_override,-dac_read_search";
/** Takes from root the right to pass over file permissions; nobody else has it. */
const CONFINED = IS_ROOT ? ["setpriv", `--bounding-set=${WITHOUT}`, `--inh-caps=${WITHOUT}`] : [];

export function confined(args: readonly string[]): Promise<Ended> {
  return new Twg(args, {}, CONFINED).ended();
}

export function confinedStream(p: Pipeline): Twg {
  return stream(p, { before: CONFINED });
}

/** A small file system of its own, in memory. Null, with a loud line, where we may not mount one. */
export function smallDisk(
  folder: string,
  bytes: number,
): { remove(): void; readOnly(on: boolean): void } | null {
  const mount = (...args: string[]) =>
    Bun.spawnSync(["mount", ...args], { stdout: "ignore", stderr: "pipe" });
  if (!IS_ROOT || !mount("-t", "tmpfs", "-o", `size=${bytes}`, "twg-e2e", folder).success) {
    console.error(
      "SKIP: only root can mount a small file system: a full and a read-only disk were not tried",
    );
    return null;
  }
  return {
    readOnly: (on) => {
      const done = mount("-o", `remount,${on ? "ro" : "rw"}`, folder);
      if (!done.success) throw new Error(`remount: ${done.stderr}`);
    },
    remove: () => void Bun.spawnSync(["umount", "-l", folder]),
  };
}

/** What only root can do, or what root must give up to be refused anything: tests say loudly what they left out. */
import { command, type Ended, Twg } from "./twg.ts";

export const IS_ROOT = process.getuid?.() === 0;

/**
 * Runs twg without the right to pass over file permissions, which root has. Elsewhere that needs nothing.
 */
export function confined(args: readonly string[]): Promise<Ended> {
  if (!IS_ROOT) return command(args);
  const without = "-dac_override,-dac_read_search";
  return new Twg(args, {}, ["setpriv", `--bounding-set=${without}`, `--inh-caps=${without}`]).ended();
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

/** What only root can do, or what root must give up to be refused anything: tests say loudly what they left out. */
import { readFileSync } from "node:fs";
import { type Ended, type Pipeline, stream, Twg } from "./twg.ts";
import { until } from "./until.ts";

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

export interface Elsewhere {
  readonly twg: Twg;
  /** Of twg itself, as this machine sees it. */
  readonly pid: number;
}

/** `twg stream` in a PID namespace of its own. Null, with a loud line, where we may not make one. */
export async function elsewhere(p: Pipeline): Promise<Elsewhere | null> {
  const before = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];
  if (!Bun.spawnSync([...before, "true"], { stdout: "ignore", stderr: "ignore" }).success) {
    console.error("SKIP: only root can make a PID namespace: fencing of another machine was not tried");
    return null;
  }
  const twg = stream(p, { before });
  const children = `/proc/${twg.pid}/task/${twg.pid}/children`;
  const pid = await until("unshare to fork", () => Number(readFileSync(children, "utf8").trim()) || null);
  return { twg, pid };
}

/** A small file system in memory, so that a disk can really be full. Only root can mount one. */
import { chmodSync, mkdirSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { calls, type Place } from "./place.ts";

export interface SmallDisk {
  readonly folder: string;
  /** `full`: next to nothing is free. */
  readonly troubles: Place["troubles"];
  remove(): void;
}

/** Null, with a loud line, where none can be mounted: `folder` is there all the same. */
export function smallDisk(folder: string, bytes: number, say: (text: string) => void): SmallDisk | null {
  mkdirSync(folder, { recursive: true });
  const mount = ["mount", "-t", "tmpfs", "-o", `size=${bytes}`, "twg-torture", folder];
  const isRoot = process.getuid?.() === 0;
  if (!isRoot || !Bun.spawnSync(mount, { stdout: "ignore", stderr: "ignore" }).success) {
    say("SKIP: only root can mount a small file system: a full disk is not tried");
    return null;
  }
  chmodSync(folder, 0o755);
  const remove = () => void Bun.spawnSync(["umount", "-l", folder]);
  process.once("exit", remove);
  const ballast = join(folder, "ballast");
  return {
    folder,
    troubles: {
      full: calls(
        () => fill(folder, ballast),
        () => rmSync(ballast, { force: true }),
      ),
    },
    remove() {
      process.off("exit", remove);
      remove();
    },
  };
}

function fill(folder: string, ballast: string): void {
  const { bavail, bsize } = statfsSync(folder);
  try {
    writeFileSync(ballast, Buffer.alloc(Math.max(0, bavail * bsize - 16 * 1024)));
  } catch {
    // Somebody else took the rest: it is full.
  }
}

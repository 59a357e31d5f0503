/** What the file system says, as one coded Failure that names the path and what to do. */
import type { Code } from "../../core/failure/codes.ts";
import { type DiskTrouble, diskTrouble, errnoOf } from "../../core/failure/disk.ts";
import { Failure } from "../../core/failure/failure.ts";

interface Meaning {
  readonly code: Code;
  readonly hint: string;
}

const MEANINGS: Readonly<Record<DiskTrouble, Meaning>> = {
  full: {
    code: "store.full",
    hint: "Free space or enlarge the volume: nothing is lost, writing goes on by itself",
  },
  denied: {
    code: "store.denied",
    hint: "Give the user that runs twg the right to write in the sink's `path`",
  },
  read_only: { code: "store.read_only", hint: "Set the sink's `path` to a folder that can be written" },
  misplaced: {
    code: "store.misplaced",
    hint: "Correct the sink's `path`, or move away what stands in it",
  },
  busy: {
    code: "store.io",
    hint: "Raise the limit of open files (LimitNOFILE), or lower the sink's `max_open_files`",
  },
};

const ANOTHER_FILE_SYSTEM =
  "Files are published by a link: keep the whole folder tree of the sink's `path` on one file system";

export function ignoreAbsent(e: unknown): void {
  if (errnoOf(e) !== "ENOENT") throw e;
}

export function storeFailure(e: unknown, doing: string, path: string): Failure {
  if (e instanceof Failure) return e;
  const errno = errnoOf(e);
  const seen = diskTrouble(e);
  if (seen !== null) {
    const { code, hint } = MEANINGS[seen.trouble];
    return new Failure(code, `cannot ${doing}: ${seen.text} (${errno})`, {
      at: path,
      hint: errno === "EXDEV" ? ANOTHER_FILE_SYSTEM : hint,
      cause: e,
    });
  }
  const text = e instanceof Error ? e.message : String(e);
  const hint = "Look at the disk, and at the sink's `path`";
  return new Failure("store.io", `cannot ${doing}: ${text}`, { at: path, hint, cause: e });
}

/** What the file system says, as one coded Failure that names the path and what to do. */
import type { Code } from "../../core/failure/codes.ts";
import { Failure } from "../../core/failure/failure.ts";

interface Meaning {
  readonly code: Code;
  readonly text: string;
  readonly hint: string;
}

const FULL: Meaning = {
  code: "store.full",
  text: "no space is left",
  hint: "Free space or enlarge the volume: nothing is lost, writing goes on by itself",
};
const DENIED: Meaning = {
  code: "store.denied",
  text: "it is not allowed",
  hint: "Give the user that runs twg the right to write in the sink's `path`",
};
const MISPLACED: Meaning = {
  code: "store.misplaced",
  text: "the path does not fit",
  hint: "Correct the sink's `path`, or move away what stands in it",
};
const BUSY: Meaning = {
  code: "store.io",
  text: "too many files are open",
  hint: "Raise the limit of open files (LimitNOFILE), or lower the sink's `max_open_files`",
};

const MEANINGS: Readonly<Record<string, Meaning>> = {
  ENOSPC: FULL,
  EDQUOT: { ...FULL, text: "the disk quota is used up" },
  EACCES: DENIED,
  EPERM: DENIED,
  EROFS: {
    code: "store.read_only",
    text: "the file system is read-only",
    hint: "Set the sink's `path` to a folder that can be written",
  },
  ENOTDIR: { ...MISPLACED, text: "a part of the path is a file" },
  EISDIR: { ...MISPLACED, text: "a folder stands where a file belongs" },
  ENAMETOOLONG: { ...MISPLACED, text: "the path is too long" },
  ELOOP: { ...MISPLACED, text: "the links of the path lead in a circle" },
  EXDEV: {
    ...MISPLACED,
    text: "it is on another file system than the root of the sink",
    hint: "Files are published by a link: keep the whole folder tree of the sink's `path` on one file system",
  },
  EMFILE: BUSY,
  ENFILE: BUSY,
};

export function codeOf(e: unknown): string {
  return e instanceof Error && "code" in e ? String(e.code) : "";
}

export function ignoreAbsent(e: unknown): void {
  if (codeOf(e) !== "ENOENT") throw e;
}

export function storeFailure(e: unknown, doing: string, path: string): Failure {
  if (e instanceof Failure) return e;
  const errno = codeOf(e);
  const meaning = MEANINGS[errno];
  if (meaning !== undefined) {
    return new Failure(meaning.code, `cannot ${doing}: ${meaning.text} (${errno})`, {
      at: path,
      hint: meaning.hint,
      cause: e,
    });
  }
  const text = e instanceof Error ? e.message : String(e);
  const hint = "Look at the disk, and at the sink's `path`";
  return new Failure("store.io", `cannot ${doing}: ${text}`, { at: path, hint, cause: e });
}

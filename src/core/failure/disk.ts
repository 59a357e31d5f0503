/**
 * What the operating system says of a file or a folder, sorted once for all that write some: sinks, coverage, scratch files. Which
 * code that is, and what to do about it, is theirs. What is not here is an I/O error, which may pass.
 */
import { Failure } from "./failure.ts";

export type DiskTrouble =
  /** No space, or no more of it for this user. */
  | "full"
  | "denied"
  | "read_only"
  /** The path cannot be what it should be. */
  | "misplaced"
  /** Too much is open. */
  | "busy";

interface Sorted {
  readonly trouble: DiskTrouble;
  readonly text: string;
}

const denied: Sorted = { trouble: "denied", text: "it is not allowed" };
const busy: Sorted = { trouble: "busy", text: "too many files are open" };
const misplaced = (text: string): Sorted => ({ trouble: "misplaced", text });

const SORTED: Readonly<Record<string, Sorted>> = {
  ENOSPC: { trouble: "full", text: "no space is left" },
  EDQUOT: { trouble: "full", text: "the disk quota is used up" },
  EACCES: denied,
  EPERM: denied,
  EROFS: { trouble: "read_only", text: "the file system is read-only" },
  ENOTDIR: misplaced("a part of the path is a file"),
  EISDIR: misplaced("a folder stands where a file belongs"),
  ENAMETOOLONG: misplaced("the path is too long"),
  ELOOP: misplaced("the links of the path lead in a circle"),
  EXDEV: misplaced("it is on another file system than the root of the sink"),
  EMFILE: busy,
  ENFILE: busy,
};

/** Empty: it has none. */
export function errnoOf(e: unknown): string {
  return e instanceof Error && "code" in e ? String(e.code) : "";
}

export function diskTrouble(e: unknown): Sorted | null {
  return SORTED[errnoOf(e)] ?? null;
}

/** Of a file in a folder for what is read: not where data are lost, but where a job ends. */
export function scratchFailure(cause: unknown, folder: string): Failure {
  const said = cause instanceof Error ? cause.message : String(cause);
  const text = diskTrouble(cause)?.text;
  return new Failure(
    "files.scratch",
    `it cannot be kept while it is read: ${text === undefined ? said : `${text} (${errnoOf(cause)})`}`,
    {
      at: folder,
      hint: "Free space in the temporary folder, or set TMPDIR to a larger one that can be written",
      cause,
    },
  );
}

/**
 * Files that have a path and no name: in memory (memfd_create(2)), or on a disk and removed at once, for what is too
 * large. DuckDB reads and writes them by the path, nobody else can, and they end with the process.
 */
import { dlopen, FFIType } from "bun:ffi";
import {
  closeSync,
  fstatSync,
  ftruncateSync,
  mkdtempSync,
  openSync,
  readSync,
  rmSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { scratchFailure } from "../../core/failure/disk.ts";
import { Failure } from "../../core/failure/failure.ts";

const MFD_CLOEXEC = 1; // linux/memfd.h

let create: ((name: Buffer, flags: number) => number) | null = null;

function memfd(): (name: Buffer, flags: number) => number {
  create ??= dlopen("libc.so.6", {
    memfd_create: { args: [FFIType.cstring, FFIType.u32], returns: FFIType.i32 },
  }).symbols.memfd_create as unknown as (name: Buffer, flags: number) => number;
  return create;
}

/** Folder of the paths, for the sandbox of an engine. */
export const MEMORY_FOLDER = "/proc/self/fd/";

export class MemoryFile {
  readonly #fd: number;
  readonly #folder: string | null;
  readonly path: string;

  /** `folder`: on its disk; null: in memory. */
  constructor(folder: string | null = null) {
    this.#folder = folder;
    this.#fd = folder === null ? memfd()(Buffer.from("twg\0"), MFD_CLOEXEC) : removedFile(folder);
    if (this.#fd < 0) throw new Failure("duckdb.memory", "the system gives no file in memory (memfd_create)");
    this.path = `${MEMORY_FOLDER}${this.#fd}`;
  }

  get size(): number {
    return fstatSync(this.#fd).size;
  }

  /** The content; the file is empty afterwards, and its memory is given back. */
  take(): Uint8Array {
    const bytes = new Uint8Array(this.size);
    for (let at = 0; at < bytes.length; ) {
      const n = readSync(this.#fd, bytes, at, bytes.length - at, at);
      if (n === 0) throw new Failure("internal.bug", "a file in memory is shorter than it says");
      at += n;
    }
    this.clear();
    return bytes;
  }

  write(bytes: Uint8Array, at: number): void {
    try {
      for (let done = 0; done < bytes.length; )
        done += writeSync(this.#fd, bytes, done, bytes.length - done, at + done);
    } catch (e) {
      throw fileFailure(e, this.#folder);
    }
  }

  /** `bytes` of them from `at` on, fewer at its end. */
  read(at: number, bytes: number): Uint8Array {
    const out = new Uint8Array(bytes);
    let filled = 0;
    while (filled < bytes) {
      const n = readSync(this.#fd, out, filled, bytes - filled, at + filled);
      if (n === 0) break;
      filled += n;
    }
    return out.subarray(0, filled);
  }

  clear(): void {
    ftruncateSync(this.#fd, 0);
  }

  close(): void {
    closeSync(this.#fd);
  }
}

function fileFailure(cause: unknown, folder: string | null): Failure {
  if (folder !== null) return scratchFailure(cause, folder);
  const text = cause instanceof Error ? cause.message : String(cause);
  return new Failure("duckdb.memory", `a file in memory takes no more: ${text}`, { cause });
}

function folderIn(folder: string): string {
  try {
    return mkdtempSync(join(folder, "twg-scratch-"));
  } catch (e) {
    throw scratchFailure(e, folder);
  }
}

function removedFile(folder: string): number {
  const own = folderIn(folder);
  try {
    return openSync(join(own, "0"), "wx+", 0o600);
  } finally {
    rmSync(own, { recursive: true });
  }
}

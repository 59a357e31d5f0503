/** Files that live in memory and have a path: memfd_create(2). What DuckDB reads and writes by name never meets a disk. */
import { dlopen, FFIType } from "bun:ffi";
import { closeSync, fstatSync, ftruncateSync, readSync } from "node:fs";
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
  readonly path: string;

  constructor() {
    this.#fd = memfd()(Buffer.from("twg\0"), MFD_CLOEXEC);
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

  clear(): void {
    ftruncateSync(this.#fd, 0);
  }

  close(): void {
    closeSync(this.#fd);
  }
}

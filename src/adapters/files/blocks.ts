/** A file block by block, and the checks by which it is known again. */
import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { Failure } from "../../core/failure/failure.ts";
import type { Hashed, HashTask } from "../../core/ports/batch-lane.ts";
import type { FileBytes } from "../../core/ports/file-bytes.ts";
import { PART_BYTES } from "../../core/records/file-stream.ts";

/** What is read, hashed and compared at a time. Parts are whole blocks. */
export const BLOCK_BYTES: number = 1024 * 1024;

export class BlockReader {
  readonly #fd: number;
  readonly #path: string;
  readonly size: number;

  constructor(path: string) {
    this.#path = path;
    try {
      this.#fd = openSync(path, "r");
      this.size = fstatSync(this.#fd).size;
    } catch (e) {
      throw unreadable(e, path);
    }
  }

  /** Fills `into` from `at` on as far as the file goes; gives how many bytes. */
  read(into: Uint8Array, at: number): number {
    try {
      let filled = 0;
      while (filled < into.length) {
        const n = readSync(this.#fd, into, filled, into.length - filled, at + filled);
        if (n === 0) break;
        filled += n;
      }
      return filled;
    } catch (e) {
      throw unreadable(e, this.#path);
    }
  }

  close(): void {
    closeSync(this.#fd);
  }
}

export function unreadable(e: unknown, path: string): Failure {
  const code = e instanceof Error && "code" in e ? String(e.code) : "";
  const why = { ENOENT: "there is no such file", EACCES: "not allowed to read it", EISDIR: "it is a folder" }[
    code
  ];
  return new Failure("files.unreadable", why ?? (e instanceof Error ? e.message : String(e)), {
    at: path,
    cause: e,
  });
}

/** Not against malice, only to see that bytes are the ones that were hashed: some 14 GB/s. */
export function blockCheck(block: Uint8Array): bigint {
  return Bun.hash.xxHash64(block);
}

/** SHA-256 of each part and a check of each block of [from, to). */
export function hashRange({ file, path, from, to }: HashTask): Hashed {
  const reader = new BlockReader(path);
  try {
    const parts = new Uint8Array(32 * Math.ceil((to - from) / PART_BYTES));
    const blocks = new BigUint64Array(Math.ceil((to - from) / BLOCK_BYTES));
    const block = new Uint8Array(BLOCK_BYTES);
    let sha = new Bun.CryptoHasher("sha256");
    for (let at = from, n = 0; at < to; at += BLOCK_BYTES, n++) {
      const want = Math.min(BLOCK_BYTES, to - at);
      const bytes = block.subarray(0, want);
      if (reader.read(bytes, at) < want) throw changed(path, "it became shorter");
      sha.update(bytes);
      blocks[n] = blockCheck(bytes);
      const end = at + want - from;
      if (end % PART_BYTES !== 0 && at + want < to) continue;
      parts.set(sha.digest(), 32 * (Math.ceil(end / PART_BYTES) - 1));
      sha = new Bun.CryptoHasher("sha256");
    }
    return { file, from, parts, blocks };
  } finally {
    reader.close();
  }
}

/** The same of a file that is read over a network: a part is under way while the one before is hashed. */
export async function hashRemote({ file, from, to }: HashTask, bytes: FileBytes): Promise<Hashed> {
  const parts = new Uint8Array(32 * Math.ceil((to - from) / PART_BYTES));
  const blocks = new BigUint64Array(Math.ceil((to - from) / BLOCK_BYTES));
  const part = (at: number) => (at < to ? bytes.read(at, Math.min(at + PART_BYTES, to)) : null);
  let ahead = part(from);
  for (let at = from, n = 0; ahead !== null; at += PART_BYTES) {
    const content = await ahead;
    ahead = part(at + PART_BYTES);
    // It is awaited in the next turn; until then its failure has no other handler.
    ahead?.catch(() => {});
    parts.set(new Bun.CryptoHasher("sha256").update(content).digest(), 32 * ((at - from) / PART_BYTES));
    for (let b = 0; b < content.length; b += BLOCK_BYTES)
      blocks[n++] = blockCheck(content.subarray(b, b + BLOCK_BYTES));
  }
  return { file, from, parts, blocks };
}

export function changed(path: string, how: string): Failure {
  return new Failure("files.changed", `the file changed while it was read: ${how}`, {
    at: path,
    hint: "Give files that nobody writes to any more; what was covered is of the content as it was hashed",
  });
}

/** The digest of a whole file from the hashes of its parts (see `FileDigest`). */
export function digestOf(parts: Uint8Array): string {
  if (parts.length === 32) return parts.toHex();
  return new Bun.CryptoHasher("sha256").update(parts).digest("hex");
}

/** SHA-256 of nothing: a file of no bytes has no part. */
export const EMPTY_DIGEST: string = new Bun.CryptoHasher("sha256").digest("hex");

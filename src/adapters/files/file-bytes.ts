/** A file of this machine, and the bytes of any held against the checks that were taken when it was hashed. */
import type { FileBytes, FilePlace } from "../../core/ports/file-bytes.ts";
import { BLOCK_BYTES, BlockReader, blockCheck, changed } from "./blocks.ts";

export function openLocalFile({ path }: FilePlace): FileBytes {
  const reader = new BlockReader(path);
  return {
    size: reader.size,
    read: async (from, to) => {
      const bytes = new Uint8Array(to - from);
      if (reader.read(bytes, from) < bytes.length) throw changed(path, "it became shorter");
      return bytes;
    },
    close: () => reader.close(),
  };
}

/** Reads whole blocks only, each compared with its check. */
export class CheckedBytes {
  readonly #bytes: FileBytes;
  readonly #checks: BigUint64Array;
  readonly #name: string;

  constructor(bytes: FileBytes, checks: BigUint64Array, name: string) {
    this.#bytes = bytes;
    this.#checks = checks;
    this.#name = name;
    if (Math.ceil(bytes.size / BLOCK_BYTES) !== checks.length) throw changed(name, "its size is another");
  }

  get size(): number {
    return this.#bytes.size;
  }

  /** [from, to) in views of at most a block. */
  async *blocks(from: number, to: number): AsyncGenerator<Uint8Array> {
    for (let n = Math.floor(from / BLOCK_BYTES); n * BLOCK_BYTES < to; n++) {
      const start = n * BLOCK_BYTES;
      const block = await this.#bytes.read(start, Math.min(start + BLOCK_BYTES, this.size));
      if (blockCheck(block) !== this.#checks[n]) throw changed(this.#name, "its bytes are others");
      yield block.subarray(Math.max(0, from - start), to - start);
    }
  }

  async read(from: number, to: number): Promise<Uint8Array> {
    const out = new Uint8Array(to - from);
    let at = 0;
    for await (const block of this.blocks(from, to)) {
      out.set(block, at);
      at += block.length;
    }
    return out;
  }

  close(): void {
    this.#bytes.close();
  }
}

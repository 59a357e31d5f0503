/**
 * Memory for the rows of a COPY: blocks that are CopyData messages already, head included, so that nothing is copied
 * again on the way to the socket. They are kept until the transaction is committed, to be sent again after a failure.
 * Blocks of the usual size are used again.
 */
import { COPY_DATA_HEAD, copyDataHead } from "../wire/frontend.ts";

const BLOCK_BYTES = 256 * 1024;
/** "PGCOPY\n\377\r\n\0", flags 0, no extension: how a COPY in binary format begins. */
export const SIGNATURE: Uint8Array = new Uint8Array([
  0x50, 0x47, 0x43, 0x4f, 0x50, 0x59, 0x0a, 0xff, 0x0d, 0x0a, 0, 0, 0, 0, 0, 0, 0, 0, 0,
]);
/** A field count of -1: how it ends. */
const TRAILER = new Uint8Array([0xff, 0xff]);

class Block {
  readonly bytes: Uint8Array;
  readonly view: DataView;
  /** End of what is written. */
  end = COPY_DATA_HEAD;

  constructor(size: number) {
    this.bytes = new Uint8Array(size);
    this.view = new DataView(this.bytes.buffer);
  }
}

export class CopyBlocks {
  #blocks: Block[] = [];
  #free: Block[] = [];
  #content = 0;
  #memory = 0;

  constructor() {
    this.reset();
  }

  /** Bytes of content so far. */
  get length(): number {
    return this.#content;
  }

  /** Bytes of memory in use for it. */
  get held(): number {
    return this.#memory;
  }

  /** Blocks that are full: they will not change any more. */
  get full(): number {
    return this.#blocks.length - 1;
  }

  get count(): number {
    return this.#blocks.length;
  }

  /** Room for one row of `size` bytes: write it into `bytes` and `view` at the offset that is returned. */
  row(size: number): number {
    let last = this.#blocks[this.#blocks.length - 1]!;
    if (last.end + size > last.bytes.length) last = this.#add(size);
    const at = last.end;
    last.end += size;
    this.#content += size;
    return at;
  }

  /** Memory of the row that `row` was last called for. */
  get bytes(): Uint8Array {
    return this.#blocks[this.#blocks.length - 1]!.bytes;
  }

  get view(): DataView {
    return this.#blocks[this.#blocks.length - 1]!.view;
  }

  /** Takes the last row away again. */
  drop(size: number): void {
    this.#blocks[this.#blocks.length - 1]!.end -= size;
    this.#content -= size;
  }

  /** The i-th CopyData message. */
  message(i: number): Uint8Array {
    const b = this.#blocks[i]!;
    copyDataHead(b.bytes, 0, b.end - COPY_DATA_HEAD);
    return b.bytes.subarray(0, b.end);
  }

  reset(): void {
    for (const b of this.#blocks) {
      if (b.bytes.length !== BLOCK_BYTES) continue;
      b.end = COPY_DATA_HEAD;
      this.#free.push(b);
    }
    this.#blocks = [];
    this.#memory = 0;
    this.#content = 0;
    this.#add(0);
    this.bytes.set(SIGNATURE, this.row(SIGNATURE.length));
    this.#content = 0;
  }

  /** Gives the memory that waits to be used again back. */
  trim(): void {
    this.#free = [];
  }

  #add(size: number): Block {
    const wanted = size + COPY_DATA_HEAD;
    const block = wanted > BLOCK_BYTES ? new Block(wanted) : (this.#free.pop() ?? new Block(BLOCK_BYTES));
    this.#blocks.push(block);
    this.#memory += block.bytes.length;
    return block;
  }
}

/** The last CopyData message of a COPY. */
export function trailerMessage(): Uint8Array {
  const m = new Uint8Array(COPY_DATA_HEAD + TRAILER.length);
  copyDataHead(m, 0, TRAILER.length);
  m.set(TRAILER, COPY_DATA_HEAD);
  return m;
}

/** The rows of a set one by one, as they stand in the blocks of its COPY: to send some of them, and to read one again. */
import { COPY_DATA_HEAD, copyDataHead } from "../wire/frontend.ts";
import { type CopyBlocks, SIGNATURE } from "./blocks.ts";

export class CopiedRows {
  readonly #blocks: CopyBlocks;
  /** Of each row where it begins in its block's message. */
  readonly #starts: Int32Array;
  /** Of each block its first row, and behind the last one the number of rows. */
  readonly #first: number[] = [];

  /** `count`: rows that the blocks hold. */
  constructor(blocks: CopyBlocks, count: number) {
    this.#blocks = blocks;
    this.#starts = new Int32Array(count);
    let row = 0;
    for (let b = 0; b < blocks.count; b++) {
      this.#first.push(row);
      const message = blocks.message(b);
      const view = new DataView(message.buffer, message.byteOffset, message.length);
      for (let at = b === 0 ? COPY_DATA_HEAD + SIGNATURE.length : COPY_DATA_HEAD; at < message.length; ) {
        this.#starts[row++] = at;
        at = rowEnd(view, at);
      }
    }
    this.#first.push(row);
  }

  get count(): number {
    return this.#starts.length;
  }

  /** A whole COPY of rows [from, next) but for its end: messages, some in two pieces. */
  *messages(from: number, next: number): Generator<Uint8Array> {
    yield headed(SIGNATURE);
    for (let b = 0; b < this.#blocks.count; b++) {
      const first = Math.max(from, this.#first[b]!);
      const end = Math.min(next, this.#first[b + 1]!);
      if (first >= end) continue;
      const rows = this.#bytes(b, first, end);
      const head = new Uint8Array(COPY_DATA_HEAD);
      copyDataHead(head, 0, rows.length);
      yield head;
      yield rows;
    }
  }

  /** The row's fields; null: SQL's null. */
  fields(row: number): (Uint8Array | null)[] {
    const b = this.#first.findLastIndex((first, i) => first <= row && i < this.#blocks.count);
    const bytes = this.#bytes(b, row, row + 1);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    const fields: (Uint8Array | null)[] = [];
    let at = 2;
    for (let left = view.getInt16(0); left > 0; left--) {
      const size = view.getInt32(at);
      at += 4;
      fields.push(size < 0 ? null : bytes.subarray(at, at + size));
      at += Math.max(0, size);
    }
    return fields;
  }

  #bytes(block: number, from: number, next: number): Uint8Array {
    const message = this.#blocks.message(block);
    const end = next < this.#first[block + 1]! ? this.#starts[next]! : message.length;
    return message.subarray(this.#starts[from]!, end);
  }
}

function rowEnd(view: DataView, start: number): number {
  let at = start + 2;
  for (let left = view.getInt16(start); left > 0; left--) at += 4 + Math.max(0, view.getInt32(at));
  return at;
}

function headed(bytes: Uint8Array): Uint8Array {
  const m = new Uint8Array(COPY_DATA_HEAD + bytes.length);
  copyDataHead(m, 0, bytes.length);
  m.set(bytes, COPY_DATA_HEAD);
  return m;
}

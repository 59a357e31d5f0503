/** A column of bytes that is filled row by row, in arrays that are used again for the next batch. */
import type { BytesColumn } from "../../../core/records/raw-batch.ts";

const FIRST_ROWS = 1024;
const FIRST_BYTES = 64 * 1024;

export class BytesBuilder {
  #offsets = new Int32Array(FIRST_ROWS + 1);
  #validity = new Uint8Array(FIRST_ROWS / 8);
  #data = new Uint8Array(FIRST_BYTES);
  #nulls = 0;
  rows = 0;

  get bytes(): number {
    return this.#offsets[this.rows]!;
  }

  clear(): void {
    this.rows = 0;
    this.#nulls = 0;
  }

  /** `size` below 0: null. */
  add(from: Uint8Array, at: number, size: number): void {
    if (this.rows + 2 > this.#offsets.length) this.#moreRows();
    const row = this.rows++;
    const start = this.#offsets[row]!;
    const bit = 1 << (row & 7);
    if (size < 0) {
      this.#nulls++;
      this.#validity[row >> 3]! &= ~bit;
      this.#offsets[row + 1] = start;
      return;
    }
    this.#validity[row >> 3]! |= bit;
    const end = start + size;
    if (end > this.#data.length) this.#moreBytes(start, end);
    this.#data.set(from.subarray(at, at + size), start);
    this.#offsets[row + 1] = end;
  }

  /** Views, which stay as they are until rows are added again. */
  column(): BytesColumn {
    return {
      offsets: this.#offsets.subarray(0, this.rows + 1),
      data: this.#data.subarray(0, this.bytes),
      validity: this.#validity.subarray(0, (this.rows + 7) >> 3),
      nullCount: this.#nulls,
    };
  }

  #moreRows(): void {
    const capacity = 2 * (this.#offsets.length - 1);
    const [offsets, validity] = [this.#offsets, this.#validity];
    this.#offsets = new Int32Array(capacity + 1);
    this.#offsets.set(offsets);
    this.#validity = new Uint8Array((capacity + 7) >> 3);
    this.#validity.set(validity);
  }

  #moreBytes(used: number, needed: number): void {
    const data = this.#data.subarray(0, used);
    this.#data = new Uint8Array(Math.max(2 * this.#data.length, needed));
    this.#data.set(data);
  }
}

/** A variable-size Arrow column that is filled again and again without new memory. */
import type { BytesColumn } from "../../../../core/records/raw-batch.ts";

const FIRST_BYTES = 1 << 16;
/** A buffer above this is given up at reset: one huge record must not be paid for ever. */
const KEPT_BYTES = 1 << 24;

function grownTo(need: number, have: number): number {
  return Math.max(need, have * 2);
}

export class BytesBuilder {
  offsets: Int32Array<ArrayBuffer>;
  data: Uint8Array<ArrayBuffer> = new Uint8Array(FIRST_BYTES);
  /** All ones but for the nulls of the rows in use. */
  validity: Uint8Array<ArrayBuffer>;
  nullCount = 0;
  /** Bytes of `data` in use. */
  length = 0;

  constructor(rows: number) {
    this.offsets = new Int32Array(rows + 1);
    this.validity = new Uint8Array((rows + 7) >>> 3).fill(0xff);
  }

  reset(): void {
    if (this.nullCount > 0) this.validity.fill(0xff);
    this.nullCount = 0;
    this.length = 0;
    if (this.data.length > KEPT_BYTES) this.data = new Uint8Array(FIRST_BYTES);
  }

  /** Back to `rows` rows of `length` bytes with `nullCount` nulls, out of `used` rows. */
  rollback(rows: number, length: number, nullCount: number, used: number): void {
    for (let i = rows; i < used; i++) this.validity[i >>> 3]! |= 1 << (i & 7);
    this.length = length;
    this.nullCount = nullCount;
  }

  /** Makes room for row `row` and its `bytes` bytes. */
  ensure(row: number, bytes: number): void {
    if (row + 1 >= this.offsets.length) this.#ensureRows(row + 1);
    const need = this.length + bytes;
    if (need <= this.data.length) return;
    const data = new Uint8Array(grownTo(need, this.data.length));
    data.set(this.data.subarray(0, this.length));
    this.data = data;
  }

  #ensureRows(rows: number): void {
    const most = grownTo(rows, this.offsets.length);
    const offsets = new Int32Array(most + 1);
    offsets.set(this.offsets);
    this.offsets = offsets;
    const validity = new Uint8Array((most + 7) >>> 3).fill(0xff);
    validity.set(this.validity);
    this.validity = validity;
  }

  /** Adds src[at, at + n) as row `row`; n < 0 is a null. */
  append(row: number, src: Uint8Array, at: number, n: number): void {
    if (n < 0) {
      this.ensure(row, 0);
      this.validity[row >>> 3]! &= ~(1 << (row & 7));
      this.nullCount++;
    } else if (n > 0) {
      this.ensure(row, n);
      copyShort(src, at, n, this.data, this.length);
      this.length += n;
    } else this.ensure(row, 0);
    this.offsets[row + 1] = this.length;
  }

  column(): BytesColumn {
    return {
      offsets: this.offsets,
      data: this.data,
      validity: this.validity,
      nullCount: this.nullCount,
    };
  }
}

/** Up to here a loop is cheaper than making a view for `set`. Measured. */
const LOOP_BYTES = 48;

function copyShort(src: Uint8Array, at: number, n: number, dst: Uint8Array, to: number): void {
  if (n > LOOP_BYTES) {
    dst.set(src.subarray(at, at + n), to);
    return;
  }
  for (let i = 0; i < n; i++) dst[to + i] = src[at + i]!;
}

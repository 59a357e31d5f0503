/** A variable-size Arrow column that is filled again and again without new memory. */
import type { BytesColumn } from "../../../../core/records/raw-batch.ts";
import { renewed } from "./renewed.ts";

const FIRST_BYTES = 1 << 16;
/** Buffers above these are given up at reset: one huge record must not be paid for ever. */
const KEPT_BYTES = 1 << 24;
const KEPT_ROWS = 1 << 20;

function grownTo(need: number, have: number): number {
  return Math.max(need, have * 2);
}

/** A bitmap in which no row is null. */
export function allValid(rows: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array((rows + 7) >>> 3).fill(0xff);
}

/** No row from `row` on is null. */
export function clearNulls(validity: Uint8Array, row: number): void {
  const byte = row >>> 3;
  if (byte < validity.length) validity[byte]! |= 0xff << (row & 7);
  validity.fill(0xff, byte + 1);
}

export class BytesBuilder {
  offsets: Int32Array<ArrayBuffer>;
  data: Uint8Array<ArrayBuffer> = new Uint8Array(FIRST_BYTES);
  /** All ones but for the nulls of the rows in use. */
  validity: Uint8Array<ArrayBuffer>;
  nullCount = 0;
  /** Bytes of `data` in use. */
  length = 0;
  readonly #firstRows: number;

  constructor(rows: number) {
    this.#firstRows = rows;
    this.offsets = new Int32Array(rows + 1);
    this.validity = allValid(rows);
  }

  reset(): void {
    if (this.nullCount > 0) this.validity.fill(0xff);
    this.nullCount = 0;
    this.length = 0;
    if (this.data.length > KEPT_BYTES) this.data = new Uint8Array(FIRST_BYTES);
    if (this.offsets.length > KEPT_ROWS) {
      this.offsets = new Int32Array(this.#firstRows + 1);
      this.validity = allValid(this.#firstRows);
    }
  }

  /** Back to `rows` rows of `length` bytes with `nullCount` nulls. */
  rollback(rows: number, length: number, nullCount: number): void {
    clearNulls(this.validity, rows);
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
    const validity = allValid(most);
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

  /** Takes the arrays from whoever got them with `column`. */
  detach(): void {
    const rows = this.offsets.length === 0 ? this.#firstRows : this.offsets.length - 1;
    this.offsets = renewed(this.offsets, () => new Int32Array(rows + 1));
    this.data = renewed(this.data, () => new Uint8Array(FIRST_BYTES));
    this.validity = renewed(this.validity, () => allValid(rows));
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

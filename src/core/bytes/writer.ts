/**
 * A writer that grows. Big endian like the reader; lengths and sizes that are known only later are patched in
 * place (`reserveI32` then `patchI32`), so a message is written in one pass without measuring it first.
 */
import { Failure } from "../failure/failure.ts";

const UTF8 = new TextEncoder();
const FIRST_BYTES = 256;

export class ByteWriter {
  #bytes: Uint8Array<ArrayBuffer>;
  #view: DataView;
  #length = 0;

  constructor(capacity = FIRST_BYTES) {
    this.#bytes = new Uint8Array(Math.max(capacity, 16));
    this.#view = new DataView(this.#bytes.buffer);
  }

  get length(): number {
    return this.#length;
  }

  /** Makes room for `n` more bytes and returns where they begin. */
  #room(n: number): number {
    const at = this.#length;
    const need = at + n;
    if (need > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(need, this.#bytes.length * 2));
      grown.set(this.#bytes.subarray(0, at));
      this.#bytes = grown;
      this.#view = new DataView(grown.buffer);
    }
    this.#length = need;
    return at;
  }

  /** Forgets what was written and keeps the buffer. */
  reset(): void {
    this.#length = 0;
  }

  /** What was written, as a view that the next write may invalidate. */
  view(): Uint8Array<ArrayBuffer> {
    return this.#bytes.subarray(0, this.#length);
  }

  /** What was written, as a copy of its own. */
  copy(): Uint8Array<ArrayBuffer> {
    return this.#bytes.slice(0, this.#length);
  }

  bool(value: boolean): this {
    return this.i8(value ? 1 : 0);
  }

  i8(value: number): this {
    // #room may replace the view, so it comes before the view is read.
    const at = this.#room(1);
    this.#view.setInt8(at, value);
    return this;
  }

  i16(value: number): this {
    const at = this.#room(2);
    this.#view.setInt16(at, value);
    return this;
  }

  u16(value: number): this {
    return this.i16(value);
  }

  i32(value: number): this {
    const at = this.#room(4);
    this.#view.setInt32(at, value);
    return this;
  }

  u32(value: number): this {
    return this.i32(value);
  }

  u32le(value: number): this {
    const at = this.#room(4);
    this.#view.setUint32(at, value, true);
    return this;
  }

  i64(value: bigint): this {
    const at = this.#room(8);
    this.#view.setBigInt64(at, value);
    return this;
  }

  f64(value: number): this {
    const at = this.#room(8);
    this.#view.setFloat64(at, value);
    return this;
  }

  uvarint(value: number): this {
    let n = value >>> 0;
    while (n > 0x7f) {
      this.i8(n | 0x80);
      n >>>= 7;
    }
    return this.i8(n);
  }

  /** Zigzag int32. */
  varint(value: number): this {
    return this.uvarint((value << 1) ^ (value >> 31));
  }

  uvarlong(value: bigint): this {
    let n = BigInt.asUintN(64, value);
    while (n > 0x7fn) {
      this.i8(Number(n & 0x7fn) | 0x80);
      n >>= 7n;
    }
    return this.i8(Number(n));
  }

  /** Zigzag int64. */
  varlong(value: bigint): this {
    return this.uvarlong((value << 1n) ^ (value >> 63n));
  }

  raw(bytes: Uint8Array): this {
    // #room may replace the buffer, so it comes before the buffer is read.
    const at = this.#room(bytes.length);
    this.#bytes.set(bytes, at);
    return this;
  }

  /** int16 length, -1 = null. */
  string(value: string | null): this {
    if (value === null) return this.i16(-1);
    const bytes = UTF8.encode(value);
    if (bytes.length > 0x7fff) {
      throw new Failure("bytes.limit", `a string of ${bytes.length} bytes where 32767 are allowed`);
    }
    return this.i16(bytes.length).raw(bytes);
  }

  /** uvarint length + 1, 0 = null. */
  compactString(value: string | null): this {
    return this.compactBytes(value === null ? null : UTF8.encode(value));
  }

  /** int32 length, -1 = null. */
  sizedBytes(value: Uint8Array | null): this {
    return value === null ? this.i32(-1) : this.i32(value.length).raw(value);
  }

  /** uvarint length + 1, 0 = null. */
  compactBytes(value: Uint8Array | null): this {
    return value === null ? this.uvarint(0) : this.uvarint(value.length + 1).raw(value);
  }

  /** int32 count, -1 = null array. */
  arrayCount(count: number): this {
    return this.i32(count);
  }

  /** uvarint of count + 1; -1 = null array. */
  compactArrayCount(count: number): this {
    return this.uvarint(count + 1);
  }

  /** Leaves 4 bytes to be patched and returns where they are. */
  reserveI32(): number {
    const at = this.#room(4);
    this.#view.setInt32(at, 0);
    return at;
  }

  patchI32(at: number, value: number): this {
    if (at < 0 || at + 4 > this.#length) {
      throw new Failure("internal.bug", `patch at ${at} outside of ${this.#length} bytes written`);
    }
    this.#view.setInt32(at, value);
    return this;
  }
}

/**
 * Thrift compact protocol, writing only: what a Parquet footer and page headers are made of
 * (apache/thrift doc/specs/thrift-compact-protocol.md; parquet-format src/main/thrift/parquet.thrift).
 * Fields must be written in ascending id order within a struct, as the protocol's deltas want.
 */
const UTF8 = new TextEncoder();

export const T = { true: 1, false: 2, i16: 4, i32: 5, i64: 6, binary: 8, list: 9, struct: 12 } as const;
export type ThriftType = (typeof T)[keyof typeof T];

/** Unsigned LEB128 of a non-negative safe integer; returns the position after it. */
export function putUvarint(out: Uint8Array, at: number, value: number): number {
  let n = value;
  while (n > 0x7fffffff) {
    out[at++] = (n % 128) | 0x80;
    n = Math.floor(n / 128);
  }
  while (n > 0x7f) {
    out[at++] = (n & 0x7f) | 0x80;
    n >>>= 7;
  }
  out[at++] = n;
  return at;
}

/** Zigzag LEB128 of the int64 with halves `lo` and `hi`. */
export function putZigzag64(out: Uint8Array, at: number, lo: number, hi: number): number {
  const sign = hi >> 31;
  let high = ((hi << 1) | (lo >>> 31)) ^ sign;
  let low = (lo << 1) ^ sign;
  while (high !== 0 || low >>> 0 > 0x7f) {
    out[at++] = (low & 0x7f) | 0x80;
    low = (low >>> 7) | (high << 25);
    high >>>= 7;
  }
  out[at++] = low;
  return at;
}

export class ThriftWriter {
  #bytes = new Uint8Array(512);
  #length = 0;
  #field = 0;
  readonly #outer: number[] = [];

  get length(): number {
    return this.#length;
  }

  /** A view that the next write may invalidate. */
  view(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  reset(): void {
    this.#length = 0;
    this.#field = 0;
    this.#outer.length = 0;
  }

  #room(n: number): void {
    if (this.#length + n <= this.#bytes.length) return;
    const grown = new Uint8Array(Math.max(this.#bytes.length * 2, this.#length + n));
    grown.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = grown;
  }

  #byte(b: number): void {
    this.#room(1);
    this.#bytes[this.#length++] = b;
  }

  #uvarint(n: number): void {
    this.#room(10);
    this.#length = putUvarint(this.#bytes, this.#length, n);
  }

  #zigzag(n: number): void {
    this.#room(10);
    // ToInt32 of a safe integer is its low half, also for negative ones (ECMA-262 7.1.6: modulo 2^32).
    this.#length = putZigzag64(this.#bytes, this.#length, n | 0, Math.floor(n / 0x1_0000_0000));
  }

  #header(id: number, type: ThriftType): void {
    const delta = id - this.#field;
    if (delta > 0 && delta < 16) this.#byte((delta << 4) | type);
    else {
      this.#byte(type);
      this.#zigzag(id);
    }
    this.#field = id;
  }

  bool(id: number, value: boolean): this {
    this.#header(id, value ? T.true : T.false);
    return this;
  }

  i16(id: number, value: number): this {
    this.#header(id, T.i16);
    this.#zigzag(value);
    return this;
  }

  i32(id: number, value: number): this {
    this.#header(id, T.i32);
    this.#zigzag(value);
    return this;
  }

  /** Safe integers only. */
  i64(id: number, value: number): this {
    this.#header(id, T.i64);
    this.#zigzag(value);
    return this;
  }

  binary(id: number, value: Uint8Array): this {
    this.#header(id, T.binary);
    this.rawBinary(value);
    return this;
  }

  string(id: number, value: string): this {
    return this.binary(id, UTF8.encode(value));
  }

  list(id: number, element: ThriftType, count: number): this {
    this.#header(id, T.list);
    if (count < 15) this.#byte((count << 4) | element);
    else {
      this.#byte(0xf0 | element);
      this.#uvarint(count);
    }
    return this;
  }

  /** An element of list<i32>. */
  rawI32(value: number): this {
    this.#zigzag(value);
    return this;
  }

  /** An element of list<binary> or list<string>. */
  rawBinary(value: Uint8Array): this {
    this.#uvarint(value.length);
    this.#room(value.length);
    this.#bytes.set(value, this.#length);
    this.#length += value.length;
    return this;
  }

  /** Bytes that are whole encoded elements already. */
  raw(value: Uint8Array): this {
    this.#room(value.length);
    this.#bytes.set(value, this.#length);
    this.#length += value.length;
    return this;
  }

  /** Opens a struct: a field of the current one, or with id 0 a list element or the outermost. */
  open(id = 0): this {
    if (id > 0) this.#header(id, T.struct);
    this.#outer.push(this.#field);
    this.#field = 0;
    return this;
  }

  close(): this {
    this.#byte(0);
    this.#field = this.#outer.pop() ?? 0;
    return this;
  }

  /** A union member or struct with no fields. */
  empty(id: number): this {
    return this.open(id).close();
  }
}

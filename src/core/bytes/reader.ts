/**
 * A reader that cannot read past its end. The first shortage throws `bytes.short` and leaves the reader where it
 * was, so a caller that catches it may report the position. A declared length or count is compared with what is
 * left *before* anything is allocated for it: a hostile size costs nothing.
 *
 * All integers are big endian (the order of Kafka's protocol) unless the name says otherwise.
 */
import { Failure } from "../failure/failure.ts";

const UTF8 = new TextDecoder("utf-8", { ignoreBOM: true });

export class ByteReader {
  readonly bytes: Uint8Array;
  readonly end: number;
  /** What is being read, for messages: an API and version, a file. */
  readonly place: string;
  readonly #view: DataView;
  #pos: number;

  /** Reads `bytes[start, end)`. Positions are indexes into `bytes`. */
  constructor(bytes: Uint8Array, start = 0, end = bytes.length, place = "") {
    if (start < 0 || end > bytes.length || start > end) {
      throw new Failure("internal.bug", `reader over [${start}, ${end}) of ${bytes.length} bytes`);
    }
    this.bytes = bytes;
    this.end = end;
    this.place = place;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#pos = start;
  }

  get pos(): number {
    return this.#pos;
  }

  get remaining(): number {
    return this.end - this.#pos;
  }

  /** Takes `n` bytes (n >= 0) and returns where they begin. */
  #take(n: number): number {
    const at = this.#pos;
    if (n > this.end - at) {
      throw new Failure("bytes.short", `${n} bytes needed at ${at}, ${this.end - at} left`, this.#where());
    }
    this.#pos = at + n;
    return at;
  }

  #where(): { at?: string } {
    return this.place === "" ? {} : { at: this.place };
  }

  #invalid(message: string): Failure {
    return new Failure("bytes.invalid", message, this.#where());
  }

  skip(n: number): void {
    this.#take(this.#length(n));
  }

  bool(): boolean {
    return this.u8() !== 0;
  }

  i8(): number {
    return this.#view.getInt8(this.#take(1));
  }

  u8(): number {
    return this.#view.getUint8(this.#take(1));
  }

  i16(): number {
    return this.#view.getInt16(this.#take(2));
  }

  u16(): number {
    return this.#view.getUint16(this.#take(2));
  }

  i32(): number {
    return this.#view.getInt32(this.#take(4));
  }

  u32(): number {
    return this.#view.getUint32(this.#take(4));
  }

  u32le(): number {
    return this.#view.getUint32(this.#take(4), true);
  }

  i64(): bigint {
    return this.#view.getBigInt64(this.#take(8));
  }

  f64(): number {
    return this.#view.getFloat64(this.#take(8));
  }

  /** Unsigned varint of at most 5 bytes and 32 bits. */
  uvarint(): number {
    let value = 0;
    for (let shift = 0; shift < 35; shift += 7) {
      const at = this.#pos;
      const byte = this.u8();
      if (shift === 28 && byte > 0x0f) throw this.#invalid(`varint over 32 bits at ${at}`);
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value >>> 0;
    }
    throw this.#invalid(`varint over 5 bytes at ${this.#pos}`);
  }

  /** Zigzag int32. */
  varint(): number {
    const n = this.uvarint();
    return (n >>> 1) ^ -(n & 1);
  }

  /** Unsigned varint of at most 10 bytes and 64 bits. */
  uvarlong(): bigint {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const at = this.#pos;
      const byte = this.u8();
      if (shift === 63n && byte > 1) throw this.#invalid(`varint over 64 bits at ${at}`);
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw this.#invalid(`varint over 10 bytes at ${this.#pos}`);
  }

  /** Zigzag int64. */
  varlong(): bigint {
    const n = this.uvarlong();
    return BigInt.asIntN(64, (n >> 1n) ^ -(n & 1n));
  }

  /** A view of the next `n` bytes, not a copy. */
  view(n: number): Uint8Array {
    const at = this.#take(this.#length(n));
    return this.bytes.subarray(at, at + n);
  }

  /** A reader over the next `n` bytes; this one goes on behind them. */
  slice(n: number, place = this.place): ByteReader {
    const at = this.#take(this.#length(n));
    return new ByteReader(this.bytes, at, at + n, place);
  }

  utf8(n: number): string {
    return UTF8.decode(this.view(n));
  }

  #length(n: number): number {
    if (n < 0) throw this.#invalid(`length ${n} at ${this.#pos} where null is not allowed`);
    return n;
  }

  #required<T>(value: T | null): T {
    if (value === null) throw this.#invalid(`null at ${this.#pos} where it is not allowed`);
    return value;
  }

  /** int16 length, -1 = null. */
  nullableString(): string | null {
    const n = this.i16();
    return n === -1 ? null : this.utf8(n);
  }

  string(): string {
    return this.#required(this.nullableString());
  }

  /** uvarint length + 1, 0 = null. */
  compactNullableString(): string | null {
    const n = this.uvarint();
    return n === 0 ? null : this.utf8(n - 1);
  }

  compactString(): string {
    return this.#required(this.compactNullableString());
  }

  /** int32 length, -1 = null. A view. */
  nullableBytes(): Uint8Array | null {
    const n = this.i32();
    return n === -1 ? null : this.view(n);
  }

  sizedBytes(): Uint8Array {
    return this.#required(this.nullableBytes());
  }

  /** uvarint length + 1, 0 = null. A view. */
  compactNullableBytes(): Uint8Array | null {
    const n = this.uvarint();
    return n === 0 ? null : this.view(n - 1);
  }

  compactBytes(): Uint8Array {
    return this.#required(this.compactNullableBytes());
  }

  /**
   * Number of items of an array with an int32 count; -1 = null. Refused with `bytes.limit` if the items, at
   * `minItemBytes` (>= 1) each, cannot fit in what is left, so that the caller may allocate for it.
   */
  arrayCount(minItemBytes = 1): number {
    return this.#count(this.i32(), minItemBytes);
  }

  /** The same with a uvarint of count + 1; 0 = null, given as -1. */
  compactArrayCount(minItemBytes = 1): number {
    return this.#count(this.uvarint() - 1, minItemBytes);
  }

  #count(n: number, minItemBytes: number): number {
    if (n < -1) throw this.#invalid(`array of ${n} items at ${this.#pos}`);
    if (n * minItemBytes > this.remaining) {
      throw new Failure(
        "bytes.limit",
        `array of ${n} items at ${this.#pos} with ${this.remaining} bytes left`,
        this.#where(),
      );
    }
    return n;
  }

  /** A section of tagged fields: `field` gets a reader over exactly one field; unknown tags are read over by size. */
  taggedFields(field?: (tag: number, value: ByteReader) => void): void {
    const n = this.#count(this.uvarint(), 2);
    for (let i = 0; i < n; i++) {
      const tag = this.uvarint();
      const value = this.slice(this.uvarint());
      field?.(tag, value);
    }
  }
}

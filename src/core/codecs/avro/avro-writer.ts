/** Avro bytes that grow. Integers are written from two words, so that columns need no bigint for a value. */
export class AvroWriter {
  #bytes: Uint8Array<ArrayBuffer> = new Uint8Array(1024);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  reset(): void {
    this.#length = 0;
  }

  /** What was written, until the next write. */
  view(): Uint8Array<ArrayBuffer> {
    return this.#bytes.subarray(0, this.#length);
  }

  #room(n: number): number {
    const at = this.#length;
    if (at + n > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(at + n, 2 * this.#bytes.length));
      grown.set(this.#bytes.subarray(0, at));
      this.#bytes = grown;
    }
    this.#length = at + n;
    return at;
  }

  byte(value: number): void {
    const at = this.#room(1);
    this.#bytes[at] = value;
  }

  raw(bytes: Uint8Array): void {
    const at = this.#room(bytes.length);
    this.#bytes.set(bytes, at);
  }

  /** bytes[from, to). */
  copy(bytes: Uint8Array, from: number, to: number): void {
    const n = to - from;
    let at = this.#room(n);
    if (n > 48) this.#bytes.set(bytes.subarray(from, to), at);
    else for (let i = from; i < to; i++) this.#bytes[at++] = bytes[i]!;
  }

  sized(bytes: Uint8Array): void {
    this.int(bytes.length);
    this.raw(bytes);
  }

  /** Zigzag varint of 32 bits. */
  int(value: number): void {
    this.#words((value << 1) ^ (value >> 31), 0);
  }

  /** Zigzag varint of 64 bits in two words. */
  long(lo: number, hi: number): void {
    const sign = hi >> 31;
    this.#words((lo << 1) ^ sign, ((hi << 1) | (lo >>> 31)) ^ sign);
  }

  bigint(value: bigint): void {
    this.long(Number(BigInt.asIntN(32, value)), Number(BigInt.asIntN(32, value >> 32n)));
  }

  #words(lo: number, hi: number): void {
    const first = this.#room(10);
    let at = first;
    while (hi !== 0 || lo >>> 0 > 127) {
      this.#bytes[at++] = (lo & 127) | 128;
      lo = (lo >>> 7) | (hi << 25);
      hi >>>= 7;
    }
    this.#bytes[at++] = lo;
    this.#length = at;
  }
}

/** Bytes of the wire format that grow as they are written. */
const U64 = (1n << 64n) - 1n;

export class Sink {
  #bytes = new Uint8Array(64);
  #length = 0;

  #room(n: number): void {
    if (this.#length + n <= this.#bytes.length) return;
    const grown = new Uint8Array(Math.max(this.#length + n, this.#bytes.length * 2));
    grown.set(this.#bytes);
    this.#bytes = grown;
  }

  /** The low 64 bits. */
  varint(value: bigint): void {
    this.#room(10);
    let rest = value & U64;
    for (; rest > 0x7fn; rest >>= 7n) this.#bytes[this.#length++] = Number(rest & 0x7fn) | 0x80;
    this.#bytes[this.#length++] = Number(rest);
  }

  tag(number: number, wire: number): void {
    this.varint((BigInt(number) << 3n) | BigInt(wire));
  }

  put(bytes: Uint8Array): void {
    this.#room(bytes.length);
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  block(bytes: Uint8Array): void {
    this.varint(BigInt(bytes.length));
    this.put(bytes);
  }

  fixed(n: 4 | 8, write: (view: DataView) => void): void {
    const view = new DataView(new ArrayBuffer(n));
    write(view);
    this.put(new Uint8Array(view.buffer));
  }

  take(): Uint8Array {
    return this.#bytes.slice(0, this.#length);
  }
}

/** Bytes of the wire format, one payload behind the other, of numbers in words of 32 bits. */
import { GrowingBytes } from "../growing-bytes.ts";

const MAX_VARINT = 10;
/** Shorter pieces are copied by a loop: a view for `set` costs more. */
const SHORT = 48;

export class BlockWriter extends GrowingBytes {
  /** Of 64 bits. */
  varint(low: number, high: number): void {
    this.reserve(MAX_VARINT);
    const b = this.bytes;
    let lo = low >>> 0;
    let hi = high >>> 0;
    let at = this.length;
    for (; hi !== 0; hi >>>= 7) {
      b[at++] = (lo & 0x7f) | 0x80;
      lo = ((lo >>> 7) | (hi << 25)) >>> 0;
    }
    for (; lo > 0x7f; lo >>>= 7) b[at++] = (lo & 0x7f) | 0x80;
    b[at++] = lo;
    this.length = at;
  }

  /** data[from, to). */
  copy(data: Uint8Array, from: number, to: number): void {
    this.reserve(to - from);
    if (to - from > SHORT) this.bytes.set(data.subarray(from, to), this.length);
    else for (let i = from; i < to; i++) this.bytes[this.length + i - from] = data[i]!;
    this.length += to - from;
  }

  /** Behind their length. */
  sized(data: Uint8Array, from: number, to: number): void {
    this.varint(to - from, 0);
    this.copy(data, from, to);
  }

  /** Begins what stands behind its length; `close` is told what this gave. */
  open(): number {
    this.reserve(1);
    this.length++;
    return this.length;
  }

  close(start: number): void {
    const size = this.length - start;
    // A byte was left free for the length; what is longer than it says moves.
    let more = 0;
    for (let rest = size >>> 7; rest > 0; rest >>>= 7) more++;
    if (more > 0) {
      this.reserve(more);
      this.bytes.copyWithin(start + more, start, start + size);
    }
    this.length = start - 1;
    this.varint(size, 0);
    this.length += size;
  }
}

/**
 * Definition and repetition levels in the RLE / bit-packed hybrid (parquet-format Encodings.md, RLE = 3).
 *
 *   run       := header value*            header is an unsigned varint
 *   rle       := (count << 1)      value in ceil(width / 8) bytes
 *   packed    := (groups << 1 | 1) 8 * groups values, `width` bits each, least significant bit first
 *
 * `add(level, count)` costs the same for one row and for a million, which is what makes null and constant columns
 * free. Short runs go into packed groups of eight.
 */
import { putUvarint } from "./thrift.ts";

/** Most groups of a packed run whose header still fits the one byte that is kept for it. */
const MOST_GROUPS = 63;
/** A run of fewer equal levels than this is cheaper packed. */
const RLE_FROM = 8;

export class LevelWriter {
  readonly #width: number;
  #out: Uint8Array;
  #length = 0;
  #count = 0;
  #value = 0;
  #repeated = 0;
  readonly #group = new Uint8Array(8);
  #pending = 0;
  /** Where the header byte of the open packed run is, -1: none open. */
  #packedAt = -1;
  #groups = 0;

  /** `maxLevel` 1 to 15: a packed group is one word. */
  constructor(maxLevel: number) {
    this.#width = 32 - Math.clz32(maxLevel);
    this.#out = new Uint8Array(16);
  }

  /** Levels added since the last `reset`. */
  get count(): number {
    return this.#count;
  }

  get capacity(): number {
    return this.#out.length;
  }

  reset(): void {
    this.#length = 0;
    this.#count = 0;
    this.#repeated = 0;
    this.#pending = 0;
    this.#packedAt = -1;
    this.#groups = 0;
  }

  add(level: number, count: number): void {
    this.#count += count;
    if (level === this.#value) {
      this.#repeated += count;
      return;
    }
    this.#endRepeat();
    this.#value = level;
    this.#repeated = count;
  }

  /** Ends the levels and returns them; a view that lives until `reset`. Nothing may be added before that. */
  finish(): Uint8Array {
    this.#endRepeat();
    if (this.#pending > 0) {
      this.#group.fill(0, this.#pending);
      this.#packGroup();
    }
    this.#closePacked();
    return this.#out.subarray(0, this.#length);
  }

  #room(n: number): void {
    if (this.#length + n <= this.#out.length) return;
    const grown = new Uint8Array(Math.max(this.#out.length * 2, this.#length + n));
    grown.set(this.#out.subarray(0, this.#length));
    this.#out = grown;
  }

  #endRepeat(): void {
    let left = this.#repeated;
    this.#repeated = 0;
    // A packed group that was begun must be filled up first: an RLE run can only start after a whole one.
    while (left > 0 && this.#pending > 0) {
      this.#push(this.#value);
      left--;
    }
    if (left >= RLE_FROM) {
      this.#closePacked();
      this.#room(6);
      this.#length = putUvarint(this.#out, this.#length, left * 2);
      this.#out[this.#length++] = this.#value;
      return;
    }
    while (left-- > 0) this.#push(this.#value);
  }

  #push(level: number): void {
    this.#group[this.#pending++] = level;
    if (this.#pending === 8) this.#packGroup();
  }

  #packGroup(): void {
    if (this.#packedAt < 0 || this.#groups === MOST_GROUPS) {
      this.#closePacked();
      this.#room(1);
      this.#packedAt = this.#length++;
    }
    this.#room(this.#width);
    let bits = 0;
    for (let i = 0; i < 8; i++) bits |= this.#group[i]! << (i * this.#width);
    for (let b = 0; b < this.#width; b++) this.#out[this.#length++] = bits >>> (8 * b);
    this.#groups++;
    this.#pending = 0;
  }

  #closePacked(): void {
    if (this.#packedAt >= 0) this.#out[this.#packedAt] = (this.#groups << 1) | 1;
    this.#packedAt = -1;
    this.#groups = 0;
  }
}

/** Levels as a version 1 data page has them: int32 little endian length, then the runs. */
export function putLevels(out: Uint8Array, at: number, levels: Uint8Array): number {
  const n = levels.length;
  out[at] = n;
  out[at + 1] = n >>> 8;
  out[at + 2] = n >>> 16;
  out[at + 3] = n >>> 24;
  out.set(levels, at + 4);
  return at + 4 + n;
}

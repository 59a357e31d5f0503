/** DELTA_BINARY_PACKED read back (see delta.ts for the layout). Arithmetic wraps, as the format says. */
import { PageDamage } from "./stored-pages.ts";

/** Values of a miniblock come in such groups. */
const GROUP = 32;
/** Blocks are some 128 to 2048 values. */
const MOST_BLOCK = 65_536;

class DeltaHead {
  at: number;
  readonly block: number;
  readonly mini: number;
  readonly minis: number;
  readonly count: number;
  /** Of the zigzag number that was read last. */
  low = 0;
  high = 0;
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array, at: number) {
    this.#bytes = bytes;
    this.at = at;
    this.block = this.#uvarint();
    this.minis = this.#uvarint();
    this.count = this.#uvarint();
    this.mini = this.block / this.minis;
    const odd = this.block === 0 || this.block > MOST_BLOCK || this.mini % GROUP !== 0;
    if (odd) throw new PageDamage(`blocks of ${this.block} deltas in ${this.minis} parts`);
    this.zigzag();
  }

  #uvarint(): number {
    let n = 0;
    for (let scale = 1, i = 0; i < 5; i++, scale *= 128) {
      const b = this.#bytes[this.at++];
      if (b === undefined) break;
      n += (b & 0x7f) * scale;
      if (b < 0x80) return n;
    }
    throw new PageDamage("a number of a delta block has no end");
  }

  /** Into `low` and `high`. */
  zigzag(): void {
    let low = 0;
    let high = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      const b = this.#bytes[this.at++];
      if (b === undefined) break;
      const bits = b & 0x7f;
      if (shift < 32) low |= bits << shift;
      if (shift > 25) high |= shift < 32 ? bits >>> (32 - shift) : bits << (shift - 32);
      if (b < 0x80) {
        const sign = -(low & 1);
        this.low = ((low >>> 1) | (high << 31)) ^ sign;
        this.high = (high >>> 1) ^ sign;
        return;
      }
    }
    throw new PageDamage("a delta has no end");
  }

  /** The widths of a block's parts: where they begin; `at` is behind them. */
  widths(): number {
    const from = this.at;
    this.at += this.minis;
    if (this.at > this.#bytes.length) throw new PageDamage("a delta block is cut");
    return from;
  }

  /** `bytes` of packed deltas are there. */
  room(bytes: number): void {
    if (this.at + bytes > this.#bytes.length) throw new PageDamage("packed deltas are cut");
  }
}

/** `width` (1 to 32) bits from bit `bit` on, counted from the least significant of bytes[0]. */
function bitsAt(bytes: Uint8Array, bit: number, width: number): number {
  const i = bit >>> 3;
  const s = bit & 7;
  let word = (bytes[i]! | (bytes[i + 1]! << 8) | (bytes[i + 2]! << 16) | (bytes[i + 3]! << 24)) >>> s;
  if (s + width > 32) word |= bytes[i + 4]! << (32 - s);
  return width === 32 ? word : word & ((1 << width) - 1);
}

/** Deltas of one part of a block: where they are, how many bits each has, and what is to be added to each. */
interface Part {
  readonly at: number;
  readonly width: number;
  readonly stepLow: number;
  readonly stepHigh: number;
  /** Numbers of the values that they lead to. */
  readonly from: number;
  readonly to: number;
}

/** The parts after the first value. Returns the position after the last of them. */
function eachPart(bytes: Uint8Array, d: DeltaHead, widest: number, take: (part: Part) => void): number {
  const { count, mini } = d;
  for (let from = 1; from < count; ) {
    d.zigzag();
    const { low: stepLow, high: stepHigh } = d;
    const widths = d.widths();
    for (let m = 0; m < d.minis && from < count; m++) {
      const width = bytes[widths + m]!;
      if (width > widest) throw new PageDamage(`deltas of ${width} bits`);
      const to = Math.min(count, from + mini);
      d.room((mini * width) >> 3);
      take({ at: d.at, width, stepLow, stepHigh, from, to });
      d.at += (mini * width) >> 3;
      from = to;
    }
  }
  return d.at;
}

/**
 * The lengths of `count` values at `at`: out[i + 1] = out[i] + the length of value i. Returns the position after them.
 * `out` has room for count + 1, and out[0] is given.
 */
export function readDeltaLengths(bytes: Uint8Array, at: number, count: number, out: Int32Array): number {
  const d = new DeltaHead(bytes, at);
  if (d.count !== count) throw new PageDamage(`${d.count} lengths of ${count} values`);
  if (count === 0) return d.at;
  out[1] = out[0]! + d.low;
  let least = d.low;
  const end = eachPart(bytes, d, 32, (part) => {
    least = Math.min(least, addLengths(bytes, part, out));
  });
  if (least < 0 || out[count]! > bytes.length) throw new PageDamage("a value is longer than its page");
  return end;
}

/** Returns the least of the lengths and of their ends. */
function addLengths(bytes: Uint8Array, { at, width, stepLow, from, to }: Part, out: Int32Array): number {
  let end = out[from]!;
  let length = (end - out[from - 1]!) | 0;
  let least = 0x7fffffff;
  for (let n = from, bit = 8 * at; n < to; n++, bit += width) {
    length = (length + stepLow + (width === 0 ? 0 : bitsAt(bytes, bit, width))) | 0;
    end = (end + length) | 0;
    // A sum that does not fit is below zero too.
    least = Math.min(least, length, end);
    out[n + 1] = end;
  }
  return least;
}

/** `count` int64 values at `at` as pairs, low half first, into `out`. Returns the position after them. */
export function readDeltaPairs(bytes: Uint8Array, at: number, count: number, out: Int32Array): number {
  const d = new DeltaHead(bytes, at);
  if (d.count !== count) throw new PageDamage(`${d.count} numbers, not ${count}`);
  if (count === 0) return d.at;
  out[0] = d.low;
  out[1] = d.high;
  return eachPart(bytes, d, 64, (part) => {
    if (part.width > 0) addPacked(bytes, part, out);
    else addSteps(part, out);
  });
}

function addSteps({ stepLow, stepHigh, from, to }: Part, out: Int32Array): void {
  let low = out[2 * from - 2]!;
  let high = out[2 * from - 1]!;
  for (let n = from; n < to; n++) {
    const sum = (low + stepLow) | 0;
    high = (high + stepHigh + (sum >>> 0 < low >>> 0 ? 1 : 0)) | 0;
    low = sum;
    out[2 * n] = low;
    out[2 * n + 1] = high;
  }
}

function addPacked(
  bytes: Uint8Array,
  { at, width, stepLow, stepHigh, from, to }: Part,
  out: Int32Array,
): void {
  let low = out[2 * from - 2]!;
  let high = out[2 * from - 1]!;
  for (let n = from, bit = 8 * at; n < to; n++, bit += width) {
    const packed = bitsAt(bytes, bit, Math.min(width, 32));
    const deltaLow = (stepLow + packed) | 0;
    let deltaHigh = stepHigh + (width > 32 ? bitsAt(bytes, bit + 32, width - 32) : 0);
    if (deltaLow >>> 0 < packed >>> 0) deltaHigh++;
    const sum = (low + deltaLow) | 0;
    high = (high + deltaHigh + (sum >>> 0 < low >>> 0 ? 1 : 0)) | 0;
    low = sum;
    out[2 * n] = low;
    out[2 * n + 1] = high;
  }
}

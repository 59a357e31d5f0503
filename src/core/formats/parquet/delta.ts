/**
 * DELTA_BINARY_PACKED (parquet-format Encodings.md, DELTA_BINARY_PACKED = 5):
 *
 *   header := block size (128), miniblocks a block (4), count, zigzag first value     (unsigned varints)
 *   block  := zigzag least delta, one width byte a miniblock, then each miniblock's 32 values of that many bits
 *
 * Consecutive offsets have one delta, so a block of 128 rows is six bytes. Arithmetic wraps, as the format says.
 * int64 values come as int32 pairs, low half first: no BigInt is made per value.
 */
import { putUvarint, putZigzag64 } from "./thrift.ts";

const BLOCK = 128;
const MINIBLOCKS = 4;
const MINI = BLOCK / MINIBLOCKS;

/** Room that `count` values may take at worst. */
export function deltaBound(count: number, valueBytes: 4 | 8): number {
  return 40 + Math.ceil(count / BLOCK) * (10 + MINIBLOCKS + BLOCK * valueBytes);
}

const lows = new Int32Array(BLOCK);
const highs = new Int32Array(BLOCK);

/** `values[0, count)` as INT32. Returns the position after the last byte. */
export function putDeltaInt32(values: Int32Array, count: number, out: Uint8Array, at: number): number {
  at = putHeader(out, at, count);
  const first = count > 0 ? values[0]! : 0;
  at = putZigzag64(out, at, first, first >> 31);
  for (let from = 1; from < count; from += BLOCK) {
    const n = Math.min(BLOCK, count - from);
    let least = 0x7fffffff;
    for (let i = 0; i < n; i++) {
      const d = (values[from + i]! - values[from + i - 1]!) | 0;
      lows[i] = d;
      if (d < least) least = d;
    }
    for (let i = 0; i < n; i++) lows[i] = lows[i]! - least;
    lows.fill(0, n);
    at = putZigzag64(out, at, least, least >> 31);
    at = putMiniblocks(out, at, n, false);
  }
  return at;
}

/** `count` int64 values as pairs from `pairs[0]` on. */
export function putDeltaInt64(pairs: Int32Array, count: number, out: Uint8Array, at: number): number {
  at = putHeader(out, at, count);
  at = putZigzag64(out, at, count > 0 ? pairs[0]! : 0, count > 0 ? pairs[1]! : 0);
  for (let from = 1; from < count; from += BLOCK) {
    at = putBlock64(pairs, from, Math.min(BLOCK, count - from), out, at);
  }
  return at;
}

function putHeader(out: Uint8Array, at: number, count: number): number {
  at = putUvarint(out, at, BLOCK);
  at = putUvarint(out, at, MINIBLOCKS);
  return putUvarint(out, at, count);
}

function putBlock64(pairs: Int32Array, from: number, n: number, out: Uint8Array, at: number): number {
  let leastLow = -1;
  let leastHigh = 0x7fffffff;
  for (let i = 0, p = 2 * from; i < n; i++, p += 2) {
    const low = pairs[p]!;
    const before = pairs[p - 2]!;
    const borrow = low >>> 0 < before >>> 0 ? 1 : 0;
    const dLow = (low - before) | 0;
    const dHigh = (pairs[p + 1]! - pairs[p - 1]! - borrow) | 0;
    lows[i] = dLow;
    highs[i] = dHigh;
    if (dHigh < leastHigh || (dHigh === leastHigh && dLow >>> 0 < leastLow >>> 0)) {
      leastHigh = dHigh;
      leastLow = dLow;
    }
  }
  let wide = 0;
  for (let i = 0; i < n; i++) {
    const low = lows[i]!;
    const borrow = low >>> 0 < leastLow >>> 0 ? 1 : 0;
    lows[i] = low - leastLow;
    const high = (highs[i]! - leastHigh - borrow) | 0;
    highs[i] = high;
    wide |= high;
  }
  lows.fill(0, n);
  if (wide !== 0) highs.fill(0, n);
  at = putZigzag64(out, at, leastLow, leastHigh);
  return putMiniblocks(out, at, n, wide !== 0);
}

/** The block in `lows` (and `highs`); values at and after n are zero. */
function putMiniblocks(out: Uint8Array, at: number, n: number, wide: boolean): number {
  const widthsAt = at;
  at += MINIBLOCKS;
  for (let m = 0; m < MINIBLOCKS; m++) {
    const start = m * MINI;
    const width = start < n ? miniblockWidth(start, wide) : 0;
    out[widthsAt + m] = width;
    if (width > 32) at = packWide(out, at, start, width);
    else if (width > 0) at = pack(out, at, start, width);
  }
  return at;
}

function miniblockWidth(start: number, wide: boolean): number {
  let low = 0;
  let high = 0;
  for (let i = start; i < start + MINI; i++) low |= lows[i]!;
  if (wide) for (let i = start; i < start + MINI; i++) high |= highs[i]!;
  return high !== 0 ? 64 - Math.clz32(high) : 32 - Math.clz32(low);
}

function putWord(out: Uint8Array, at: number, word: number): number {
  out[at] = word;
  out[at + 1] = word >>> 8;
  out[at + 2] = word >>> 16;
  out[at + 3] = word >>> 24;
  return at + 4;
}

function pack(out: Uint8Array, at: number, start: number, width: number): number {
  let word = 0;
  let bits = 0;
  for (let i = start; i < start + MINI; i++) {
    const v = lows[i]!;
    word |= v << bits;
    bits += width;
    if (bits >= 32) {
      at = putWord(out, at, word);
      bits -= 32;
      word = bits > 0 ? v >>> (width - bits) : 0;
    }
  }
  return at;
}

/** 33 to 64 bits: the low word whole, then the rest of the high one. */
function packWide(out: Uint8Array, at: number, start: number, width: number): number {
  let word = 0;
  let bits = 0;
  const push = (v: number, w: number) => {
    word |= v << bits;
    bits += w;
    if (bits < 32) return;
    at = putWord(out, at, word);
    bits -= 32;
    word = bits > 0 ? v >>> (w - bits) : 0;
  };
  for (let i = start; i < start + MINI; i++) {
    push(lows[i]!, 32);
    push(highs[i]!, width - 32);
  }
  return at;
}

/** Well-known messages that are a scalar, and keys of maps: read for generated code, results in `out` and `quad`. */
import { ODD, out, skipValue, tagAt, varint64 } from "./wire.ts";

/** 128 bits, low word first. */
export const quad: Int32Array = new Int32Array(4);

const MIN_SECONDS = -62_135_596_800;
const MAX_SECONDS = 253_402_300_799;
const MAX_DURATION = 315_576_000_000;
const E9 = 1_000_000_000;
const TWO32 = 0x1_0000_0000;

let seconds = 0;
let nanos = 0;

/** {int64 seconds = 1, int32 nanos = 2}; seconds beyond 2^53 come out as what they round to, far outside of what is allowed. */
function secondsAndNanos(b: Uint8Array, p: number, e: number, depth: number): void {
  seconds = 0;
  nanos = 0;
  while (p < e) {
    p = tagAt(b, p);
    const tag = out[0]!;
    if (tag === 8) {
      p = varint64(b, p);
      seconds = out[1]! * TWO32 + (out[0]! >>> 0);
    } else if (tag === 16) {
      p = varint64(b, p);
      nanos = out[0]!;
    } else p = skipValue(b, p, e, tag, depth);
  }
  if (p !== e) throw ODD;
}

/** A Timestamp as nanoseconds since 1970, 64 bits in `out`. */
export function instant(b: Uint8Array, p: number, e: number, depth: number): void {
  secondsAndNanos(b, p, e, depth);
  if (seconds < MIN_SECONDS || seconds > MAX_SECONDS || nanos < 0 || nanos >= E9) throw ODD;
  product();
  // The upper half must be the sign of the lower.
  if (quad[2] !== quad[1]! >> 31 || quad[3] !== quad[2]) throw ODD;
  out[0] = quad[0]!;
  out[1] = quad[1]!;
}

/** A Duration as 10^-9 seconds, 128 bits in `quad`. */
export function lapse(b: Uint8Array, p: number, e: number, depth: number): void {
  secondsAndNanos(b, p, e, depth);
  if (Math.abs(seconds) > MAX_DURATION || Math.abs(nanos) >= E9) throw ODD;
  if ((seconds < 0 && nanos > 0) || (seconds > 0 && nanos < 0)) throw ODD;
  product();
}

/** seconds * 10^9 + nanos into `quad`; seconds of up to 39 bits. */
function product(): void {
  const high = Math.floor(seconds / 0x10_0000);
  const low = seconds - high * 0x10_0000;
  // Both below 2^50, so exact.
  const a = high * E9;
  const c = low * E9 + nanos;
  // a * 2^20 + c in words of 32 bits.
  const aHigh = Math.floor(a / 0x1000);
  const aLow = (a - aHigh * 0x1000) * 0x10_0000;
  const cHigh = Math.floor(c / TWO32);
  const sum = aLow + (c - cHigh * TWO32);
  const carry = Math.floor(sum / TWO32);
  const top = aHigh + cHigh + carry;
  const topHigh = Math.floor(top / TWO32);
  quad[0] = sum | 0;
  quad[1] = (top - topHigh * TWO32) | 0;
  quad[2] = topHigh | 0;
  quad[3] = topHigh < 0 ? -1 : 0;
}

/** A message without known fields: what is in it must be well formed all the same. */
export function emptyMessage(b: Uint8Array, p: number, e: number, depth: number): void {
  while (p < e) {
    p = tagAt(b, p);
    p = skipValue(b, p, e, out[0]!, depth);
  }
  if (p !== e) throw ODD;
}

/** Above so many keys a set finds one that is there twice; below, comparing each with each. */
const FEW = 12;

export function twiceBool(bits: Uint8Array, from: number, to: number): boolean {
  const bit = (i: number) => (bits[i >> 3]! >> (i & 7)) & 1;
  return to - from > 2 || bit(from) === bit(from + 1);
}

export function twice32(v: Int32Array, from: number, to: number): boolean {
  if (to - from > FEW) return new Set(v.subarray(from, to)).size < to - from;
  for (let i = from; i < to; i++) for (let j = from; j < i; j++) if (v[i] === v[j]) return true;
  return false;
}

export function twice64(v: Int32Array, from: number, to: number): boolean {
  if (to - from > FEW) {
    const words = new BigInt64Array(v.buffer, from * 8, to - from);
    return new Set(words).size < to - from;
  }
  for (let i = from; i < to; i++) {
    for (let j = from; j < i; j++) if (v[2 * i] === v[2 * j] && v[2 * i + 1] === v[2 * j + 1]) return true;
  }
  return false;
}

export function twiceBytes(o: Int32Array, d: Uint8Array, from: number, to: number): boolean {
  if (to - from > FEW) {
    const keys = new Set<string>();
    for (let i = from; i < to; i++) keys.add(UTF8.decode(d.subarray(o[i], o[i + 1])));
    return keys.size < to - from;
  }
  for (let i = from; i < to; i++) {
    for (let j = from; j < i; j++) if (sameBytes(o, d, i, j)) return true;
  }
  return false;
}

/** Keys are UTF-8, checked before. */
const UTF8 = new TextDecoder("utf-8", { ignoreBOM: true });

function sameBytes(o: Int32Array, d: Uint8Array, i: number, j: number): boolean {
  const n = o[i + 1]! - o[i]!;
  if (o[j + 1]! - o[j]! !== n) return false;
  for (let k = 0; k < n; k++) if (d[o[i]! + k] !== d[o[j]! + k]) return false;
  return true;
}

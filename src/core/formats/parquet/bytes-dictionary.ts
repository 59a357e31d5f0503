/**
 * Dictionaries of byte strings: whether a column has one is guessed from a sample of it, so that unique values are not
 * hashed. Indices are bit-packed (parquet-format Encodings.md, RLE_DICTIONARY = 8).
 */
import type { DenseBytes } from "./dense-values.ts";
import { putUvarint } from "./thrift.ts";

/** Distinct values at which there is none. */
const MOST_VALUES = 4096;
const SLOTS = 4 * MOST_VALUES;
/** A dictionary of fewer values than this is not worth its page. */
const LEAST_VALUES = 64;
const SAMPLE = 512;
/** Distinct values of the sample from which on there is none: each repeats eight times. */
const SAMPLE_DISTINCT = SAMPLE / 8;
/** Mean length above which comparing values costs more than it saves. */
const LONG_BYTES = 128;

export interface Dictionary {
  /** Rows of the values at which each was met first. */
  readonly firsts: Int32Array;
  /** Of each value, into `firsts`. */
  readonly indices: Int32Array;
}

const slots = new Int32Array(SLOTS);

/** Null: the column has none. */
export function bytesDictionary(values: DenseBytes): Dictionary | null {
  const { count, offsets } = values;
  if (count < LEAST_VALUES || offsets[count]! - offsets[0]! > count * LONG_BYTES) return null;
  const step = Math.floor(count / Math.min(count, SAMPLE));
  if (build(values, step, SAMPLE_DISTINCT) === null) return null;
  return build(values, 1, MOST_VALUES);
}

/** Every `step`-th value; null: there are more than `most` different ones. */
function build({ count, offsets, data }: DenseBytes, step: number, most: number): Dictionary | null {
  slots.fill(-1);
  const firsts = new Int32Array(most);
  const indices = new Int32Array(count);
  let size = 0;
  let last = -1;
  for (let i = 0; i < count; i += step) {
    const from = offsets[i]!;
    const to = offsets[i + 1]!;
    if (last >= 0 && sameBytes(data, from, to, offsets[firsts[last]!]!, offsets[firsts[last]! + 1]!)) {
      indices[i] = last;
      continue;
    }
    let slot = hash(data, from, to) & (SLOTS - 1);
    let found = slots[slot]!;
    while (found >= 0 && !sameBytes(data, from, to, offsets[firsts[found]!]!, offsets[firsts[found]! + 1]!)) {
      slot = (slot + 1) & (SLOTS - 1);
      found = slots[slot]!;
    }
    if (found < 0) {
      if (size === most) return null;
      found = size++;
      firsts[found] = i;
      slots[slot] = found;
    }
    indices[i] = found;
    last = found;
  }
  return { firsts: firsts.subarray(0, size), indices };
}

/** FNV-1a, its low bits mixed with the high ones. */
function hash(data: Uint8Array, from: number, to: number): number {
  let h = -2128831035 ^ (to - from);
  for (let i = from; i < to; i++) h = Math.imul(h ^ data[i]!, 16777619);
  return h ^ (h >>> 15);
}

function sameBytes(data: Uint8Array, a: number, aEnd: number, b: number, bEnd: number): boolean {
  if (aEnd - a !== bEnd - b) return false;
  while (a < aEnd) if (data[a++] !== data[b++]) return false;
  return true;
}

/** Most bytes of `count` indices. */
export function indicesBound(count: number, values: number): number {
  return 8 + Math.ceil(count / 8) * indexWidth(values);
}

function indexWidth(values: number): number {
  return Math.max(1, 32 - Math.clz32(values - 1));
}

/** Bit width, then the indices [from, to) as one run, for a dictionary of so many values. Returns the end. */
export function putIndices(
  indices: Int32Array,
  from: number,
  to: number,
  values: number,
  out: Uint8Array,
  at: number,
): number {
  const width = indexWidth(values);
  out[at++] = width;
  if (values === 1) {
    at = putUvarint(out, at, 2 * (to - from));
    out[at++] = 0;
    return at;
  }
  const groups = (to - from + 7) >> 3;
  at = putUvarint(out, at, 2 * groups + 1);
  const end = at + groups * width;
  let word = 0;
  let bits = 0;
  for (let i = from; i < to; i++) {
    word |= indices[i]! << bits;
    for (bits += width; bits >= 8; bits -= 8) {
      out[at++] = word;
      word >>>= 8;
    }
  }
  if (bits > 0) out[at++] = word;
  out.fill(0, at, end);
  return end;
}

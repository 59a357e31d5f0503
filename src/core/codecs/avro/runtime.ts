/** What generated code calls: pieces that are the same for every schema. Positions of -1 mean: refused. */
import { BytesBuilder, type ColumnBuilder } from "../../types/column-builder.ts";
import type { Layout } from "./layout.ts";

/** Values of no bytes that one payload may have: an array of nulls names any number of them in a few bytes. */
export const MOST_EMPTY = 65_536;
/** Nesting of a payload. */
export const MOST_DEPTH = 128;
/** Microseconds and nanoseconds of a day. */
export const DAY_US = 86_400_000_000;
export const DAY_NS = 86_400_000_000_000;

/** The zigzag varint at `p` as two words to out[at]; gives the position behind it. */
export function readLong(bytes: Uint8Array, p: number, end: number, out: Int32Array, at: number): number {
  let lo = 0;
  let hi = 0;
  let shift = 0;
  for (;;) {
    if (p >= end || shift > 63) return -1;
    const b = bytes[p++]!;
    if (shift < 28) lo |= (b & 127) << shift;
    else if (shift === 28) {
      lo |= (b & 15) << 28;
      hi = (b >> 4) & 7;
    } else {
      if (shift === 63 && b > 1) return -1;
      hi |= (b & 127) << (shift - 32);
    }
    if (b < 128) break;
    shift += 7;
  }
  const sign = -(lo & 1);
  out[at] = ((lo >>> 1) | (hi << 31)) ^ sign;
  out[at + 1] = (hi >>> 1) ^ sign;
  return p;
}

const DOUBLE = new Float64Array(1);
const FLOAT = new Float32Array(1);
const FLOAT_BITS = new Int32Array(FLOAT.buffer);

/** A 64-bit integer as the nearest float: rounded once, as a detour over a double would not be. */
export function longToFloat(lo: number, hi: number): number {
  // Above 2^53 the low bits only say whether the value is exact.
  if (hi >= 0x200000 || hi < -0x200000) lo = (lo & ~0x7ff) | ((lo & 0x7ff) === 0 ? 0 : 0x400);
  return Math.fround(hi * 4294967296 + (lo >>> 0));
}

function floatBits(lo: number, hi: number): number {
  FLOAT[0] = longToFloat(lo, hi);
  return FLOAT_BITS[0]!;
}

/** 10^precision as four words, least first. */
export function decimalLimit(precision: number): Uint32Array {
  const limit = 10n ** BigInt(precision);
  return Uint32Array.from([0n, 32n, 64n, 96n], (shift) => Number((limit >> shift) & 0xffffffffn));
}

/** Big-endian two's complement bytes[p, p+n) as 16 little-endian bytes; false if they are none below the limit. */
function decimal(
  bytes: Uint8Array,
  p: number,
  n: number,
  out: Int32Array,
  at: number,
  limit: Uint32Array,
): boolean {
  if (n === 0) return false;
  const sign = bytes[p]! > 127 ? -1 : 0;
  const fill = sign & 255;
  for (; n > 16; n--, p++) if (bytes[p] !== fill || bytes[p + 1]! >> 7 !== fill >> 7) return false;
  const end = p + n;
  for (let w = 0; w < 4; w++) {
    let word = 0;
    for (let i = 0; i < 4; i++) {
      const from = end - 1 - 4 * w - i;
      word |= (from >= p ? bytes[from]! : fill) << (8 * i);
    }
    out[at + w] = word;
  }
  return isBelow(out, at, sign, limit);
}

/** Whether the value's amount is below the limit. */
function isBelow(words: Int32Array, at: number, sign: number, limit: Uint32Array): boolean {
  let carry = sign & 1;
  let order = -1;
  for (let w = 0; w < 4; w++) {
    const amount = ((words[at + w]! ^ sign) >>> 0) + carry;
    carry = amount > 0xffffffff ? 1 : 0;
    const word = amount >>> 0;
    const bound = limit[w]!;
    if (word !== bound) order = word < bound ? -1 : 1;
    else if (w === 0) order = 0;
  }
  return carry === 0 && order < 0;
}

const DASHES = [8, 13, 18, 23];

/** The text of a UUID as 16 bytes; false if it is none. */
export function uuidBytes(bytes: Uint8Array, p: number, n: number, out: Uint8Array, at: number): boolean {
  if (n !== 36) return false;
  for (const d of DASHES) if (bytes[p + d] !== 45) return false;
  let high = -1;
  for (let i = 0; i < 36; i++) {
    if (i === 8 || i === 13 || i === 18 || i === 23) continue;
    const digit = hexDigit(bytes[p + i]!);
    if (digit < 0) return false;
    if (high < 0) high = digit;
    else {
      out[at++] = (high << 4) | digit;
      high = -1;
    }
  }
  return true;
}

function hexDigit(c: number): number {
  if (c >= 48 && c <= 57) return c - 48;
  const letter = c | 32;
  return letter >= 97 && letter <= 102 ? letter - 87 : -1;
}

/** Months, days and milliseconds, little endian, to an interval; false if one does not fit. */
function duration(bytes: Uint8Array, p: number, out: Int32Array, at: number): boolean {
  const word = (i: number) =>
    bytes[p + i]! | (bytes[p + i + 1]! << 8) | (bytes[p + i + 2]! << 16) | (bytes[p + i + 3]! << 24);
  const months = word(0);
  const days = word(4);
  if (months < 0 || days < 0) return false;
  const nanoseconds = (word(8) >>> 0) * 1_000_000;
  out[at] = months;
  out[at + 1] = days;
  out[at + 2] = nanoseconds | 0;
  out[at + 3] = Math.floor(nanoseconds / 4294967296);
  return true;
}

/** Whether two of the keys [from, to) are the same. */
export function hasTwice(offsets: Int32Array, data: Uint8Array, from: number, to: number): boolean {
  if (to - from > 8) {
    const seen = new Set<string>();
    for (let i = from; i < to; i++) seen.add(KEY_TEXT.decode(data.subarray(offsets[i]!, offsets[i + 1]!)));
    return seen.size < to - from;
  }
  for (let i = from + 1; i < to; i++)
    for (let j = from; j < i; j++) if (areEqual(offsets, data, i, j)) return true;
  return false;
}

/** A character a byte, so that bytes that are no UTF-8 stay apart. */
const KEY_TEXT = new TextDecoder("latin1");

function areEqual(offsets: Int32Array, data: Uint8Array, i: number, j: number): boolean {
  const a = offsets[i]!;
  const b = offsets[j]!;
  const n = offsets[i + 1]! - a;
  if (offsets[j + 1]! - b !== n) return false;
  for (let k = 0; k < n; k++) if (data[a + k] !== data[b + k]) return false;
  return true;
}

/** Rows [from, to] are valid again; gives how many were not. */
function heal(bits: Uint8Array, from: number, to: number): number {
  let healed = 0;
  for (let row = from; row <= to; row++) {
    const bit = 1 << (row & 7);
    if ((bits[row >> 3]! & bit) !== 0) continue;
    bits[row >> 3]! |= bit;
    healed++;
  }
  return healed;
}

const FEW_ROWS = 64;

/** What generated code is given. `json`, `text` and `skip` follow a plan without being generated. */
export interface Runtime {
  readonly long: typeof readLong;
  readonly floatBits: typeof floatBits;
  readonly decimal: typeof decimal;
  readonly uuid: typeof uuidBytes;
  readonly duration: typeof duration;
  readonly twice: typeof hasTwice;
  readonly heal: typeof heal;
  /** Two words for what is not stored as it was read. */
  readonly words: Int32Array;
  readonly float: Float32Array;
  readonly floatWord: Int32Array;
  readonly double: Float64Array;
  readonly doubleWords: Int32Array;
  readonly view: (bytes: Uint8Array) => DataView;
  /** More room for the items of a list that has `rows` of them; gives how many there is room for then. */
  readonly reserve: (builders: readonly ColumnBuilder[], list: number, rows: number, more: number) => number;
  /** Room for `more` bytes behind those of `row` rows, and for a word more. */
  readonly room: (builder: ColumnBuilder, row: number, more: number) => Uint8Array;
  readonly copy: (from: Uint8Array, p: number, n: number, to: Uint8Array, at: number) => void;
  readonly utf8: (bytes: Uint8Array, p: number, n: number) => boolean;
  /** Numbered pieces (`Generated.pieces`): the position behind the value; its text is in `spelled`. */
  readonly spell: (piece: number, bytes: Uint8Array, p: number, end: number) => number;
  readonly skip: (piece: number, bytes: Uint8Array, p: number, end: number) => number;
  spelled: Uint8Array;
  /** Items of no bytes that the payload has had so far. */
  empty: number;
  /** Bits of all bytes of text that were copied. */
  seen: number;
}

export function runtimeOf(
  layout: Layout,
  isUtf8: (bytes: Uint8Array) => boolean,
  slow: Pick<Runtime, "spell" | "skip">,
): Runtime {
  const rowsOf = new Map<number, number[]>();
  for (const s of layout.slots) {
    if (s.dimension !== null) rowsOf.set(s.dimension, [...(rowsOf.get(s.dimension) ?? []), s.id]);
  }
  const self: Runtime = {
    long: readLong,
    floatBits,
    decimal,
    uuid: uuidBytes,
    duration,
    twice: hasTwice,
    heal,
    words: new Int32Array(2),
    float: FLOAT,
    floatWord: FLOAT_BITS,
    double: DOUBLE,
    doubleWords: new Int32Array(DOUBLE.buffer),
    view: (bytes) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength),
    reserve(builders, list, rows, more) {
      const room = Math.max(more, rows >> 2, FEW_ROWS);
      // Children of a struct are in the list too: each is told its rows before any makes room.
      for (const id of rowsOf.get(list)!) builders[id]!.rows = rows;
      for (const id of rowsOf.get(list)!) builders[id]!.reserve(room);
      return rows + room;
    },
    room(builder, row, more) {
      if (!(builder instanceof BytesBuilder)) throw new Error("a column of text is none");
      builder.rows = row;
      builder.reserveBytes(more + 4);
      return builder.data;
    },
    copy: (from, p, n, to, at) => to.set(from.subarray(p, p + n), at),
    utf8: (bytes, p, n) => n === 0 || isUtf8(bytes.subarray(p, p + n)),
    ...slow,
    spelled: new Uint8Array(0),
    empty: 0,
    seen: 0,
  };
  return self;
}

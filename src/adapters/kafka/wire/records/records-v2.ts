/**
 * The records of one v2 batch, uncompressed, into columns. Layout (KIP-98), all numbers zigzag varints but the first
 * two bytes' places:
 *
 *   length | attributes 1 byte | timestamp delta (64 bit) | offset delta | key length, key | value length, value
 *   | header count | (key length, key, value length, value)*
 *
 * The loop makes no object and no bigint; 64-bit numbers are two int32 halves.
 */
import { Failure } from "../../../../core/failure/failure.ts";
import { type BatchColumns, type BatchFacts, MAX_BYTES, MAX_ROWS } from "./batch-columns.ts";

/** What the loop needs of a batch header, split in halves for arithmetic. */
export interface RecordsPlace {
  /** Where the records begin in `columns.values.bytes`, and their end. */
  readonly start: number;
  readonly end: number;
  readonly count: number;
  readonly baseOffset: bigint;
  readonly baseTimestamp: bigint;
  /** Every record's timestamp where the broker stamped it, else null. */
  readonly appendTime: bigint | null;
  /** Records outside [from, next) are left out; null if the whole batch is inside. */
  readonly window: { readonly from: bigint; readonly next: bigint } | null;
}

const TWO32 = 4294967296;

/** Scratch of the varint readers: the value read, and its high half where 64 bits were asked for. */
let low = 0;
let high = 0;

/** A zigzag varint of up to 10 bytes to (high, low); returns the position after it, or -1 if it is too long. */
function varlong(b: Uint8Array, at: number): number {
  let a = 0;
  let m = 0;
  let c = 0;
  let x = 0;
  let i = 0;
  do {
    x = b[at++]!;
    if (i < 4) a |= (x & 127) << (7 * i);
    else if (i < 8) m |= (x & 127) << (7 * (i - 4));
    else c |= (x & 127) << (7 * (i - 8));
    i++;
  } while (x & 128 && i < 10);
  if (x & 128) return -1;
  const lo = a | (m << 28);
  const hi = (m >>> 4) | (c << 24);
  const sign = -(lo & 1);
  low = ((lo >>> 1) | (hi << 31)) ^ sign;
  high = (hi >>> 1) ^ sign;
  return at;
}

/** A zigzag varint of up to 5 bytes to `low`; returns the position after it, or -1 if it is too long. */
function varint(b: Uint8Array, at: number): number {
  let v = 0;
  let shift = 0;
  let x = 0;
  do {
    x = b[at++]!;
    v |= (x & 127) << shift;
    shift += 7;
  } while (x & 128 && shift < 35);
  // The fifth byte holds the last four bits of 32.
  if (x & 128 || (shift === 35 && x > 15)) return -1;
  low = (v >>> 1) ^ -(v & 1);
  return at;
}

function corrupt(what: string, index: number): Failure {
  return new Failure("kafka.corrupt_batch", `record ${index} of the batch: ${what}`);
}

/** Halves of an int64, and of a window, as the loop compares them: high signed, low unsigned. */
const highOf = (v: bigint): number => Number(BigInt.asIntN(32, v >> 32n));
const lowOf = (v: bigint): number => Number(BigInt.asUintN(32, v));

/**
 * Reads the records; `full` is called when the columns must be handed out before the next one, with the offset
 * after the last row. The caller has made sure that the bytes from `start` to `end` and some slack behind exist.
 */
export function readRecords(
  cols: BatchColumns,
  place: RecordsPlace,
  facts: BatchFacts,
  full: (next: bigint) => void,
): void {
  const { start, end, count, window } = place;
  // A record takes at least seven bytes: a count that cannot be true costs nothing.
  if (count < 0 || count > (end - start) / 7)
    throw corrupt(`${count} records do not fit in ${end - start} bytes`, 0);
  const b = cols.values.bytes;
  const { offsets, timestamps, key, valueOffsets, headerOffsets } = cols;
  const baseHigh = highOf(place.baseOffset);
  const baseLow = lowOf(place.baseOffset);
  const stamped = place.appendTime !== null;
  const time = place.appendTime ?? place.baseTimestamp;
  const timeHigh = highOf(time);
  const timeLow = lowOf(time);
  let p = start;
  let w = cols.valueEnd;
  let row = cols.rows;

  for (let i = 0; i < count; i++) {
    if (p >= end) throw corrupt("the batch ends before it", i);
    let x = b[p]!;
    let length = 0;
    if (x < 128) {
      length = (x >>> 1) ^ -(x & 1);
      p++;
    } else {
      const y = b[p + 1]!;
      if (y < 128) {
        const v = (x & 127) | (y << 7);
        length = (v >>> 1) ^ -(v & 1);
        p += 2;
      } else {
        p = varint(b, p);
        length = low;
      }
    }
    const stop = p + length;
    if (p < 0 || length < 0 || stop > end) throw corrupt(`its length ${length} is beyond the batch`, i);
    p++;

    x = b[p]!;
    let stampHigh = timeHigh;
    let stampLow = timeLow;
    if (x < 128) {
      p++;
      if (!stamped) stampLow += (x >>> 1) ^ -(x & 1);
    } else {
      p = varlong(b, p);
      if (p < 0) throw corrupt("its timestamp is longer than 64 bits", i);
      if (!stamped) {
        stampLow += low >>> 0;
        stampHigh += high;
      }
    }
    if (stampLow >= TWO32) stampHigh++;
    else if (stampLow < 0) stampHigh--;

    x = b[p]!;
    let delta = 0;
    if (x < 128) {
      delta = (x >>> 1) ^ -(x & 1);
      p++;
    } else {
      p = varint(b, p);
      delta = low;
      if (p < 0) throw corrupt("its offset is longer than 32 bits", i);
    }
    let offHigh = baseHigh;
    const offLow = baseLow + delta;
    if (offLow >= TWO32) offHigh++;
    else if (offLow < 0) offHigh--;

    x = b[p]!;
    let keyLength = 0;
    if (x < 128) {
      keyLength = (x >>> 1) ^ -(x & 1);
      p++;
    } else {
      p = varint(b, p);
      keyLength = low;
    }
    if (p < 0 || keyLength < -1 || p + keyLength > stop)
      throw corrupt(`its key length ${keyLength} is beyond it`, i);
    const keyAt = p;
    if (keyLength > 0) p += keyLength;

    x = b[p]!;
    let valueLength = 0;
    if (x < 128) {
      valueLength = (x >>> 1) ^ -(x & 1);
      p++;
    } else {
      const y = b[p + 1]!;
      if (y < 128) {
        const v = (x & 127) | (y << 7);
        valueLength = (v >>> 1) ^ -(v & 1);
        p += 2;
      } else {
        p = varint(b, p);
        valueLength = low;
      }
    }
    if (p < 0 || valueLength < -1 || p + valueLength > stop) {
      throw corrupt(`its value length ${valueLength} is beyond it`, i);
    }
    const valueAt = p;
    if (valueLength > 0) p += valueLength;

    if (p >= stop) throw corrupt("it ends before its headers", i);
    const wanted = window === null || inside(window, offHigh, offLow >>> 0);
    if (b[p] === 0) p++;
    else p = readHeaders(cols, b, p, stop, wanted, i);
    if (p !== stop) throw corrupt(`it holds ${stop - p} bytes more than its fields`, i);
    if (!wanted) continue;

    key.add(b, keyAt, keyLength);
    if (valueLength > 0) {
      b.copyWithin(w, valueAt, valueAt + valueLength);
      w += valueLength;
    } else if (valueLength < 0) {
      cols.valueValidity[row >> 3]! &= ~(1 << (row & 7));
      cols.valueNulls++;
    }
    offsets[2 * row] = offLow;
    offsets[2 * row + 1] = offHigh;
    timestamps[2 * row] = stampLow;
    timestamps[2 * row + 1] = stampHigh;
    row++;
    valueOffsets[row] = w;
    headerOffsets[row] = cols.headerKeys.count;
    if (row === MAX_ROWS || w >= MAX_BYTES) {
      cols.rows = row;
      cols.valueEnd = w;
      cols.runs.add(row, facts);
      full(place.baseOffset + BigInt(delta) + 1n);
      row = cols.rows;
      w = cols.valueEnd;
    }
  }
  if (p !== end) throw corrupt(`${end - p} bytes are left after the last record`, count);
  cols.rows = row;
  cols.valueEnd = w;
  cols.runs.add(row, facts);
}

function inside(window: { from: bigint; next: bigint }, offHigh: number, offLow: number): boolean {
  const offset = (BigInt(offHigh) << 32n) | BigInt(offLow);
  return offset >= window.from && offset < window.next;
}

/** Headers of one record; their bytes are kept only if the record is wanted. */
function readHeaders(
  cols: BatchColumns,
  b: Uint8Array,
  at: number,
  stop: number,
  wanted: boolean,
  index: number,
): number {
  let p = varint(b, at);
  const count = low;
  // A header takes at least two bytes.
  if (p < 0 || count < 0 || count > (stop - p) / 2) throw corrupt(`${count} headers do not fit in it`, index);
  for (let h = 0; h < count; h++) {
    p = varint(b, p);
    const keyLength = low;
    if (p < 0 || keyLength < 0 || p + keyLength > stop)
      throw corrupt(`the key of header ${h} is beyond it`, index);
    const keyAt = p;
    p = varint(b, p + keyLength);
    const valueLength = low;
    if (p < 0 || valueLength < -1 || p + valueLength > stop) {
      throw corrupt(`the value of header ${h} is beyond it`, index);
    }
    if (wanted) {
      cols.headerKeys.add(b, keyAt, keyLength);
      cols.headerValues.add(b, p, valueLength);
    }
    if (valueLength > 0) p += valueLength;
  }
  return p;
}

/**
 * The hot loop: the records of one magic 2 batch, uncompressed, into the columns. They stand in the value
 * column's own buffer behind its values (see row-builder.ts). No object and no bigint per record.
 */
import { Failure } from "../../../../core/failure/failure.ts";
import { SMALLEST_RECORD } from "./layout.ts";
import type { RowBuilder } from "./row-builder.ts";
import { halves, varintSize, varintValue, varlongHalves, varlongSize } from "./varint.ts";

/** A batch that is being parsed: what its header says, what is wanted of it, and how far the loop is. */
export interface Section {
  /** Place of the next record, and end of the records, in the value buffer. */
  at: number;
  end: number;
  /** Records read so far, and in all. */
  read: number;
  count: number;
  baseOffsetLow: number;
  baseOffsetHigh: number;
  lastOffsetDelta: number;
  /** Offset deltas outside of [firstWanted, lastWanted] are read over. */
  firstWanted: number;
  lastWanted: number;
  /** Delta of the record before; they must rise. */
  previousDelta: number;
  /** Base of the deltas, or, with log append time, the timestamp of all. */
  timestampLow: number;
  timestampHigh: number;
  logAppendTime: boolean;
}

function corrupt(message: string): Failure {
  return new Failure("kafka.corrupt_batch", message);
}

/**
 * Parses until the section ends (true) or the columns are full (false: emit, reset, call again).
 * Throws kafka.corrupt_batch; the rows of the section are then to be rolled back.
 *
 * Row, positions and the last delta live in locals and are written back once; what is called per record is small
 * enough to be inlined. Measured against one function per record: 10 % (`bun run bench decode-records`).
 */
export function parseSection(b: RowBuilder, s: Section): boolean {
  if (s.read === 0) checkCount(s);
  const buf = b.value.bytes;
  const { offsets, key, valueOffsets, headerOffsets } = b;
  const { count, firstWanted, lastWanted, baseOffsetLow, baseOffsetHigh } = s;
  let read = s.read;
  let at = s.at;
  let row = b.rows;
  let values = b.valueLength;
  let delta = s.previousDelta;
  while (read < count && !b.isFull(row, values)) {
    const start = at + varintSize(buf, at);
    const end = start + checkedLength(s, buf, at, start);
    at = end;
    // One byte of attributes, unused in magic 2.
    const timeAt = start + 1;
    const timeSize = varlongSize(buf, timeAt);
    const deltaAt = timeAt + timeSize;
    const deltaSize = varintSize(buf, deltaAt);
    delta = checkedDelta(s, varintValue(buf, deltaAt, deltaSize), delta);
    if (delta >= firstWanted && delta <= lastWanted) {
      const low = (baseOffsetLow + delta) | 0;
      offsets[2 * row] = low;
      // A carry is there if the sum, unsigned, is below what was added.
      offsets[2 * row + 1] = baseOffsetHigh + (low >>> 0 < delta ? 1 : 0);
      putTimestamp(b, s, row, buf, timeAt, timeSize);

      let p = deltaAt + deltaSize;
      const keySize = varintSize(buf, p);
      const keyLength = checkedField("a key", varintValue(buf, p, keySize), end - p - keySize);
      p += keySize;
      key.append(row, buf, p, keyLength);
      p += Math.max(keyLength, 0);

      const valueSize = varintSize(buf, p);
      const valueLength = checkedField("a value", varintValue(buf, p, valueSize), end - p - valueSize);
      p += valueSize;
      if (valueLength > 0) {
        buf.copyWithin(values, p, p + valueLength);
        values += valueLength;
        p += valueLength;
      } else if (valueLength < 0) b.nullValue(row);
      valueOffsets[row + 1] = values;

      p = parseHeaders(b, buf, p, end);
      if (p !== end) throw corrupt(`the fields of a record end ${end - p} bytes before it`);
      headerOffsets[++row] = b.headers;
    }
    read++;
  }
  s.read = read;
  s.at = at;
  s.previousDelta = delta;
  b.rows = row;
  b.valueLength = values;
  if (read < count) return false;
  if (at !== s.end) throw corrupt(`${s.end - at} bytes stand behind the last record`);
  return true;
}

function checkCount(s: Section): void {
  if (s.count < 0 || s.count * SMALLEST_RECORD > s.end - s.at) {
    throw new Failure("kafka.corrupt_batch", `${s.count} records in ${s.end - s.at} bytes`);
  }
}

function checkedLength(s: Section, buf: Uint8Array, at: number, start: number): number {
  const length = varintValue(buf, at, start - at);
  if (at >= s.end) throw corrupt("the batch ends before its last record");
  if (length < 0 || length > s.end - start)
    throw corrupt(`a record of ${length} bytes with ${s.end - start} left`);
  return length;
}

/** Deltas rise and stay within the batch: one that is there twice would be one record id for two records. */
function checkedDelta(s: Section, delta: number, before: number): number {
  if (delta > before && delta <= s.lastOffsetDelta) return delta;
  throw corrupt(`offset delta ${delta} after ${before}, the last is ${s.lastOffsetDelta}`);
}

/** Length of a field that may be null (-1), with `left` bytes behind it. */
function checkedField(what: string, n: number, left: number): number {
  if (n < -1 || n > left) throw corrupt(`${what} of ${n} bytes with ${left} left`);
  return n;
}

function putTimestamp(
  b: RowBuilder,
  s: Section,
  row: number,
  buf: Uint8Array,
  at: number,
  size: number,
): void {
  const { timestamps } = b;
  if (size > 4 || s.logAppendTime) {
    putRareTimestamp(timestamps, s, row, buf, at, size);
    return;
  }
  const delta = varintValue(buf, at, size);
  const low = (s.timestampLow + delta) | 0;
  timestamps[2 * row] = low;
  timestamps[2 * row + 1] = s.timestampHigh + (delta >> 31) + (low >>> 0 < delta >>> 0 ? 1 : 0);
}

/** A delta of more than 28 bits, or one that does not count because the broker stamped the batch. */
function putRareTimestamp(
  timestamps: Int32Array,
  s: Section,
  row: number,
  buf: Uint8Array,
  at: number,
  size: number,
): void {
  halves.fill(0);
  if (!s.logAppendTime) varlongHalves(buf, at, size);
  const low = (s.timestampLow + halves[0]!) | 0;
  timestamps[2 * row] = low;
  timestamps[2 * row + 1] = s.timestampHigh + halves[1]! + (low >>> 0 < halves[0]! >>> 0 ? 1 : 0);
}

/** Smallest header: a key length and a value length. */
const SMALLEST_HEADER = 2;

/** Reads the headers that begin with their count at `at`; returns where they end. */
function parseHeaders(b: RowBuilder, buf: Uint8Array, at: number, end: number): number {
  const size = varintSize(buf, at);
  const count = varintValue(buf, at, size);
  const start = at + size;
  return count === 0 ? start : parseSomeHeaders(b, buf, start, end, count);
}

function parseSomeHeaders(b: RowBuilder, buf: Uint8Array, start: number, end: number, count: number): number {
  if (count < 0 || count * SMALLEST_HEADER > end - start) {
    throw corrupt(`${count} headers in ${end - start} bytes`);
  }
  let p = start;
  for (let i = 0; i < count; i++) {
    const keySize = varintSize(buf, p);
    const key = checkedField("a header's key", varintValue(buf, p, keySize), end - p - keySize);
    if (key < 0) throw corrupt("a header without a key");
    p += keySize;
    b.headerKeys.append(b.headers, buf, p, key);
    p += key;
    const valueSize = varintSize(buf, p);
    const value = checkedField("a header's value", varintValue(buf, p, valueSize), end - p - valueSize);
    p += valueSize;
    b.headerValues.append(b.headers, buf, p, value);
    p += Math.max(value, 0);
    b.headers++;
  }
  b.countHeaders();
  return p;
}

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

function corrupt(s: Section, message: string): Failure {
  return new Failure("kafka.corrupt_batch", `record ${s.read} of ${s.count}: ${message}`);
}

/**
 * Parses until the section ends (true) or the columns are full (false: emit, reset, call again).
 * Throws kafka.corrupt_batch; the rows of the section are then to be rolled back.
 */
export function parseSection(b: RowBuilder, s: Section): boolean {
  if (s.read === 0) checkCount(s);
  const buf = b.value.bytes;
  while (s.read < s.count) {
    if (b.full) return false;
    if (s.at >= s.end) throw corrupt(s, "the batch ends before it");
    const lengthSize = varintSize(buf, s.at);
    const length = varintValue(buf, s.at, lengthSize);
    const start = s.at + lengthSize;
    if (length < 0 || length > s.end - start)
      throw corrupt(s, `length ${length} with ${s.end - start} bytes left`);
    parseRecord(b, s, buf, start, start + length);
    s.at = start + length;
    s.read++;
  }
  if (s.at !== s.end) throw corrupt(s, `${s.end - s.at} bytes stand behind the last record`);
  return true;
}

function checkCount(s: Section): void {
  if (s.count < 0 || s.count * SMALLEST_RECORD > s.end - s.at) {
    throw new Failure("kafka.corrupt_batch", `${s.count} records in ${s.end - s.at} bytes`);
  }
}

function parseRecord(b: RowBuilder, s: Section, buf: Uint8Array, start: number, end: number): void {
  // One byte of attributes, unused in magic 2.
  const timeAt = start + 1;
  const timeSize = varlongSize(buf, timeAt);
  const deltaAt = timeAt + timeSize;
  const deltaSize = varintSize(buf, deltaAt);
  const delta = varintValue(buf, deltaAt, deltaSize);
  const p = deltaAt + deltaSize;
  if (p > end) throw corrupt(s, "it ends before its key");
  if (delta <= s.previousDelta || delta > s.lastOffsetDelta) {
    throw corrupt(s, `offset delta ${delta} after ${s.previousDelta}, the last is ${s.lastOffsetDelta}`);
  }
  s.previousDelta = delta;
  if (delta < s.firstWanted || delta > s.lastWanted) return;
  const row = b.rows;
  const offsetLow = (s.baseOffsetLow + delta) | 0;
  b.offsets[2 * row] = offsetLow;
  // A carry is there if the sum, unsigned, is below what was added.
  b.offsets[2 * row + 1] = s.baseOffsetHigh + (offsetLow >>> 0 < delta ? 1 : 0);
  putTimestamp(b, s, buf, timeAt, timeSize);
  const behind = parseValue(b, s, buf, parseKey(b, s, buf, p, end), end);
  const countSize = varintSize(buf, behind);
  const headers = varintValue(buf, behind, countSize);
  const headersEnd =
    headers === 0 ? behind + countSize : parseHeaders(b, s, buf, behind + countSize, end, headers);
  if (headersEnd !== end) throw corrupt(s, `its fields end ${end - headersEnd} bytes before it does`);
  b.headerOffsets[row + 1] = b.headers;
  b.rows = row + 1;
}

function putTimestamp(b: RowBuilder, s: Section, buf: Uint8Array, at: number, size: number): void {
  const i = 2 * b.rows;
  if (s.logAppendTime) {
    b.timestamps[i] = s.timestampLow;
    b.timestamps[i + 1] = s.timestampHigh;
    return;
  }
  let low: number;
  let high: number;
  if (size <= 4) {
    low = varintValue(buf, at, size);
    high = low >> 31;
  } else {
    varlongHalves(buf, at, size);
    low = halves[0]!;
    high = halves[1]!;
  }
  const sum = (s.timestampLow + low) | 0;
  b.timestamps[i] = sum;
  b.timestamps[i + 1] = s.timestampHigh + high + (sum >>> 0 < low >>> 0 ? 1 : 0);
}

/** A length of a field that may be null: -1, or bytes that are there. */
function checkLength(s: Section, what: string, n: number, left: number): void {
  if (n < -1 || n > left) throw corrupt(s, `${what} of ${n} bytes with ${left} left`);
}

function parseKey(b: RowBuilder, s: Section, buf: Uint8Array, p: number, end: number): number {
  const size = varintSize(buf, p);
  const n = varintValue(buf, p, size);
  const at = p + size;
  checkLength(s, "a key", n, end - at);
  b.key.append(b.rows, buf, at, n);
  return n > 0 ? at + n : at;
}

function parseValue(b: RowBuilder, s: Section, buf: Uint8Array, p: number, end: number): number {
  const size = varintSize(buf, p);
  const n = varintValue(buf, p, size);
  const at = p + size;
  checkLength(s, "a value", n, end - at);
  if (n < 0) b.nullValue();
  else if (n > 0) {
    buf.copyWithin(b.valueLength, at, at + n);
    b.valueLength += n;
  }
  b.valueOffsets[b.rows + 1] = b.valueLength;
  return n > 0 ? at + n : at;
}

/** Smallest header: a key length and a value length. */
const SMALLEST_HEADER = 2;

function parseHeaders(
  b: RowBuilder,
  s: Section,
  buf: Uint8Array,
  start: number,
  end: number,
  count: number,
): number {
  if (count < 0 || count * SMALLEST_HEADER > end - start) {
    throw corrupt(s, `${count} headers in ${end - start} bytes`);
  }
  let p = start;
  for (let i = 0; i < count; i++) {
    const keySize = varintSize(buf, p);
    const key = varintValue(buf, p, keySize);
    p += keySize;
    if (key < 0) throw corrupt(s, "a header without a key");
    checkLength(s, "a header's key", key, end - p);
    b.headerKeys.append(b.headers, buf, p, key);
    p += key;
    const valueSize = varintSize(buf, p);
    const value = varintValue(buf, p, valueSize);
    p += valueSize;
    checkLength(s, "a header's value", value, end - p);
    b.headerValues.append(b.headers, buf, p, value);
    p += Math.max(value, 0);
    b.headers++;
  }
  return p;
}

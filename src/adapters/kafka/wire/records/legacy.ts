/**
 * Messages of magic 0 and 1, alone or as the wrapper of a compressed set.
 *
 *   offset 8 | size 4 | crc 4 | magic 1 | attributes 1 | timestamp 8 (magic 1) | key length 4, key | value length 4, value
 *
 * In a wrapper of magic 1 the inner offsets are relative and the wrapper has the last one's; in magic 0 they are absolute.
 */
import type { Codecs } from "../../../../core/compression/codec.ts";
import { type CodecName, decompress } from "../../../../core/compression/decompress.ts";
import type { Output } from "../../../../core/compression/output.ts";
import { Failure } from "../../../../core/failure/failure.ts";
import { type BatchColumns, type BatchFacts, MAX_BYTES, MAX_ROWS } from "./batch-columns.ts";

const NO_PRODUCER = {
  leaderEpoch: -1,
  producerId: -1n,
  producerEpoch: -1,
  baseSequence: -1,
  transactional: false,
};
const NONE: BatchFacts = { ...NO_PRODUCER, timestampType: 0 };
const CREATE: BatchFacts = { ...NO_PRODUCER, timestampType: 1 };
const APPEND: BatchFacts = { ...NO_PRODUCER, timestampType: 2 };
const CODECS: readonly (CodecName | null)[] = [null, "gzip", "snappy", "lz4"];
/** Bytes of a message before its key: magic 0 and 1. */
const HEAD = [18, 26] as const;

interface Message {
  readonly offset: bigint;
  readonly magic: number;
  readonly attributes: number;
  readonly timestamp: bigint;
  readonly keyAt: number;
  readonly keyLength: number;
  readonly valueAt: number;
  readonly valueLength: number;
  readonly end: number;
}

export interface LegacyParts {
  readonly codecs: Codecs;
  readonly maxDecompressedBytes: number;
  readonly scratch: Output;
}

export interface Window {
  readonly from: bigint;
  readonly next: bigint;
}

/** Reads the message at `at`, which ends at `end`; its checksum is right. */
export function readLegacy(
  cols: BatchColumns,
  parts: LegacyParts,
  bytes: Uint8Array,
  at: number,
  end: number,
  window: Window,
  full: (next: bigint) => void,
): void {
  const m = parse(bytes, at, end);
  const crc = new DataView(bytes.buffer, bytes.byteOffset).getUint32(at + 12);
  if (parts.codecs.crc32(bytes, at + 16, end) !== crc) {
    throw new Failure("kafka.crc", "the message does not have the checksum that it declares");
  }
  const codec = m.attributes & 7;
  if (codec === 0) return addMessage(cols, bytes, m, m.offset, stampOf(m, null), window, full);
  const name = CODECS[codec];
  if (name === undefined || name === null) {
    throw new Failure("kafka.unknown_codec", `codec ${codec} does not exist in message format ${m.magic}`);
  }
  if (m.valueLength < 0) throw corrupt("a compressed message without a value");
  const out = parts.scratch;
  out.begin(0, parts.maxDecompressedBytes);
  decompress(parts.codecs, name, bytes, m.valueAt, m.valueAt + m.valueLength, out, m.magic === 0);
  readInner(cols, out.bytes, out.end, m, window, full);
}

function readInner(
  cols: BatchColumns,
  inner: Uint8Array,
  end: number,
  wrapper: Message,
  window: Window,
  full: (next: bigint) => void,
): void {
  let last = -1n;
  for (let p = 0; p < end; ) {
    const m = parse(inner, p, sizeAt(inner, p, end));
    if (m.magic !== wrapper.magic)
      throw corrupt(`a message of magic ${m.magic} in a wrapper of ${wrapper.magic}`);
    if ((m.attributes & 7) !== 0) throw corrupt("a compressed message in a compressed message");
    last = m.offset;
    p = m.end;
  }
  if (last < 0n) throw corrupt("a compressed message that holds nothing");
  // Some old producers left the wrapper's offset at 0: then the inner ones stand as they are.
  const base = wrapper.magic === 0 || wrapper.offset === 0n ? 0n : wrapper.offset - last;
  for (let p = 0; p < end; ) {
    const m = parse(inner, p, sizeAt(inner, p, end));
    addMessage(cols, inner, m, base + m.offset, stampOf(m, wrapper), window, full);
    p = m.end;
  }
}

/** End of the message at `p`, checked. */
function sizeAt(bytes: Uint8Array, p: number, end: number): number {
  if (end - p < 12) throw corrupt("a message is cut");
  const size = new DataView(bytes.buffer, bytes.byteOffset).getInt32(p + 8);
  if (size < 0 || p + 12 + size > end) throw corrupt(`a message of ${size} bytes is beyond its set`);
  return p + 12 + size;
}

function stampOf(m: Message, wrapper: Message | null): { timestamp: bigint; facts: BatchFacts } {
  if (m.magic === 0) return { timestamp: -1n, facts: NONE };
  const outer = wrapper ?? m;
  if ((outer.attributes & 8) !== 0) return { timestamp: outer.timestamp, facts: APPEND };
  return { timestamp: m.timestamp, facts: CREATE };
}

function parse(bytes: Uint8Array, at: number, end: number): Message {
  const dv = new DataView(bytes.buffer, bytes.byteOffset);
  if (end - at < 18) throw corrupt(`a message of ${end - at} bytes is too short`);
  const magic = bytes[at + 16]!;
  if (magic > 1) throw corrupt(`a message of magic ${magic} where 0 or 1 is expected`);
  const head = HEAD[magic as 0 | 1];
  if (end - at < head + 8) throw corrupt(`a message of ${end - at} bytes is too short`);
  const keyLength = dv.getInt32(at + head);
  const keyAt = at + head + 4;
  const afterKey = keyAt + Math.max(0, keyLength);
  if (keyLength < -1 || afterKey + 4 > end) throw corrupt(`its key length ${keyLength} is beyond it`);
  const valueLength = dv.getInt32(afterKey);
  const valueAt = afterKey + 4;
  if (valueLength < -1 || valueAt + Math.max(0, valueLength) !== end) {
    throw corrupt(`its value length ${valueLength} does not fit`);
  }
  const timestamp = magic === 1 ? dv.getBigInt64(at + 18) : -1n;
  const attributes = bytes[at + 17]!;
  return {
    offset: dv.getBigInt64(at),
    magic,
    attributes,
    timestamp,
    keyAt,
    keyLength,
    valueAt,
    valueLength,
    end,
  };
}

function addMessage(
  cols: BatchColumns,
  src: Uint8Array,
  m: Message,
  offset: bigint,
  stamp: { readonly timestamp: bigint; readonly facts: BatchFacts },
  window: Window,
  full: (next: bigint) => void,
): void {
  if (offset < window.from || offset >= window.next) return;
  const row = cols.rows;
  cols.key.add(src, m.keyAt, m.keyLength);
  if (m.valueLength < 0) {
    cols.valueValidity[row >> 3]! &= ~(1 << (row & 7));
    cols.valueNulls++;
  } else {
    const { values } = cols;
    values.begin(cols.valueEnd, m.valueLength);
    values.append(src.subarray(m.valueAt, m.valueAt + m.valueLength));
    cols.valueEnd = values.end;
  }
  put(cols.offsets, row, offset);
  put(cols.timestamps, row, stamp.timestamp);
  cols.rows = row + 1;
  cols.valueOffsets[row + 1] = cols.valueEnd;
  cols.headerOffsets[row + 1] = cols.headerKeys.count;
  cols.runs.add(row + 1, stamp.facts);
  if (cols.rows === MAX_ROWS || cols.bytes >= MAX_BYTES) full(offset + 1n);
}

function put(halves: Int32Array, row: number, v: bigint): void {
  halves[2 * row] = Number(BigInt.asIntN(32, v));
  halves[2 * row + 1] = Number(BigInt.asIntN(32, v >> 32n));
}

function corrupt(what: string): Failure {
  return new Failure("kafka.corrupt_batch", what);
}

/**
 * Makes record batches of format v2 with every field at the caller's will, for the broker's logs and for tests of the
 * decoder. It shares no code with the decoder: bytes are laid out here from the format's description (KIP-98).
 *
 *   base offset 8 | length 4 | leader epoch 4 | magic 1 | crc 4 | attributes 2 | last offset delta 4 | base timestamp 8
 *   | max timestamp 8 | producer id 8 | producer epoch 2 | base sequence 4 | count 4 | records
 *
 * The CRC (Castagnoli) covers everything from the attributes on; base offset and leader epoch may be set afterwards.
 */
import { crc32c } from "@node-rs/crc32";
import { type BatchCodec, CODEC_BITS, compress } from "./compress.ts";

export const HEADER_BYTES = 61;
/** Position of the CRC, and of what it covers. */
const CRC_AT = 17;
const ATTRIBUTES_AT = 21;

/** Deltas below it fit the fast varint. */
const NARROW = 1n << 50n;

const TEXT = new TextEncoder();

export type Payload = Uint8Array | string | null;

export interface RecordSpec {
  /** Default: its place in the list. Leave holes as compaction does. */
  readonly offsetDelta?: number;
  /** Default: the batch's base timestamp. */
  readonly timestamp?: bigint;
  readonly key?: Payload;
  readonly value?: Payload;
  readonly headers?: readonly (readonly [key: string | Uint8Array, value: Payload])[];
}

export interface BatchSpec {
  readonly records: readonly RecordSpec[];
  readonly baseOffset?: bigint;
  readonly leaderEpoch?: number;
  readonly codec?: BatchCodec;
  /** Compresses the records instead of the codec's usual form (say, snappy in the xerial frame). */
  readonly compressor?: (records: Uint8Array) => Uint8Array;
  readonly logAppendTime?: boolean;
  readonly baseTimestamp?: bigint;
  /** Default: the largest timestamp of the records. */
  readonly maxTimestamp?: bigint;
  readonly producerId?: bigint;
  readonly producerEpoch?: number;
  readonly baseSequence?: number;
  readonly transactional?: boolean;
  readonly control?: boolean;
  /** Bit 6: the base timestamp is a delete horizon. */
  readonly deleteHorizon?: boolean;
  /** Default: the last record's. */
  readonly lastOffsetDelta?: number;
  /** Default: the number of records. */
  readonly count?: number;
  readonly magic?: number;
  /** Added to the true CRC: 1 damages it. */
  readonly crcError?: number;
}

/** Grows by doubling; the batch is sliced out of it at the end. */
class Out {
  bytes: Uint8Array<ArrayBuffer>;
  at = 0;

  constructor(capacity: number) {
    this.bytes = new Uint8Array(capacity);
  }

  room(n: number) {
    if (this.at + n <= this.bytes.length) return;
    const grown = new Uint8Array(Math.max(this.at + n, 2 * this.bytes.length));
    grown.set(this.bytes.subarray(0, this.at));
    this.bytes = grown;
  }

  /** Zigzag varint of a safe integer. */
  varint(value: number) {
    this.room(10);
    let n = value < 0 ? -2 * value - 1 : 2 * value;
    while (n > 127) {
      this.bytes[this.at++] = (n % 128) | 128;
      n = Math.floor(n / 128);
    }
    this.bytes[this.at++] = n;
  }

  /** Zigzag varint of any int64. */
  varlong(value: bigint) {
    this.room(10);
    let n = BigInt.asUintN(64, (value << 1n) ^ (value >> 63n));
    while (n > 127n) {
      this.bytes[this.at++] = Number(n & 127n) | 128;
      n >>= 7n;
    }
    this.bytes[this.at++] = Number(n);
  }

  raw(bytes: Uint8Array) {
    this.room(bytes.length);
    this.bytes.set(bytes, this.at);
    this.at += bytes.length;
  }

  sized(payload: Payload) {
    if (payload === null) return this.varint(-1);
    const bytes = typeof payload === "string" ? TEXT.encode(payload) : payload;
    this.varint(bytes.length);
    this.raw(bytes);
  }
}

const scratch = new Out(1 << 16);

function writeRecord(out: Out, record: RecordSpec, offsetDelta: number, timestampDelta: bigint) {
  scratch.at = 0;
  scratch.varint(0); // attributes: one byte, unused
  if (timestampDelta >= 0n && timestampDelta < NARROW) scratch.varint(Number(timestampDelta));
  else scratch.varlong(timestampDelta);
  scratch.varint(offsetDelta);
  scratch.sized(record.key ?? null);
  scratch.sized(record.value ?? null);
  const headers = record.headers ?? [];
  scratch.varint(headers.length);
  for (const [key, value] of headers) {
    scratch.sized(key);
    scratch.sized(value);
  }
  out.varint(scratch.at);
  out.raw(scratch.bytes.subarray(0, scratch.at));
}

const largest = (a: bigint, b: bigint): bigint => (a > b ? a : b);

function attributesOf(spec: BatchSpec): number {
  return (
    CODEC_BITS[spec.codec ?? "none"] |
    (spec.logAppendTime ? 8 : 0) |
    (spec.transactional ? 16 : 0) |
    (spec.control ? 32 : 0) |
    (spec.deleteHorizon ? 64 : 0)
  );
}

export function buildBatch(spec: BatchSpec): Uint8Array<ArrayBuffer> {
  const { records } = spec;
  const baseTimestamp = spec.baseTimestamp ?? records[0]?.timestamp ?? 0n;
  const out = new Out(Math.max(256, records.length * 64));
  let maxTimestamp = records.length === 0 ? -1n : (records[0]!.timestamp ?? baseTimestamp);
  let lastDelta = -1;
  for (const record of records) {
    const timestamp = record.timestamp ?? baseTimestamp;
    lastDelta = record.offsetDelta ?? lastDelta + 1;
    maxTimestamp = largest(maxTimestamp, timestamp);
    // The difference wraps, as Java's does.
    writeRecord(out, record, lastDelta, BigInt.asIntN(64, timestamp - baseTimestamp));
  }
  const plain = out.bytes.subarray(0, out.at);
  const body = (spec.compressor ?? ((bytes) => compress(spec.codec ?? "none", bytes)))(plain);
  return frame(spec, body, lastDelta, baseTimestamp, maxTimestamp);
}

function frame(
  spec: BatchSpec,
  body: Uint8Array,
  lastDelta: number,
  baseTimestamp: bigint,
  maxTimestamp: bigint,
): Uint8Array<ArrayBuffer> {
  const batch = new Uint8Array(HEADER_BYTES + body.length);
  const view = new DataView(batch.buffer);
  batch.set(body, HEADER_BYTES);
  view.setBigInt64(0, spec.baseOffset ?? 0n);
  view.setInt32(8, batch.length - 12);
  view.setInt32(12, spec.leaderEpoch ?? 0);
  view.setInt8(16, spec.magic ?? 2);
  view.setInt16(ATTRIBUTES_AT, attributesOf(spec));
  view.setInt32(23, spec.lastOffsetDelta ?? Math.max(lastDelta, 0));
  view.setBigInt64(27, baseTimestamp);
  view.setBigInt64(35, spec.maxTimestamp ?? maxTimestamp);
  view.setBigInt64(43, spec.producerId ?? -1n);
  view.setInt16(51, spec.producerEpoch ?? -1);
  view.setInt32(53, spec.baseSequence ?? -1);
  view.setInt32(57, spec.count ?? spec.records.length);
  sealCrc(batch, spec.crcError);
  return batch;
}

/** Writes the CRC anew, after a test has changed bytes that it covers. */
export function sealCrc(batch: Uint8Array, error = 0) {
  const view = new DataView(batch.buffer, batch.byteOffset, batch.byteLength);
  view.setInt32(CRC_AT, crc32c(batch.subarray(ATTRIBUTES_AT)) + error);
}

/** Sets what a broker sets when it appends: neither field is under the CRC. */
export function placeBatch(batch: Uint8Array, baseOffset: bigint, leaderEpoch: number) {
  const view = new DataView(batch.buffer, batch.byteOffset, batch.byteLength);
  view.setBigInt64(0, baseOffset);
  view.setInt32(12, leaderEpoch);
}

/** End of a transaction: a control batch of one record, key = version 0 and type (0 abort, 1 commit). */
export function controlBatch(spec: {
  readonly type: "commit" | "abort";
  readonly producerId: bigint;
  readonly producerEpoch?: number;
  readonly baseOffset?: bigint;
  readonly timestamp?: bigint;
}): Uint8Array<ArrayBuffer> {
  return buildBatch({
    records: [
      {
        key: Uint8Array.of(0, 0, 0, spec.type === "commit" ? 1 : 0),
        value: Uint8Array.of(0, 0, 0, 0, 0, 0), // version 0, coordinator epoch 0
        timestamp: spec.timestamp ?? 0n,
      },
    ],
    producerId: spec.producerId,
    producerEpoch: spec.producerEpoch ?? 0,
    transactional: true,
    control: true,
    ...(spec.baseOffset === undefined ? {} : { baseOffset: spec.baseOffset }),
  });
}

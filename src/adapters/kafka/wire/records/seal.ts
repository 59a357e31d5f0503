/** Finishes a record batch: compression, header, producer fields, checksum. */
import type { Codecs } from "../../../../core/compression/codec.ts";
import { compress, compressedBound } from "../../../../core/compression/compress.ts";
import type { CodecName } from "../../../../core/compression/decompress.ts";
import * as L from "./layout.ts";
import type { RecordWriter } from "./record-writer.ts";

export interface Compression {
  readonly codec: CodecName | null;
  readonly level: number;
}

/** Producer id, epoch and first sequence; -1 each: not idempotent. */
export interface BatchStamp {
  readonly producerId: bigint;
  readonly epoch: number;
  readonly sequence: number;
  readonly transactional: boolean;
}

export const UNSTAMPED: BatchStamp = { producerId: -1n, epoch: -1, sequence: -1, transactional: false };

/**
 * The batch without its producer fields and checksum, which `stamp` adds. Answers a view on the writer's own memory
 * where the records are not compressed, or do not get smaller by it.
 */
export function sealBatch(
  codecs: Codecs,
  compression: Compression,
  w: RecordWriter,
): Uint8Array<ArrayBuffer> {
  const { codec } = compression;
  const packed = codec === null ? null : compressed(codecs, codec, compression.level, w);
  const bytes = packed ?? w.bytes.subarray(0, w.length);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  view.setBigInt64(0, 0n);
  view.setInt32(L.AT_LENGTH, bytes.length - L.PREFIX_BYTES);
  view.setInt32(L.AT_LEADER_EPOCH, -1);
  view.setInt8(L.AT_MAGIC, 2);
  view.setInt16(L.V2_ATTRIBUTES, packed === null || codec === null ? 0 : L.CODECS.indexOf(codec));
  view.setInt32(L.V2_LAST_OFFSET_DELTA, w.count - 1);
  view.setBigInt64(L.V2_BASE_TIMESTAMP, w.farTimestamp ?? BigInt(w.baseTimestamp));
  view.setBigInt64(L.V2_MAX_TIMESTAMP, w.farTimestamp ?? BigInt(w.latestTimestamp));
  view.setInt32(L.V2_COUNT, w.count);
  return bytes;
}

/** Where compressors write: a batch takes what it needs of it, and memory of the worst case is made once. */
let room = new Uint8Array(0);

function roomFor(bytes: number): Uint8Array<ArrayBuffer> {
  if (room.length < bytes) room = new Uint8Array(bytes);
  return room;
}

/** Header room and compressed records in memory of their own; null: they did not get smaller. */
function compressed(
  codecs: Codecs,
  codec: CodecName,
  level: number,
  w: RecordWriter,
): Uint8Array<ArrayBuffer> | null {
  const plain = w.bytes.subarray(L.V2_RECORDS, w.length);
  const out = roomFor(L.V2_RECORDS + compressedBound(codec, plain.length));
  const size = compress(codecs, codec, plain, out, L.V2_RECORDS, level);
  return size < plain.length ? out.slice(0, L.V2_RECORDS + size) : null;
}

/** Writes the producer fields and then the checksum, which covers them. A batch is sent again as it was stamped. */
export function stampBatch(codecs: Codecs, bytes: Uint8Array, stamp: BatchStamp): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const codec = view.getInt16(L.V2_ATTRIBUTES) & L.ATTR_CODEC;
  view.setInt16(L.V2_ATTRIBUTES, codec | (stamp.transactional ? L.ATTR_TRANSACTIONAL : 0));
  view.setBigInt64(L.V2_PRODUCER_ID, stamp.producerId);
  view.setInt16(L.V2_PRODUCER_EPOCH, stamp.epoch);
  view.setInt32(L.V2_BASE_SEQUENCE, stamp.sequence);
  view.setUint32(L.V2_CRC, codecs.crc32c(bytes, L.V2_ATTRIBUTES, bytes.length));
}

/**
 * Walks record batches by their headers, to know where whole batches end and which offset comes after them.
 *
 *   v2     base offset int64 | length int32 | leader epoch int32 | magic int8 | crc | attributes int16 | last offset delta int32 ...
 *   v0, v1 offset int64 | length int32 | crc int32 | magic int8 ...        (a wrapper carries its last inner offset)
 *
 * The checksum of a batch does not cover its base offset. What is known of a log is used instead: offsets only
 * grow, so a batch that begins before the end of the one before it is damaged, and so is one beyond the log.
 */
import { Failure } from "../../core/failure/failure.ts";

export interface BatchScan {
  /** Bytes of whole batches, 0: not even one. */
  readonly end: number;
  /** Offset after the last whole batch; meaningless if `end` is 0. */
  readonly next: bigint;
  /** Leader epoch of the last whole batch, -1: not told (v0 and v1 never tell). */
  readonly epoch: number;
  /** Offset after the first whole batch; meaningless if `end` is 0. */
  readonly firstNext: bigint;
  /** Bytes that the batch behind the whole ones needs, 0: nothing was cut. */
  readonly need: number;
}

const LENGTH_AT = 8;
const EPOCH_AT = 12;
const MAGIC_AT = 16;
const LAST_DELTA_AT = 23;
/** Offset and length: not counted by the length itself. */
const PREFIX = 12;
/** Of a v2 batch without records, and of a v0 message without key and value, counted as the length field does. */
const MIN_LENGTH_V2 = 49;
const MIN_LENGTH_OLD = 14;

export function scanBatches(bytes: Uint8Array): BatchScan {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let at = 0;
  let last = -1;
  let need = 0;
  let firstNext = 0n;
  let next = 0n;
  while (at + MAGIC_AT < bytes.length) {
    const length = view.getInt32(at + LENGTH_AT);
    const magic = view.getInt8(at + MAGIC_AT);
    if (length < (magic >= 2 ? MIN_LENGTH_V2 : MIN_LENGTH_OLD)) {
      throw new Failure("kafka.corrupt_batch", `a batch declares ${length} bytes`);
    }
    if (at + PREFIX + length > bytes.length) {
      need = PREFIX + length;
      break;
    }
    next = nextAfter(view, at, last < 0 ? null : next);
    if (last < 0) firstNext = next;
    last = at;
    at += PREFIX + length;
  }
  const epoch = last >= 0 && view.getInt8(last + MAGIC_AT) >= 2 ? view.getInt32(last + EPOCH_AT) : -1;
  return { end: last < 0 ? 0 : at, next, firstNext, epoch, need };
}

/** Offset after the batch at `at`, which must not begin before `floor`. */
function nextAfter(view: DataView, at: number, floor: bigint | null): bigint {
  const isV2 = view.getInt8(at + MAGIC_AT) >= 2;
  const base = view.getBigInt64(at);
  const next = base + BigInt(isV2 ? view.getInt32(at + LAST_DELTA_AT) : 0) + 1n;
  // A wrapper of the old formats carries its last offset, so only its end can be compared.
  if (floor !== null && (isV2 ? base : next) < floor) {
    throw new Failure("kafka.corrupt_batch", `a batch at offset ${base} follows one that ends at ${floor}`);
  }
  return next;
}

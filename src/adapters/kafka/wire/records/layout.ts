/**
 * Record batches as they stand in a Fetch response and on a broker's disk. All big endian.
 *
 *   magic 2 (KIP-98)                          magic 0 and 1
 *    0 base offset            int64            0 offset              int64   (compressed: of the last inner one)
 *    8 length behind it       int32            8 length behind it    int32
 *   12 partition leader epoch int32           12 CRC-32 of 16..end   uint32
 *   16 magic                  int8            16 magic               int8
 *   17 CRC-32C of 21..end     uint32          17 attributes          int8
 *   21 attributes             int16           18 timestamp           int64   (magic 1 only)
 *   23 last offset delta      int32              key                 int32 length, -1 = null
 *   27 base timestamp         int64              value               int32 length, -1 = null
 *   35 max timestamp          int64
 *   43 producer id            int64           attributes of both: bits 0-2 codec, 3 log append time;
 *   51 producer epoch         int16           of magic 2 also: 4 transactional, 5 control, 6 delete horizon
 *   53 base sequence          int32
 *   57 count                  int32
 *   61 records: varint length | int8 attributes | varlong timestamp delta | varint offset delta
 *               | varint key length, key | varint value length, value | varint header count
 *               | each header: varint key length, key | varint value length, value       (-1 = null)
 */
import type { CodecName } from "../../../../core/compression/decompress.ts";

export const AT_LENGTH = 8;
export const AT_LEADER_EPOCH = 12;
export const AT_MAGIC = 16;
/** Offset and length, which stand before what the length counts. */
export const PREFIX_BYTES = 12;
/** Through the magic byte, the same place in every format. */
export const MAGIC_END = 17;

export const V2_CRC = 17;
export const V2_ATTRIBUTES = 21;
export const V2_LAST_OFFSET_DELTA = 23;
export const V2_BASE_TIMESTAMP = 27;
export const V2_MAX_TIMESTAMP = 35;
export const V2_PRODUCER_ID = 43;
export const V2_PRODUCER_EPOCH = 51;
export const V2_BASE_SEQUENCE = 53;
export const V2_COUNT = 57;
export const V2_RECORDS = 61;

export const V01_CRC = 12;
export const V01_ATTRIBUTES = 17;
export const V1_TIMESTAMP = 18;
export const V0_KEY = 18;
export const V1_KEY = 26;

export const ATTR_CODEC = 7;
export const ATTR_LOG_APPEND = 8;
export const ATTR_TRANSACTIONAL = 16;
export const ATTR_CONTROL = 32;

/** Smallest whole batch or message of a magic, prefix included. */
export const SMALLEST: readonly number[] = [V0_KEY + 8, V1_KEY + 8, V2_RECORDS];

/** Smallest record of magic 2: seven fields of a byte each. */
export const SMALLEST_RECORD = 7;

/** By codec number; 0 is none. */
export const CODECS: readonly (CodecName | null)[] = [null, "gzip", "snappy", "lz4", "zstd"];

/** Values of `BatchRuns.timestampType`. */
export const TIMESTAMP_NONE = 0;
export const TIMESTAMP_CREATE = 1;
export const TIMESTAMP_LOG_APPEND = 2;

/** Positions are non-negative int64 and the one after a record must be one too. */
export const LARGEST_OFFSET = 0x7fff_ffff_ffff_fffen;

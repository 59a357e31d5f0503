/**
 * The records of one stream as columns in Arrow layout. Built by a frame decoder, read by every sink.
 * Arrays are owned by the builder and reused: a sink that wants to keep bytes copies them before it returns.
 *
 * Columns that are constant over one broker batch (producer fields, leader epoch, timestamp type) are kept as
 * runs: `runs.end[i]` is the row after the last row of run i. Sinks with run-length encodings never expand them.
 */
import type { Span, StreamId } from "./stream.ts";

/** Variable-size bytes. Row i is data[offsets[i], offsets[i+1]); a null row has an empty range and a 0 bit. */
export interface BytesColumn {
  /** rows + 1 entries in use. */
  readonly offsets: Int32Array;
  readonly data: Uint8Array;
  /** Arrow validity bitmap, least significant bit first. Meaningful only if nullCount > 0. */
  readonly validity: Uint8Array;
  readonly nullCount: number;
}

export interface HeadersColumn {
  /** rows + 1 entries; header entries of row i are [offsets[i], offsets[i+1]). */
  readonly offsets: Int32Array;
  readonly entries: number;
  readonly keys: BytesColumn;
  readonly values: BytesColumn;
}

export interface BatchRuns {
  readonly count: number;
  readonly end: Int32Array;
  /** -1: unknown. */
  readonly leaderEpoch: Int32Array;
  /** -1: not from an idempotent producer. */
  readonly producerId: BigInt64Array;
  readonly producerEpoch: Int16Array;
  readonly baseSequence: Int32Array;
  /** 1: transactional. */
  readonly transactional: Uint8Array;
  /** 0 none (magic 0), 1 create time, 2 log append time. */
  readonly timestampType: Uint8Array;
}

export interface RawBatch {
  readonly stream: StreamId;
  readonly span: Span;
  readonly rows: number;
  /** Int64 as pairs of int32, low half first (little endian): entry 2i is the low half of row i. */
  readonly offsets: Int32Array;
  /** Milliseconds since the epoch, same layout. */
  readonly timestamps: Int32Array;
  readonly key: BytesColumn;
  readonly value: BytesColumn;
  readonly headers: HeadersColumn;
  readonly runs: BatchRuns;
  /** Wall time of arrival, ms. */
  readonly ingestTs: number;
}

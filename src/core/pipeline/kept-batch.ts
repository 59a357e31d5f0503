/** A batch that outlives its turn: what has to wait is copied out of the arrays that are used again. */
import type { RawBatch } from "../records/raw-batch.ts";

/** Without what lies behind the rows in use. */
export function compact(batch: RawBatch): RawBatch {
  const { rows, key, value, headers, runs } = batch;
  const bytes = (c: RawBatch["key"], n: number): RawBatch["key"] => ({
    offsets: c.offsets.slice(0, n + 1),
    data: c.data.slice(0, c.offsets[n]!),
    validity: c.validity.slice(0, (n + 7) >> 3),
    nullCount: c.nullCount,
  });
  const n = headers.offsets[rows]!;
  return {
    ...batch,
    offsets: batch.offsets.slice(0, 2 * rows),
    timestamps: batch.timestamps.slice(0, 2 * rows),
    key: bytes(key, rows),
    value: bytes(value, rows),
    headers: {
      offsets: headers.offsets.slice(0, rows + 1),
      entries: n,
      keys: bytes(headers.keys, n),
      values: bytes(headers.values, n),
    },
    runs: {
      count: runs.count,
      end: runs.end.slice(0, runs.count),
      leaderEpoch: runs.leaderEpoch.slice(0, runs.count),
      producerId: runs.producerId.slice(0, runs.count),
      producerEpoch: runs.producerEpoch.slice(0, runs.count),
      baseSequence: runs.baseSequence.slice(0, runs.count),
      transactional: runs.transactional.slice(0, runs.count),
      timestampType: runs.timestampType.slice(0, runs.count),
    },
  };
}

/** Of the copy. */
export function bytesOf({ rows, key, value, headers }: RawBatch): number {
  return (
    48 * rows + key.data.length + value.data.length + headers.keys.data.length + headers.values.data.length
  );
}

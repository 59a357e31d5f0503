/** A batch of its own memory, as large as its rows, for who keeps one longer than its owner does. */
import type { BytesColumn, RawBatch } from "./raw-batch.ts";

export function copyBatch(batch: RawBatch): RawBatch {
  const { stream, span, rows, offsets, timestamps, key, value, headers, runs, ingestTs } = batch;
  const { count } = runs;
  return {
    stream,
    span,
    rows,
    offsets: offsets.slice(0, 2 * rows),
    timestamps: timestamps.slice(0, 2 * rows),
    key: copyColumn(key, rows),
    value: copyColumn(value, rows),
    headers: {
      offsets: headers.offsets.slice(0, rows + 1),
      entries: headers.entries,
      keys: copyColumn(headers.keys, headers.entries),
      values: copyColumn(headers.values, headers.entries),
    },
    runs: {
      count,
      end: runs.end.slice(0, count),
      leaderEpoch: runs.leaderEpoch.slice(0, count),
      producerId: runs.producerId.slice(0, count),
      producerEpoch: runs.producerEpoch.slice(0, count),
      baseSequence: runs.baseSequence.slice(0, count),
      transactional: runs.transactional.slice(0, count),
      timestampType: runs.timestampType.slice(0, count),
    },
    ingestTs,
  };
}

function copyColumn({ offsets, data, validity, nullCount }: BytesColumn, rows: number): BytesColumn {
  return {
    offsets: offsets.slice(0, rows + 1),
    data: data.slice(0, offsets[rows]),
    validity: validity.slice(0, (rows + 7) >>> 3),
    nullCount,
  };
}

/** Some records of a batch as a batch of their own, whose arrays are nobody else's. */
import type { BatchRuns, BytesColumn, HeadersColumn, RawBatch } from "./raw-batch.ts";

/**
 * `rows`: indexes of records, ascending. The span stays that of the whole batch. `value`: what the records have in place
 * of their own values.
 */
export function pickRows(batch: RawBatch, rows: Int32Array, value?: BytesColumn): RawBatch {
  return {
    ...batch,
    rows: rows.length,
    offsets: pickPairs(batch.offsets, rows),
    timestamps: pickPairs(batch.timestamps, rows),
    key: pickBytes(batch.key, rows),
    value: value ?? pickBytes(batch.value, rows),
    headers: pickHeaders(batch.headers, rows),
    runs: pickRuns(batch.runs, rows),
  };
}

function pickPairs(pairs: Int32Array, rows: Int32Array): Int32Array {
  const out = new Int32Array(2 * rows.length);
  for (let i = 0; i < rows.length; i++) {
    out[2 * i] = pairs[2 * rows[i]!]!;
    out[2 * i + 1] = pairs[2 * rows[i]! + 1]!;
  }
  return out;
}

function pickBytes({ offsets, data, validity, nullCount }: BytesColumn, rows: Int32Array): BytesColumn {
  const out = new Int32Array(rows.length + 1);
  const valid = new Uint8Array(nullCount === 0 ? 0 : (rows.length + 7) >>> 3);
  let nulls = 0;
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i]!;
    out[i + 1] = out[i]! + offsets[row + 1]! - offsets[row]!;
    if (nullCount === 0) continue;
    if (((validity[row >>> 3]! >>> (row & 7)) & 1) === 1) valid[i >>> 3]! |= 1 << (i & 7);
    else nulls++;
  }
  const bytes = new Uint8Array(out[rows.length]!);
  for (let i = 0; i < rows.length; ) {
    // Records that stood behind each other go together.
    const first = i;
    do i++;
    while (i < rows.length && rows[i] === rows[i - 1]! + 1);
    bytes.set(data.subarray(offsets[rows[first]!]!, offsets[rows[i - 1]! + 1]!), out[first]!);
  }
  return { offsets: out, data: bytes, validity: valid, nullCount: nulls };
}

function pickHeaders({ offsets, keys, values }: HeadersColumn, rows: Int32Array): HeadersColumn {
  const out = new Int32Array(rows.length + 1);
  for (let i = 0; i < rows.length; i++) out[i + 1] = out[i]! + offsets[rows[i]! + 1]! - offsets[rows[i]!]!;
  const entries = new Int32Array(out[rows.length]!);
  for (let i = 0, at = 0; i < rows.length; i++)
    for (let h = offsets[rows[i]!]!; h < offsets[rows[i]! + 1]!; h++) entries[at++] = h;
  return {
    offsets: out,
    entries: entries.length,
    keys: pickBytes(keys, entries),
    values: pickBytes(values, entries),
  };
}

function pickRuns(runs: BatchRuns, rows: Int32Array): BatchRuns {
  const kept: number[] = [];
  const ends: number[] = [];
  let run = 0;
  for (let i = 0; i < rows.length; i++) {
    while (run < runs.count - 1 && rows[i]! >= runs.end[run]!) run++;
    if (kept[kept.length - 1] === run) ends[ends.length - 1] = i + 1;
    else {
      kept.push(run);
      ends.push(i + 1);
    }
  }
  const of = <T extends Int32Array | Int16Array | Uint8Array | BigInt64Array>(from: T): T => {
    const out = from.slice(0, kept.length) as T;
    for (const [i, r] of kept.entries()) out[i] = from[r]!;
    return out;
  };
  return {
    count: kept.length,
    end: Int32Array.from(ends),
    leaderEpoch: of(runs.leaderEpoch),
    producerId: of(runs.producerId),
    producerEpoch: of(runs.producerEpoch),
    baseSequence: of(runs.baseSequence),
    transactional: of(runs.transactional),
    timestampType: of(runs.timestampType),
  };
}

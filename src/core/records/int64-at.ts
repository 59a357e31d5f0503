/** Row `row` of 64-bit integers that are kept as pairs of int32, low half first, and where a record of a batch stood. */
import type { RawBatch } from "./raw-batch.ts";

export function int64At(halves: Int32Array, row: number): bigint {
  return (BigInt(halves[2 * row + 1]!) << 32n) | BigInt(halves[2 * row]! >>> 0);
}

/** The pairs of all of `count` rows but these, ascending. */
export function withoutRows(halves: Int32Array, count: number, rows: readonly number[]): Int32Array {
  const kept = new Int32Array(2 * (count - rows.length));
  for (let row = 0, at = 0, left = 0; row < count; row++) {
    if (rows[left] === row) left++;
    else {
      kept[at++] = halves[2 * row]!;
      kept[at++] = halves[2 * row + 1]!;
    }
  }
  return kept;
}

/** As topic/partition@offset, for messages. */
export function recordPlace({ stream, offsets }: Pick<RawBatch, "stream" | "offsets">, row: number): string {
  return `${stream.topic}/${stream.partition}@${int64At(offsets, row)}`;
}

/** Row `row` of 64-bit integers that are kept as pairs of int32, low half first, and where a record of a batch stood. */
import type { RawBatch } from "./raw-batch.ts";

export function int64At(halves: Int32Array, row: number): bigint {
  return (BigInt(halves[2 * row + 1]!) << 32n) | BigInt(halves[2 * row]! >>> 0);
}

/** As topic/partition@offset, for messages. */
export function recordPlace({ stream, offsets }: Pick<RawBatch, "stream" | "offsets">, row: number): string {
  return `${stream.topic}/${stream.partition}@${int64At(offsets, row)}`;
}

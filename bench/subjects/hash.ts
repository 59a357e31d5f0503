/** The hash by which benchmarks compare what was read: the sum of the CRC-32 of all values, in whatever order they come. */
import type { BytesColumn } from "../../src/core/records/raw-batch.ts";

export function hashOf(rows: number, { offsets, data }: BytesColumn): bigint {
  let hash = 0n;
  for (let i = 0; i < rows; i++) hash += BigInt(Bun.hash.crc32(data.subarray(offsets[i], offsets[i + 1])));
  return hash;
}

/** Columns to produce as plain objects, for tests. */

import type { RecordColumns } from "../../../../src/adapters/kafka/wire/records/record-writer.ts";
import type { BytesColumn } from "../../../../src/core/records/raw-batch.ts";

function cell(column: BytesColumn | null, i: number): string | null {
  if (column === null) return null;
  if (column.nullCount > 0 && ((column.validity[i >>> 3]! >>> (i & 7)) & 1) === 0) return null;
  return Buffer.from(column.data.subarray(column.offsets[i]!, column.offsets[i + 1]!)).toString();
}

export interface PlainRecord {
  readonly key: string | null;
  readonly value: string | null;
  readonly headers: readonly (readonly (string | null)[])[];
  readonly ms: bigint | undefined;
}

export function plainRecords({ rows, key, value, headers, timestamps }: RecordColumns): PlainRecord[] {
  return Array.from({ length: rows }, (_, i) => {
    const [from, to] = headers === null ? [0, 0] : [headers.offsets[i]!, headers.offsets[i + 1]!];
    const list = Array.from({ length: to - from }, (_, k) => [
      cell(headers!.keys, from + k),
      cell(headers!.values, from + k),
    ]);
    const ms = new BigInt64Array(timestamps!.buffer)[i];
    return { key: cell(key, i), value: cell(value, i), headers: list, ms };
  });
}

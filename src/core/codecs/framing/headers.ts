/** Finds the record header that names a schema, without a text per header. */
import type { BytesColumn, HeadersColumn } from "../../records/raw-batch.ts";

/** Entry in `headers` of the last header of that name in a row; -1: there is none, or its value is null. */
export function lastHeader(headers: HeadersColumn, row: number, name: Uint8Array): number {
  const { offsets, keys } = headers;
  for (let entry = offsets[row + 1]! - 1; entry >= offsets[row]!; entry--) {
    if (isName(keys, entry, name)) return isNull(headers.values, entry) ? -1 : entry;
  }
  return -1;
}

function isName({ offsets, data }: BytesColumn, entry: number, name: Uint8Array): boolean {
  const from = offsets[entry]!;
  if (offsets[entry + 1]! - from !== name.length) return false;
  for (let i = 0; i < name.length; i++) if (data[from + i] !== name[i]) return false;
  return true;
}

export function isNull(column: BytesColumn, row: number): boolean {
  return column.nullCount > 0 && (column.validity[row >> 3]! & (1 << (row & 7))) === 0;
}

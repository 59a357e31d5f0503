/**
 * A batch's columns as the set's own: the lane reuses the arrays as soon as they were given. With metadata, headers are
 * added behind those that a record has; its own stay as they are, in their order, doubles and nulls included.
 */
import type { BytesColumn, HeadersColumn, RawBatch } from "../../../core/records/raw-batch.ts";
import type { RecordColumns } from "../wire/records/record-writer.ts";
import { type AddedHeader, type HeaderChoice, metadataHeaders } from "./metadata-headers.ts";

export interface OwnedColumns {
  readonly columns: RecordColumns;
  readonly bytes: number;
  readonly largestRow: number;
  /** Of its key and value. */
  readonly largestBytes: number;
}

export function ownedColumns(batch: RawBatch, headers: HeaderChoice): OwnedColumns {
  const { rows } = batch;
  return columnsWith(
    {
      rows,
      key: copied(batch.key, rows),
      value: copied(batch.value, rows),
      headers: batch.headers.entries === 0 ? null : copiedHeaders(batch.headers, rows),
      timestamps: batch.timestamps.slice(0, 2 * rows),
    },
    metadataHeaders(batch, headers),
  );
}

/** Of columns that are the set's own; the headers stand behind those that a record has. */
export function columnsWith(own: RecordColumns, headers: readonly AddedHeader[]): OwnedColumns {
  const columns =
    headers.length === 0 ? own : { ...own, headers: withHeaders(own.rows, own.headers, headers) };
  const { rows, key, value, headers: all } = columns;
  const ofHeaders = all === null ? 0 : all.keys.data.length + all.values.data.length;
  return {
    columns,
    bytes: (key?.data.length ?? 0) + (value?.data.length ?? 0) + ofHeaders + 32 * rows,
    ...largestOf(columns),
  };
}

function copied(column: BytesColumn, rows: number): BytesColumn {
  const { offsets, data, validity, nullCount } = column;
  return {
    offsets: offsets.slice(0, rows + 1),
    data: data.slice(0, offsets[rows]!),
    validity: nullCount === 0 ? NO_BITS : validity.slice(0, (rows + 7) >>> 3),
    nullCount,
  };
}

const NO_BITS = new Uint8Array(0);

function copiedHeaders({ offsets, entries, keys, values }: HeadersColumn, rows: number): HeadersColumn {
  return {
    offsets: offsets.slice(0, rows + 1),
    entries,
    keys: copied(keys, entries),
    values: copied(values, entries),
  };
}

function largestOf({ rows, key, value }: RecordColumns): Pick<OwnedColumns, "largestRow" | "largestBytes"> {
  let largestRow = 0;
  let largestBytes = -1;
  const [k, v] = [key!.offsets, value!.offsets];
  for (let row = 0; row < rows; row++) {
    const bytes = k[row + 1]! - k[row]! + v[row + 1]! - v[row]!;
    if (bytes > largestBytes) {
      largestBytes = bytes;
      largestRow = row;
    }
  }
  return { largestRow, largestBytes };
}

/** Grows in one direction: entries are appended row by row. */
class EntryBytes {
  readonly offsets: Int32Array;
  data: Uint8Array;
  #entries = 0;
  #end = 0;

  constructor(entries: number, bytes: number) {
    this.offsets = new Int32Array(entries + 1);
    this.data = new Uint8Array(bytes);
  }

  get end(): number {
    return this.#end;
  }

  wrote(bytes: number): void {
    this.#end += bytes;
    this.offsets[++this.#entries] = this.#end;
  }

  column(validity: Uint8Array, nullCount: number): BytesColumn {
    return { offsets: this.offsets, data: this.data.subarray(0, this.#end), validity, nullCount };
  }
}

function withHeaders(rows: number, own: HeadersColumn | null, added: readonly AddedHeader[]): HeadersColumn {
  const nameBytes = added.reduce((n, a) => n + a.name.length, 0);
  const most = added.reduce((n, a) => n + a.most, 0);
  const entries = (own?.entries ?? 0) + rows * added.length;
  const keys = new EntryBytes(entries, (own?.keys.data.length ?? 0) + rows * nameBytes);
  const values = new EntryBytes(entries, (own?.values.data.length ?? 0) + rows * most);
  const validity = new Uint8Array((entries + 7) >>> 3);
  const offsets = new Int32Array(rows + 1);
  let entry = 0;
  let nulls = 0;
  for (let row = 0; row < rows; row++) {
    for (let i = own?.offsets[row] ?? 0, to = own?.offsets[row + 1] ?? 0; i < to; i++, entry++) {
      copyEntry(keys, own!.keys, i);
      copyEntry(values, own!.values, i);
      if (isSet(own!.values, i)) validity[entry >>> 3]! |= 1 << (entry & 7);
      else nulls++;
    }
    for (const { name, cell } of added) {
      const bytes = cell(row, values.data, values.end);
      if (bytes < 0) continue;
      values.wrote(bytes);
      keys.data.set(name, keys.end);
      keys.wrote(name.length);
      validity[entry >>> 3]! |= 1 << (entry & 7);
      entry++;
    }
    offsets[row + 1] = entry;
  }
  return {
    offsets,
    entries: entry,
    keys: keys.column(NO_BITS, 0),
    values: values.column(validity, nulls),
  };
}

/** Shorter fields are copied by a loop: a view for `set` costs more. */
const SHORT = 48;

function isSet({ validity, nullCount }: BytesColumn, i: number): boolean {
  return nullCount === 0 || ((validity[i >>> 3]! >>> (i & 7)) & 1) === 1;
}

function copyEntry(to: EntryBytes, from: BytesColumn, i: number): void {
  const start = from.offsets[i]!;
  const bytes = from.offsets[i + 1]! - start;
  const out = to.data;
  const at = to.end;
  if (bytes > SHORT) out.set(from.data.subarray(start, start + bytes), at);
  else for (let k = 0; k < bytes; k++) out[at + k] = from.data[start + k]!;
  to.wrote(bytes);
}

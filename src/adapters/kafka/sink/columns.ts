/**
 * A batch's columns as the set's own: the lane reuses the arrays as soon as they were given. With metadata, headers are
 * added behind those that a record has; its own stay as they are, in their order, doubles and nulls included.
 */
import type { BytesColumn, HeadersColumn, RawBatch } from "../../../core/records/raw-batch.ts";
import { fillRecordIds, recordIdBase } from "../../../core/records/record-id.ts";
import type { RecordColumns } from "../wire/records/record-writer.ts";

export interface HeaderChoice {
  readonly choice: "none" | "locator" | "all";
  /** Of the names. */
  readonly prefix: string;
  readonly pipeline: string;
}

export interface OwnedColumns {
  readonly columns: RecordColumns;
  readonly bytes: number;
  readonly largestRow: number;
  /** Of its key and value. */
  readonly largestBytes: number;
}

export function ownedColumns(batch: RawBatch, headers: HeaderChoice): OwnedColumns {
  const { rows } = batch;
  const key = copied(batch.key, rows);
  const value = copied(batch.value, rows);
  const own = batch.headers.entries === 0 ? null : copiedHeaders(batch.headers, rows);
  const added = headers.choice === "none" ? own : withMetadata(batch, own, headers);
  const columns: RecordColumns = {
    rows,
    key,
    value,
    headers: added,
    timestamps: batch.timestamps.slice(0, 2 * rows),
  };
  const ofHeaders = added === null ? 0 : added.keys.data.length + added.values.data.length;
  return {
    columns,
    bytes: key.data.length + value.data.length + ofHeaders + 32 * rows,
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

// ---- metadata

const UTF8 = new TextEncoder();
const TIMESTAMP_TYPES = ["", "CreateTime", "LogAppendTime"] as const;

/** Writes the bytes of a row's header at `at` of `out`, and answers how many there are; -1: the row has none. */
type Cell = (row: number, out: Uint8Array, at: number) => number;

interface Added {
  readonly name: Uint8Array;
  readonly most: number;
  readonly cell: Cell;
}

function constant(name: string, text: string): Added {
  const bytes = UTF8.encode(text);
  return {
    name: UTF8.encode(name),
    most: bytes.length,
    cell: (_row, out, at) => {
      out.set(bytes, at);
      return bytes.length;
    },
  };
}

/** An int64 in decimal has at most 20 characters. */
const DECIMAL = 20;

function decimal(name: string, number: (row: number) => number | bigint | null): Added {
  return {
    name: UTF8.encode(name),
    most: DECIMAL,
    cell: (row, out, at) => {
      const n = number(row);
      if (n === null) return -1;
      return typeof n === "number"
        ? digits(n, out, at)
        : UTF8.encodeInto(String(n), out.subarray(at)).written;
    },
  };
}

const ZERO = 48;

/** A whole number that is exact and not negative, without a text in between. */
function digits(n: number, out: Uint8Array, at: number): number {
  let count = 1;
  for (let rest = n; rest >= 10; rest = Math.floor(rest / 10)) count++;
  for (let i = at + count - 1, rest = n; i >= at; i--, rest = Math.floor(rest / 10))
    out[i] = ZERO + (rest % 10);
  return count;
}

const TWO_TO_32 = 4294967296;

/** As a number where that is exact, so that no bigint is made for offsets as they are. */
function offsetOf({ offsets }: RawBatch, row: number): number | bigint {
  const high = offsets[2 * row + 1]!;
  const low = offsets[2 * row]! >>> 0;
  return high < 0x200000 ? high * TWO_TO_32 + low : (BigInt(high) << 32n) | BigInt(low);
}

function addedOf(batch: RawBatch, { choice, prefix, pipeline }: HeaderChoice): Added[] {
  const { stream } = batch;
  const locator = [
    constant(`${prefix}source_topic`, stream.topic),
    constant(`${prefix}source_partition`, String(stream.partition)),
    decimal(`${prefix}source_offset`, (row) => offsetOf(batch, row)),
  ];
  if (choice !== "all") return locator;
  const run = runAt(batch);
  return [
    constant(`${prefix}source_cluster`, stream.cluster),
    ...locator,
    decimal(`${prefix}source_leader_epoch`, (row) => {
      const epoch = batch.runs.leaderEpoch[run(row)]!;
      return epoch < 0 ? null : epoch;
    }),
    {
      name: UTF8.encode(`${prefix}source_timestamp_type`),
      most: 16,
      cell: (row, out, at) => {
        const type = TIMESTAMP_TYPES[batch.runs.timestampType[run(row)]!] ?? "";
        return type === "" ? -1 : UTF8.encodeInto(type, out.subarray(at)).written;
      },
    },
    recordIds(`${prefix}record_id`, batch),
    constant(`${prefix}ingest_ts`, String(batch.ingestTs)),
    constant(`${prefix}pipeline`, pipeline),
  ];
}

/** Rows are asked for in their order. */
function runAt({ runs }: RawBatch): (row: number) => number {
  let run = 0;
  return (row) => {
    if (run > 0 && row < runs.end[run - 1]!) run = 0;
    while (run < runs.count - 1 && row >= runs.end[run]!) run++;
    return run;
  };
}

const HEX = UTF8.encode("0123456789abcdef");

function recordIds(name: string, batch: RawBatch): Added {
  const { stream, rows, offsets } = batch;
  const words = new Int32Array(4 * rows);
  fillRecordIds(recordIdBase(stream), stream.partition, offsets, 0, rows, words, 0);
  const bytes = new Uint8Array(words.buffer);
  return {
    name: UTF8.encode(name),
    most: 32,
    cell: (row, out, at) => {
      for (let i = 0; i < 16; i++) {
        const byte = bytes[16 * row + i]!;
        out[at + 2 * i] = HEX[byte >>> 4]!;
        out[at + 2 * i + 1] = HEX[byte & 15]!;
      }
      return 32;
    },
  };
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

function withMetadata(batch: RawBatch, own: HeadersColumn | null, choice: HeaderChoice): HeadersColumn {
  const { rows } = batch;
  const added = addedOf(batch, choice);
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

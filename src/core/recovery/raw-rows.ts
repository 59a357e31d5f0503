/**
 * Rows of raw files as the records that they were: the columns of a query over row groups become batches such as a frame
 * decoder makes. Whose record a row is, its id says: two topics that had one name may have the same positions in one file.
 */
import { Failure } from "../failure/failure.ts";
import type { BatchRuns, BytesColumn, HeadersColumn, RawBatch } from "../records/raw-batch.ts";
import { fillRecordIds, type RecordIdBase, recordIdBase } from "../records/record-id.ts";
import { type StreamId, streamKey } from "../records/stream.ts";
import { timestampTypeOf } from "../records/timestamp-type.ts";
import type { ColumnType, TableBatch, TableColumn } from "../types/table-batch.ts";
import { typeText } from "../types/type-text.ts";
import { placeOf } from "./raw-columns.ts";

const INT64: ColumnType = { id: "int", bits: 64, signed: true };
const INT32: ColumnType = { id: "int", bits: 32, signed: true };
const BYTES: ColumnType = { id: "binary" };
const BOOL: ColumnType = { id: "bool" };
const FIELD = (name: string, type: ColumnType) => ({ name, type, nullable: true });
const HEADERS: ColumnType = {
  id: "list",
  item: FIELD("l", { id: "struct", fields: [FIELD("f0", BYTES), FIELD("f1", BYTES)] }),
};

/** Columns that are read, in this order, as they are stored. */
const COLUMNS = [
  ["source_offset", INT64],
  ["source_timestamp", INT64],
  ["source_timestamp_type", BYTES],
  ["source_key", BYTES],
  ["source_value", BYTES],
  ["source_headers", HEADERS],
  ["source_leader_epoch", INT32],
  ["source_producer_id", INT64],
  ["source_producer_epoch", INT32],
  ["source_base_sequence", INT32],
  ["source_transactional", BOOL],
  ["record_id", BYTES],
  ["ingest_ts", INT64],
] as const;

const UTF8 = new TextEncoder();
const ID_BYTES = 16;

/** The columns of a raw file that have to be where they are expected, by number; names without prefix. */
export const RAW_PLACES: readonly (readonly [place: number, name: string])[] = [
  "source_topic",
  "source_partition",
  ...COLUMNS.map(([name]) => name),
].map((name) => [placeOf(name), name]);

const blob = (text: string): string => {
  const hex = [...UTF8.encode(text)].map((b) => `\\x${b.toString(16).padStart(2, "0")}`);
  return `'${hex.join("")}'::BLOB`;
};

/** DuckDB's query for the rows of a stream in [from, next). `files`: as SQL; `sorted`: its rows lie in one file, in order. */
export function rawRowsQuery(
  files: string,
  { topic, partition }: StreamId,
  { from, next }: { readonly from: bigint; readonly next: bigint },
  sorted: boolean,
): string {
  const at = (name: string) => `c${placeOf(name)}`;
  const offset = at("source_offset");
  const where = `${at("source_topic")} = ${blob(topic)} AND ${at("source_partition")} = ${partition} AND ${offset} >= ${from} AND ${offset} < ${next}`;
  const order = sorted ? "" : ` ORDER BY ${offset}`;
  return `SELECT ${COLUMNS.map(([name]) => at(name)).join(", ")} FROM read_parquet(${files}) WHERE ${where}${order}`;
}

/** Native memory is read by these types: throws internal.bug where the engine sees others. */
export function checkRawFields(fields: TableBatch["fields"]): void {
  for (const [i, [name, type]] of COLUMNS.entries()) {
    const seen = fields[i]?.type;
    if (seen === undefined || shape(seen) !== shape(type))
      throw new Failure("internal.bug", `${name} is read as ${seen === undefined ? "nothing" : shape(seen)}`);
  }
}

function shape(type: ColumnType): string {
  if (type.id === "list") return `[${shape(type.item.type)}]`;
  if (type.id === "struct") return `{${type.fields.map((f) => shape(f.type)).join()}}`;
  return typeText(type);
}

export interface RawRowsOptions {
  readonly stream: StreamId;
  readonly from: bigint;
  readonly next: bigint;
  /** Rows of the topic before or after it was made anew may be among them. */
  readonly twoLives: boolean;
  /** Most of a batch. */
  readonly maxRows: number;
  readonly maxBytes: number;
}

/** The records of a stream in [from, next), from the batches of a query: pieces that follow one another up to its end. */
export class RawRows {
  readonly #o: RawRowsOptions;
  readonly #batches: Iterator<TableBatch>;
  readonly #base: RecordIdBase;
  #batch: TableBatch = EMPTY;
  #match: Uint8Array = new Uint8Array(0);
  #row = 0;
  /** Everything before it was given. */
  at: bigint;

  constructor(options: RawRowsOptions, batches: Iterator<TableBatch>) {
    this.#o = options;
    this.#batches = batches;
    this.#base = recordIdBase(options.stream);
    this.at = options.from;
  }

  /** Null: the end was given. */
  take(): RawBatch | null {
    if (this.at >= this.#o.next) return null;
    while (this.#more()) {
      const from = this.#row;
      const to = this.#pieceEnd(from);
      this.#row = to;
      if (this.#match[from] === 1) return this.#give(from, to);
    }
    // Up to there no record is.
    return this.#made(EMPTY, 0, 0, this.#o.next, 0);
  }

  close(): void {
    this.#batches.return?.();
  }

  #more(): boolean {
    while (this.#row >= this.#batch.rows) {
      const next = this.#batches.next();
      if (next.done === true) return false;
      this.#batch = next.value;
      this.#match = idsMatch(next.value, this.#base, this.#o.stream.partition);
      this.#row = 0;
      // What is nobody's here would be missed by everybody, and covered.
      if (!this.#o.twoLives && this.#match.includes(0)) throw notRaw(this.#o.stream);
    }
    return true;
  }

  /** Of rows that are of the stream, or are not, came at one time, and are not too many. */
  #pieceEnd(from: number): number {
    const { columns, rows } = this.#batch;
    const ingest = int64s(columns[12]!);
    const [keys, values] = [columns[3]!.offsets!, columns[4]!.offsets!];
    const most = Math.min(rows, from + this.#o.maxRows);
    let to = from + 1;
    while (to < most) {
      if (this.#match[to] !== this.#match[from] || ingest[to] !== ingest[from]) break;
      if (keys[to + 1]! - keys[from]! + values[to + 1]! - values[from]! > this.#o.maxBytes) break;
      to++;
    }
    return to;
  }

  #give(from: number, to: number): RawBatch {
    const offsets = int64s(this.#batch.columns[0]!);
    const next = offsets[to - 1]! + 1n;
    let isRising = offsets[from]! >= this.at;
    for (let i = from + 1; isRising && i < to; i++) isRising = offsets[i]! > offsets[i - 1]!;
    if (!isRising) throw outOfOrder(this.#o.stream, next);
    return this.#made(this.#batch, from, to, next, Number(int64s(this.#batch.columns[12]!)[from]));
  }

  #made(batch: TableBatch, from: number, to: number, next: bigint, ingestTs: number): RawBatch {
    const [offset, timestamp, , key, value, headers] = batch.columns;
    const { stream } = this.#o;
    const span = { stream: streamKey(stream), from: this.at, next };
    this.at = next;
    return {
      stream,
      span,
      rows: to - from,
      offsets: words(offset!, from, to, 0n),
      timestamps: words(timestamp!, from, to, -1n),
      key: bytesOf(key!, from, to),
      value: bytesOf(value!, from, to),
      headers: headersOf(headers!, from, to),
      runs: runsOf(batch, from, to),
      ingestTs,
    };
  }
}

export function notRaw(stream: StreamId): Failure {
  return new Failure("recovery.not_raw", "a row has the id of another record", {
    at: streamKey(stream),
    hint: "Have files of the raw sink been rewritten, or written by another program?",
  });
}

export function outOfOrder(stream: StreamId, next: bigint): Failure {
  return new Failure("recovery.raw_order", `positions before ${next} stand twice in raw, or out of order`, {
    at: streamKey(stream),
    hint: "Have files of the raw sink been copied or rewritten?",
  });
}

const EMPTY: TableBatch = {
  fields: [],
  rows: 0,
  columns: COLUMNS.map(([, type]) => emptyColumn(type)),
};

function emptyColumn(type: ColumnType): TableColumn {
  const children = type.id === "list" ? [type.item] : type.id === "struct" ? type.fields : [];
  return {
    type,
    length: 0,
    nullCount: 0,
    validity: null,
    offsets: new Int32Array(1),
    data: new Uint8Array(0),
    children: children.map((c) => emptyColumn(c.type)),
  };
}

const isNull = ({ validity }: TableColumn, row: number): boolean =>
  validity !== null && ((validity[row >> 3]! >> (row & 7)) & 1) === 0;

function aligned({ data }: TableColumn, width: number): Uint8Array {
  return data.byteOffset % width === 0 ? data : data.slice();
}

function int64s(column: TableColumn): BigInt64Array {
  const data = aligned(column, 8);
  return new BigInt64Array(data.buffer, data.byteOffset, column.length);
}

function int32s(column: TableColumn): Int32Array {
  const data = aligned(column, 4);
  return new Int32Array(data.buffer, data.byteOffset, column.length);
}

/** Int64 as pairs of int32. */
function words(column: TableColumn, from: number, to: number, none: bigint): Int32Array {
  const all = int64s(column).slice(from, to);
  if (column.nullCount > 0) for (let i = from; i < to; i++) if (isNull(column, i)) all[i - from] = none;
  return new Int32Array(all.buffer);
}

function bytesOf(column: TableColumn, from: number, to: number): BytesColumn {
  const offsets = column.offsets!.subarray(from, to + 1);
  const validity = new Uint8Array((to - from + 7) >> 3).fill(0xff);
  let nullCount = 0;
  if (column.nullCount > 0)
    for (let i = from; i < to; i++)
      if (isNull(column, i)) {
        nullCount++;
        const at = i - from;
        validity[at >> 3]! &= ~(1 << (at & 7));
      }
  return { offsets, data: column.data, validity, nullCount };
}

function headersOf(column: TableColumn, from: number, to: number): HeadersColumn {
  const all = column.offsets!;
  const [first, last] = [all[from]!, all[to]!];
  const offsets = all.slice(from, to + 1);
  for (let i = 0; i < offsets.length; i++) offsets[i]! -= first;
  const [keys, values] = column.children[0]!.children;
  return {
    offsets,
    entries: last - first,
    keys: bytesOf(keys!, first, last),
    values: bytesOf(values!, first, last),
  };
}

function runsOf(batch: TableBatch, from: number, to: number): BatchRuns {
  const [, , kind, , , , epoch, producer, producerEpoch, sequence, transactional] = batch.columns;
  const columns = [kind!, epoch!, producer!, producerEpoch!, sequence!, transactional!];
  const ends: number[] = [];
  for (let i = from + 1; i <= to; i++)
    if (i === to || columns.some((c) => differs(c, i - 1, i))) ends.push(i);
  const firsts = ends.map((_, i) => ends[i - 1] ?? from);
  const int = (c: TableColumn, none: number) => {
    const all = int32s(c);
    return firsts.map((i) => (isNull(c, i) ? none : all[i]!));
  };
  const producers = int64s(producer!);
  return {
    count: ends.length,
    end: Int32Array.from(ends, (e) => e - from),
    leaderEpoch: Int32Array.from(int(epoch!, -1)),
    producerId: BigInt64Array.from(firsts, (i) => (isNull(producer!, i) ? -1n : producers[i]!)),
    producerEpoch: Int16Array.from(int(producerEpoch!, -1)),
    baseSequence: Int32Array.from(int(sequence!, -1)),
    transactional: Uint8Array.from(firsts, (i) => bitAt(transactional!, i)),
    timestampType: Uint8Array.from(firsts, (i) => timestampType(kind!, i)),
  };
}

const bitAt = (c: TableColumn, row: number): number =>
  isNull(c, row) ? 0 : (c.data[row >> 3]! >> (row & 7)) & 1;

function timestampType(column: TableColumn, row: number): number {
  const offsets = column.offsets!;
  return timestampTypeOf(isNull(column, row) ? -1 : offsets[row + 1]! - offsets[row]!);
}

function differs(c: TableColumn, a: number, b: number): boolean {
  if (isNull(c, a) || isNull(c, b)) return isNull(c, a) !== isNull(c, b);
  if (c.type.id === "bool") return bitAt(c, a) !== bitAt(c, b);
  if (c.offsets !== null) return c.offsets[a + 1]! - c.offsets[a]! !== c.offsets[b + 1]! - c.offsets[b]!;
  const width = c.type.id === "int" ? c.type.bits / 8 : 1;
  for (let i = 0; i < width; i++) if (c.data[a * width + i] !== c.data[b * width + i]) return true;
  return false;
}

/** Of each row 1 if its id is that of the stream's record at its position. */
function idsMatch(batch: TableBatch, base: RecordIdBase, partition: number): Uint8Array {
  const { rows } = batch;
  const offsets = words(batch.columns[0]!, 0, rows, 0n);
  const wanted = new Int32Array(4 * rows);
  fillRecordIds(base, partition, offsets, 0, rows, wanted, 0);
  const expected = new Uint8Array(wanted.buffer);
  const { data, offsets: at } = batch.columns[11]!;
  const match = new Uint8Array(rows);
  for (let row = 0; row < rows; row++) {
    const from = at![row]!;
    let same = at![row + 1]! - from === ID_BYTES;
    for (let i = 0; same && i < ID_BYTES; i++) same = data[from + i] === expected[row * ID_BYTES + i];
    match[row] = same ? 1 : 0;
  }
  return match;
}

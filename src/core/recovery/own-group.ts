/**
 * The rows of one row group as the records that they were, read out of it as `twg` wrote it: page by page, into columns
 * that lie where they were decompressed. No row is copied, and memory is a page of each column.
 */
import { BytesPages, IdPages, Int64Pages, ListPages } from "../formats/parquet/read-columns.ts";
import { notParquet, readFooter } from "../formats/parquet/read-footer.ts";
import { type ColumnRuns, RunsReader, runAt } from "../formats/parquet/read-runs.ts";
import { type Inflate, PageDamage } from "../formats/parquet/stored-pages.ts";
import { int64At } from "../records/int64-at.ts";
import type { BatchRuns, BytesColumn, HeadersColumn, RawBatch } from "../records/raw-batch.ts";
import { fillRecordIds, type RecordIdBase, recordIdBase } from "../records/record-id.ts";
import { type StreamId, type StreamKey, streamKey } from "../records/stream.ts";
import { timestampTypeOf } from "../records/timestamp-type.ts";
import { readTurns, rises, type Turn } from "./group-runs.ts";
import { OWN_SHAPES, type OwnColumn, ownHeaderPages, ownPages } from "./raw-columns.ts";
import { notRaw, outOfOrder } from "./raw-rows.ts";

export interface OwnGroupOptions {
  readonly inflate: Inflate;
  /** Most of a batch. */
  readonly maxRows: number;
  readonly maxBytes: number;
}

const RUN_COLUMNS = [
  "source_timestamp_type",
  "source_leader_epoch",
  "source_producer_id",
  "source_producer_epoch",
  "source_base_sequence",
  "source_transactional",
  "ingest_ts",
] as const satisfies readonly OwnColumn[];
type RunColumnName = (typeof RUN_COLUMNS)[number];

const PAGED_COLUMNS = [
  "source_offset",
  "source_timestamp",
  "source_key",
  "source_value",
  "record_id",
] as const satisfies readonly OwnColumn[];

const NO_BYTES = new Uint8Array(0);
const NO_STRINGS: BytesColumn = {
  offsets: new Int32Array(1),
  data: NO_BYTES,
  validity: NO_BYTES,
  nullCount: 0,
};
const TAIL_BYTES = 8;

interface Place {
  /** The first row that was not given of the stream. */
  readonly row: number;
  /** Everything of it before this position was. */
  readonly at: bigint;
}

/** One for a lane: what it reads with is used again for the next group. */
export class OwnGroup {
  readonly #o: OwnGroupOptions;
  readonly #runsReader: RunsReader;
  readonly #offset: Int64Pages;
  readonly #timestamp: Int64Pages;
  readonly #key: BytesPages;
  readonly #value: BytesPages;
  readonly #headerKeys: ListPages;
  readonly #headerValues: ListPages;
  readonly #id: IdPages;
  readonly #paged: readonly { readonly end: number; seek(row: number): void }[];
  #runs: Readonly<Record<RunColumnName, ColumnRuns>> | null = null;
  #turns: readonly Turn[] = [];
  readonly #places = new Map<StreamKey, Place>();
  #ids = new Int32Array(0);
  readonly #bases = new Map<StreamKey, RecordIdBase>();

  constructor(options: OwnGroupOptions) {
    this.#o = options;
    const { inflate } = options;
    this.#runsReader = new RunsReader(inflate);
    this.#offset = new Int64Pages(0, inflate);
    this.#timestamp = new Int64Pages(-1, inflate);
    this.#key = new BytesPages(inflate);
    this.#value = new BytesPages(inflate);
    this.#headerKeys = new ListPages(2, inflate);
    this.#headerValues = new ListPages(3, inflate);
    this.#id = new IdPages(inflate);
    this.#paged = [
      ...[this.#offset, this.#timestamp, this.#key, this.#value],
      ...[this.#headerKeys, this.#headerValues, this.#id],
    ];
  }

  /** `file`: one row group as a file of its own, which stays as it is. False: it is stored otherwise, and is not read. */
  open(file: Uint8Array): boolean {
    return damageTold(() => this.#open(file));
  }

  #open(file: Uint8Array): boolean {
    this.#places.clear();
    const end = file.length - TAIL_BYTES;
    const length = new DataView(file.buffer, file.byteOffset + end).getUint32(0, true);
    const footer = readFooter(file.subarray(end - length, end), end - length, WHERE);
    const [group] = footer.groups;
    const chunks = group?.chunks ?? [];
    const turns = readTurns(file, footer, chunks, this.#o.inflate);
    const headers = ownHeaderPages(file, footer, chunks);
    const paged = PAGED_COLUMNS.map((name) => ownPages(file, footer, chunks, name));
    if (turns === null || headers === null) return false;
    const [offset, timestamp, key, value, id] = paged;
    if (!offset || !timestamp || !key || !value || !id) return false;
    const runs = {} as Record<RunColumnName, ColumnRuns>;
    for (const name of RUN_COLUMNS) {
      const pages = ownPages(file, footer, chunks, name);
      const { physical } = OWN_SHAPES[name];
      const read =
        pages === null
          ? null
          : this.#runsReader.read(file, pages, { physical, required: name === "ingest_ts" });
      if (read === null) return false;
      runs[name] = read;
    }
    this.#turns = turns;
    this.#runs = runs;
    this.#offset.open(file, offset);
    this.#timestamp.open(file, timestamp);
    this.#key.open(file, key);
    this.#value.open(file, value);
    this.#id.open(file, id);
    this.#headerKeys.open(file, headers[0]);
    this.#headerValues.open(file, headers[1]);
    return true;
  }

  /**
   * The records of the stream in [from, next) as batches that follow one another up to its end. `emit` may throw: its
   * batch was taken then, and the next call goes on behind it.
   */
  decode(
    stream: StreamId,
    { from, next }: { readonly from: bigint; readonly next: bigint },
    emit: (batch: RawBatch) => void,
  ): void {
    const key = streamKey(stream);
    let place = this.#places.get(key) ?? { row: 0, at: 0n };
    place = { row: from >= place.at ? place.row : 0, at: from };
    while (place.at < next) {
      const { batch, row } = damageTold(() => this.#batch(stream, key, place, next));
      place = { row, at: batch.span.next };
      this.#places.set(key, place);
      emit(batch);
    }
  }

  #batch(stream: StreamId, key: StreamKey, { row: start, at }: Place, next: bigint) {
    let row = start;
    for (let t = this.#turnAt(row); t < this.#turns.length; t++) {
      const { topic, partition, end } = this.#turns[t]!;
      if (topic === stream.topic && partition === stream.partition) {
        row = this.#skipped(row, end, at);
        if (row < end) {
          if (int64At(this.#offset.pairs, row - this.#offset.first) >= next) break;
          const to = this.#pieceEnd(row, end, next);
          return { batch: this.#made(stream, key, row, to, at), row: to };
        }
      }
      row = end;
    }
    // Up to there no record is.
    return { batch: this.#none(stream, key, at, next), row };
  }

  #turnAt(row: number): number {
    let low = 0;
    let high = this.#turns.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#turns[middle]!.end > row) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** The first row of [row, end) that is not before `at`. */
  #skipped(row: number, end: number, at: bigint): number {
    const column = this.#offset;
    for (; row < end; row = Math.min(end, column.end)) {
      column.seek(row);
      const to = Math.min(end, column.end);
      if (int64At(column.pairs, to - 1 - column.first) < at) continue;
      while (int64At(column.pairs, row - column.first) < at) row++;
      return row;
    }
    return end;
  }

  /** Of rows that came at one time, stand in one page of each column, lie before `next`, and are not too many. */
  #pieceEnd(from: number, turnEnd: number, next: bigint): number {
    const { maxRows, maxBytes } = this.#o;
    const ingest = this.#runs!.ingest_ts;
    let to = Math.min(turnEnd, from + maxRows, ingest.ends[runAt(ingest, from)]!);
    for (const column of this.#paged) {
      column.seek(from);
      to = Math.min(to, column.end);
    }
    const { pairs, first } = this.#offset;
    to = lastWhere(from, to, (row) => int64At(pairs, row - first) < next);
    const [key, value] = [this.#key, this.#value];
    const bytesAt = (row: number) => key.offsets[row - key.first]! + value.offsets[row - value.first]!;
    const most = bytesAt(from) + maxBytes;
    return lastWhere(from, to, (row) => row === from || bytesAt(row + 1) <= most);
  }

  #made(stream: StreamId, key: StreamKey, from: number, to: number, at: bigint): RawBatch {
    const offset = this.#offset;
    const [low, high] = [from - offset.first, to - offset.first];
    const next = int64At(offset.pairs, high - 1) + 1n;
    if (int64At(offset.pairs, low) < at || !rises(offset.pairs, low, high)) throw outOfOrder(stream, next);
    const offsets = offset.pairs.subarray(2 * low, 2 * high);
    this.#checkIds(stream, key, offsets, from, to);
    const timestamps = this.#timestamp.pairs.subarray(
      2 * (from - this.#timestamp.first),
      2 * (to - this.#timestamp.first),
    );
    return {
      stream,
      span: { stream: key, from: at, next },
      rows: to - from,
      offsets,
      timestamps,
      key: this.#key.slice(from, to),
      value: this.#value.slice(from, to),
      headers: this.#headersOf(from, to),
      runs: this.#runsOf(from, to),
      ingestTs: Number(this.#int64("ingest_ts", from)),
    };
  }

  #none(stream: StreamId, key: StreamKey, from: bigint, next: bigint): RawBatch {
    return {
      stream,
      span: { stream: key, from, next },
      rows: 0,
      offsets: new Int32Array(0),
      timestamps: new Int32Array(0),
      key: NO_STRINGS,
      value: NO_STRINGS,
      headers: { offsets: new Int32Array(1), entries: 0, keys: NO_STRINGS, values: NO_STRINGS },
      runs: this.#runsOf(0, 0),
      ingestTs: 0,
    };
  }

  /** What is nobody's here would be missed by everybody, and covered. */
  #checkIds(stream: StreamId, key: StreamKey, offsets: Int32Array, from: number, to: number): void {
    const words = 4 * (to - from);
    if (this.#ids.length < words) this.#ids = new Int32Array(words);
    const expected = this.#ids;
    let base = this.#bases.get(key);
    if (base === undefined) {
      base = recordIdBase(stream);
      this.#bases.set(key, base);
    }
    fillRecordIds(base, stream.partition, offsets, 0, to - from, expected, 0);
    const found = this.#id.words;
    const first = 4 * (from - this.#id.first);
    for (let i = 0; i < words; i++) if (found[first + i] !== expected[i]) throw notRaw(stream);
  }

  #headersOf(from: number, to: number): HeadersColumn {
    const { starts, first } = this.#headerKeys;
    const begin = starts[from - first]!;
    const offsets = starts.slice(from - first, to - first + 1);
    const entries = offsets[to - from]! - begin;
    if (entries === 0) return { offsets: offsets.fill(0), entries, keys: NO_STRINGS, values: NO_STRINGS };
    for (let i = 0; i < offsets.length; i++) offsets[i]! -= begin;
    const [keys, values] = [this.#headerKeys.slice(from, to), this.#headerValues.slice(from, to)];
    if (keys.offsets.length !== entries + 1 || values.offsets.length !== entries + 1)
      throw new PageDamage("headers have other values than keys");
    return { offsets, entries, keys, values };
  }

  #runsOf(from: number, to: number): BatchRuns {
    const all = this.#runs!;
    const columns = RUN_COLUMNS.slice(0, -1).map((name) => all[name]);
    const at = columns.map((c) => runAt(c, from));
    const firsts: number[] = [];
    const ends: number[] = [];
    for (let row = from; row < to; ) {
      firsts.push(row);
      let end = to;
      for (const [i, c] of columns.entries()) {
        while (c.ends[at[i]!]! <= row) at[i]!++;
        end = Math.min(end, c.ends[at[i]!]!);
      }
      ends.push(end - from);
      row = end;
    }
    return {
      count: ends.length,
      end: Int32Array.from(ends),
      leaderEpoch: Int32Array.from(firsts, (row) => this.#int32("source_leader_epoch", row)),
      producerId: BigInt64Array.from(firsts, (row) => this.#int64("source_producer_id", row)),
      producerEpoch: Int16Array.from(firsts, (row) => this.#int32("source_producer_epoch", row)),
      baseSequence: Int32Array.from(firsts, (row) => this.#int32("source_base_sequence", row)),
      transactional: Uint8Array.from(firsts, (row) => Math.max(0, this.#index("source_transactional", row))),
      timestampType: Uint8Array.from(firsts, (row) =>
        timestampTypeOf(this.#bytes("source_timestamp_type", row)?.length ?? -1),
      ),
    };
  }

  #index(name: RunColumnName, row: number): number {
    const column = this.#runs![name];
    return column.values[runAt(column, row)]!;
  }

  #bytes(name: RunColumnName, row: number): Uint8Array | null {
    return this.#runs![name].dictionary[this.#index(name, row)] ?? null;
  }

  #int32(name: RunColumnName, row: number): number {
    const bytes = this.#bytes(name, row);
    return bytes === null ? -1 : new DataView(bytes.buffer).getInt32(0, true);
  }

  #int64(name: RunColumnName, row: number): bigint {
    const bytes = this.#bytes(name, row);
    return bytes === null ? -1n : new DataView(bytes.buffer).getBigInt64(0, true);
  }
}

const WHERE = "raw that is read again";

function damageTold<T>(read: () => T): T {
  try {
    return read();
  } catch (e) {
    throw e instanceof PageDamage ? notParquet(e.message, WHERE) : e;
  }
}

/** The row after the last of [from, to) for which `fits` holds: it holds for all before one for which it does. */
function lastWhere(from: number, to: number, fits: (row: number) => boolean): number {
  let low = from;
  let high = to;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (fits(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}

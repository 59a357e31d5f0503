/**
 * Rows of a raw table as the records that they were: one page of it, as COPY TO gives it in binary, becomes batches such as a frame
 * decoder makes. All rows of a page are of one stream, in the order of their positions.
 *
 *   page   "PGCOPY\n\377\r\n\0" | int32 flags | int32 size of an extension | row ... | int16 -1
 *   row    as in copy/raw-rows.ts, its fields those of PAGE_COLUMNS
 */
import { Failure } from "../../../core/failure/failure.ts";
import { int64At } from "../../../core/records/int64-at.ts";
import type { BatchRuns, RawBatch } from "../../../core/records/raw-batch.ts";
import { fillRecordIds, type RecordIdBase, recordIdBase } from "../../../core/records/record-id.ts";
import { type StreamId, type StreamKey, streamKey } from "../../../core/records/stream.ts";
import { timestampTypeOf } from "../../../core/records/timestamp-type.ts";
import { notRaw, outOfOrder } from "../../../core/recovery/raw-rows.ts";
import { millisecondsAt } from "../copy/timestamps.ts";
import { BytesBuilder } from "./bytes-builder.ts";

/** Columns of a page, names without prefix. Those of a run, which producers' batches share, stand side by side. */
export const PAGE_COLUMNS = [
  "source_offset",
  "source_timestamp",
  "source_timestamp_beyond",
  "record_id",
  "ingest_ts",
  "source_timestamp_type",
  "source_leader_epoch",
  "source_producer_id",
  "source_producer_epoch",
  "source_base_sequence",
  "source_transactional",
  "source_key",
  "source_value",
  "source_headers",
] as const;

/** Sizes of fields in bytes, in the order of the columns; null: any. */
const SIZES: readonly (number | null)[] = [8, 8, 8, 16, 8, null, 4, 8, 4, 4, 1, null, null, null];
const at = (name: (typeof PAGE_COLUMNS)[number]): number => PAGE_COLUMNS.indexOf(name);
const OFFSET = at("source_offset");
const TIMESTAMP = at("source_timestamp");
const BEYOND = at("source_timestamp_beyond");
const ID = at("record_id");
const INGEST = at("ingest_ts");
const KIND = at("source_timestamp_type");
const EPOCH = at("source_leader_epoch");
const PRODUCER = at("source_producer_id");
const PRODUCER_EPOCH = at("source_producer_epoch");
const SEQUENCE = at("source_base_sequence");
const TRANSACTIONAL = at("source_transactional");
const KEY = at("source_key");
const VALUE = at("source_value");
const HEADERS = at("source_headers");
const FIELDS = PAGE_COLUMNS.length;
const NEVER_NULL = new Set([OFFSET, ID, INGEST]);

const SIGNATURE = Uint8Array.of(0x50, 0x47, 0x43, 0x4f, 0x50, 0x59, 0x0a, 0xff, 0x0d, 0x0a, 0x00);
const HEAD_BYTES = SIGNATURE.length + 8;
const ARRAY_HEAD_BYTES = 28;
const ID_WORDS = 4;

export interface PageRowsOptions {
  /** Most of a batch. */
  readonly maxRows: number;
  readonly maxBytes: number;
}

interface Runs {
  readonly end: number[];
  readonly leaderEpoch: number[];
  readonly producerId: bigint[];
  readonly producerEpoch: number[];
  readonly baseSequence: number[];
  readonly transactional: number[];
  readonly timestampType: number[];
}

const noRuns = (): Runs => ({
  ...{ end: [], leaderEpoch: [], producerId: [], producerEpoch: [] },
  ...{ baseSequence: [], transactional: [], timestampType: [] },
});

/** One for a lane: its arrays are used again for the next batch. */
export class PageRows {
  readonly #o: PageRowsOptions;
  #bytes: Uint8Array = new Uint8Array(0);
  #view: DataView = new DataView(new ArrayBuffer(0));
  #first = 0;
  /** Of the row that is next. */
  #at = 0;
  /** Everything before this position was given. */
  #position = 0n;
  /** Of the row before, in halves. */
  #high = -1;
  #low = 0;
  /** Begin and size of each field of the row at hand. */
  readonly #begins = new Int32Array(FIELDS);
  readonly #sizes = new Int32Array(FIELDS);
  readonly #offsets: Int32Array;
  readonly #timestamps: Int32Array;
  readonly #ids: Int32Array;
  readonly #expected: Int32Array;
  readonly #key = new BytesBuilder();
  readonly #value = new BytesBuilder();
  readonly #headerStarts: Int32Array;
  readonly #headerKeys = new BytesBuilder();
  readonly #headerValues = new BytesBuilder();
  readonly #bases = new Map<StreamKey, RecordIdBase>();

  constructor(options: PageRowsOptions) {
    this.#o = options;
    const { maxRows } = options;
    this.#offsets = new Int32Array(2 * maxRows);
    this.#timestamps = new Int32Array(2 * maxRows);
    this.#ids = new Int32Array(ID_WORDS * maxRows);
    this.#expected = new Int32Array(ID_WORDS * maxRows);
    this.#headerStarts = new Int32Array(maxRows + 1);
  }

  /** `page` stays as it is while its rows are read. */
  open(page: Uint8Array): void {
    this.#bytes = page;
    this.#view = new DataView(page.buffer, page.byteOffset, page.byteLength);
    if (page.length < HEAD_BYTES || SIGNATURE.some((b, i) => page[i] !== b)) throw noPage("it has no head");
    const extension = this.#view.getInt32(HEAD_BYTES - 4);
    if (extension < 0) throw noPage("its head has no size");
    this.#first = HEAD_BYTES + extension;
    this.#rewind();
  }

  #rewind(): void {
    this.#at = this.#first;
    this.#position = 0n;
    this.#high = -1;
    this.#low = 0;
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
    if (from < this.#position) this.#rewind();
    this.#position = from;
    const key = streamKey(stream);
    while (this.#position < next) {
      const batch = this.#batch(stream, key, next);
      this.#position = batch.span.next;
      emit(batch);
    }
  }

  #batch(stream: StreamId, key: StreamKey, next: bigint): RawBatch {
    for (const column of [this.#key, this.#value, this.#headerKeys, this.#headerValues]) column.clear();
    const from = this.#position;
    const [low, end] = [halves(from), halves(next)];
    const { maxRows, maxBytes } = this.#o;
    const runs = noRuns();
    let rows = 0;
    let ingest = 0;
    /** Where the fields of the run at hand stand. */
    let run = { from: 0, to: 0 };
    while (rows < maxRows) {
      const after = this.#row();
      if (after < 0) break;
      const [high, word] = [this.#int32(OFFSET), this.#view.getInt32(this.#begins[OFFSET]! + 4)];
      if (!isBelow(high, word, end.high, end.low)) break;
      if (isBelow(high, word, low.high, low.low)) {
        this.#passed(stream, high, word, next, after);
        continue;
      }
      const came = millisecondsAt(this.#view, this.#begins[INGEST]!);
      if (rows === 0) ingest = came;
      const bytes = Math.max(0, this.#sizes[KEY]!) + Math.max(0, this.#sizes[VALUE]!);
      const isFull = this.#key.bytes + this.#value.bytes + bytes > maxBytes;
      if (rows > 0 && (came !== ingest || isFull)) break;
      this.#passed(stream, high, word, next, after);
      const fields = { from: this.#begins[KIND]! - 4, to: this.#begins[KEY]! - 4 };
      if (rows === 0 || !this.#same(run, fields)) {
        if (rows > 0) runs.end.push(rows);
        this.#begun(runs);
      }
      run = fields;
      this.#take(rows++, high, word);
    }
    if (rows > 0) runs.end.push(rows);
    if (rows > 0) this.#checkIds(stream, key, rows);
    const last = rows === 0 ? next : int64At(this.#offsets, rows - 1) + 1n;
    return this.#made(stream, { stream: key, from, next: last }, rows, runs, ingest);
  }

  /** Where the row after the one at hand begins; below 0: there is none. */
  #row(): number {
    const [bytes, view] = [this.#bytes, this.#view];
    let at = this.#at;
    if (at + 2 > bytes.length) throw noPage("it ends early");
    const fields = view.getInt16(at);
    if (fields === -1) return -1;
    if (fields !== FIELDS) throw noPage(`a row of it has ${fields} fields`);
    at += 2;
    for (let i = 0; i < FIELDS; i++) {
      if (at + 4 > bytes.length) throw noPage("it ends early");
      const size = view.getInt32(at);
      at += 4;
      const wanted = SIZES[i];
      if (size < 0 ? NEVER_NULL.has(i) : wanted !== null && size !== wanted)
        throw noPage(`${PAGE_COLUMNS[i]} has ${size} bytes`);
      this.#begins[i] = at;
      this.#sizes[i] = size;
      if (size > 0) at += size;
    }
    if (at > bytes.length) throw noPage("it ends early");
    return at;
  }

  /** The row at hand was read: the next one is at hand. */
  #passed(stream: StreamId, high: number, low: number, next: bigint, after: number): void {
    if (!isBelow(this.#high, this.#low, high, low)) throw outOfOrder(stream, next);
    this.#high = high;
    this.#low = low;
    this.#at = after;
  }

  #same(a: { from: number; to: number }, b: { from: number; to: number }): boolean {
    const size = a.to - a.from;
    if (size !== b.to - b.from) return false;
    for (let i = 0; i < size; i++) if (this.#bytes[a.from + i] !== this.#bytes[b.from + i]) return false;
    return true;
  }

  #begun(runs: Runs): void {
    const kind = this.#sizes[KIND]!;
    const [producer, transactional] = [this.#sizes[PRODUCER]!, this.#sizes[TRANSACTIONAL]!];
    runs.timestampType.push(timestampTypeOf(kind));
    runs.leaderEpoch.push(this.#int32(EPOCH));
    runs.producerId.push(producer < 0 ? -1n : this.#view.getBigInt64(this.#begins[PRODUCER]!));
    runs.producerEpoch.push(this.#int32(PRODUCER_EPOCH));
    runs.baseSequence.push(this.#int32(SEQUENCE));
    runs.transactional.push(transactional < 0 ? 0 : this.#bytes[this.#begins[TRANSACTIONAL]!]!);
  }

  /** -1: null. Of a field of 8 bytes the high half. */
  #int32(field: number): number {
    return this.#sizes[field]! < 0 ? -1 : this.#view.getInt32(this.#begins[field]!);
  }

  #take(row: number, high: number, low: number): void {
    const [begins, sizes, bytes, view] = [this.#begins, this.#sizes, this.#bytes, this.#view];
    this.#offsets[2 * row] = low;
    this.#offsets[2 * row + 1] = high;
    this.#takeTimestamp(row);
    const id = begins[ID]!;
    for (let i = 0; i < ID_WORDS; i++) this.#ids[ID_WORDS * row + i] = view.getInt32(id + 4 * i, true);
    this.#key.add(bytes, begins[KEY]!, sizes[KEY]!);
    this.#value.add(bytes, begins[VALUE]!, sizes[VALUE]!);
    this.#headerStarts[row] = this.#headerKeys.rows;
    this.#takeHeaders(begins[HEADERS]!, sizes[HEADERS]!);
    this.#headerStarts[row + 1] = this.#headerKeys.rows;
  }

  #takeTimestamp(row: number): void {
    const [timestamps, view] = [this.#timestamps, this.#view];
    if (this.#sizes[BEYOND]! >= 0) {
      timestamps[2 * row + 1] = view.getInt32(this.#begins[BEYOND]!);
      timestamps[2 * row] = view.getInt32(this.#begins[BEYOND]! + 4);
      return;
    }
    const none = this.#sizes[TIMESTAMP]! < 0;
    const ms = none ? -1 : millisecondsAt(view, this.#begins[TIMESTAMP]!);
    const high = Math.floor(ms / TWO_32);
    timestamps[2 * row + 1] = high;
    timestamps[2 * row] = (ms - high * TWO_32) | 0;
  }

  #takeHeaders(begin: number, size: number): void {
    if (size < 0) return;
    const [bytes, view] = [this.#bytes, this.#view];
    const end = begin + size;
    const dimensions = size < 12 ? -1 : view.getInt32(begin);
    if (dimensions === 0) return;
    const isPairs = dimensions === 2 && size >= ARRAY_HEAD_BYTES && view.getInt32(begin + 20) === 2;
    if (!isPairs) throw noPage("headers are no pairs");
    const entries = view.getInt32(begin + 12);
    let at = begin + ARRAY_HEAD_BYTES;
    for (let i = 0; i < 2 * entries; i++) {
      if (at + 4 > end) throw noPage("headers end early");
      const length = view.getInt32(at);
      at += 4;
      if (at + Math.max(0, length) > end || (length < 0 && i % 2 === 0)) throw noPage("headers end early");
      (i % 2 === 0 ? this.#headerKeys : this.#headerValues).add(bytes, at, length);
      at += Math.max(0, length);
    }
  }

  /** What is nobody's here would be missed by everybody, and covered. */
  #checkIds(stream: StreamId, key: StreamKey, rows: number): void {
    let base = this.#bases.get(key);
    if (base === undefined) {
      base = recordIdBase(stream);
      this.#bases.set(key, base);
    }
    fillRecordIds(base, stream.partition, this.#offsets, 0, rows, this.#expected, 0);
    for (let i = 0; i < ID_WORDS * rows; i++) if (this.#ids[i] !== this.#expected[i]) throw notRaw(stream);
  }

  #made(stream: StreamId, span: RawBatch["span"], rows: number, runs: Runs, ingestTs: number): RawBatch {
    return {
      stream,
      span,
      rows,
      offsets: this.#offsets.subarray(0, 2 * rows),
      timestamps: this.#timestamps.subarray(0, 2 * rows),
      key: this.#key.column(),
      value: this.#value.column(),
      headers: {
        offsets: this.#headerStarts.subarray(0, rows + 1),
        entries: this.#headerKeys.rows,
        keys: this.#headerKeys.column(),
        values: this.#headerValues.column(),
      },
      runs: columnsOf(runs),
      ingestTs,
    };
  }
}

const TWO_32 = 4_294_967_296;

function columnsOf(runs: Runs): BatchRuns {
  return {
    count: runs.end.length,
    end: Int32Array.from(runs.end),
    leaderEpoch: Int32Array.from(runs.leaderEpoch),
    producerId: BigInt64Array.from(runs.producerId),
    producerEpoch: Int16Array.from(runs.producerEpoch),
    baseSequence: Int32Array.from(runs.baseSequence),
    transactional: Uint8Array.from(runs.transactional),
    timestampType: Uint8Array.from(runs.timestampType),
  };
}

function halves(position: bigint): { readonly high: number; readonly low: number } {
  return { high: Number(position >> 32n), low: Number(BigInt.asIntN(32, position)) };
}

const isBelow = (high: number, low: number, otherHigh: number, otherLow: number): boolean =>
  high < otherHigh || (high === otherHigh && low >>> 0 < otherLow >>> 0);

function noPage(what: string): Failure {
  return new Failure("recovery.not_raw", `rows of the raw table cannot be read: ${what}`, {
    hint: "Have columns of the table been changed?",
  });
}

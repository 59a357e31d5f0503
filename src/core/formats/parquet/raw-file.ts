/**
 * One Parquet file of raw records, written as a stream: batches in, final bytes out, memory bounded by one row
 * group's compressed pages and a page per column. Several streams may take turns in one file.
 */

import { METADATA_COLUMNS } from "../../records/metadata-columns.ts";
import type { RawBatch } from "../../records/raw-batch.ts";
import { type RecordIdBase, recordIdBase } from "../../records/record-id.ts";
import type { StreamId } from "../../records/stream.ts";
import { TIMESTAMP_TYPES } from "../../records/timestamp-type.ts";
import { BytesLeaf } from "./bytes-column.ts";
import { RecordIdColumn } from "./fixed-column.ts";
import { footerBytes, MAGIC, rowGroupBytes } from "./footer.ts";
import { Int64Column } from "./int64-column.ts";
import type { ChunkInfo, PageContext } from "./page.ts";
import { DICTIONARY_LIMIT, RunColumn, type RunKind } from "./run-column.ts";
import { type LeafSpec, leavesOf, writeSchema } from "./schema.ts";
import { OutQueue } from "./slabs.ts";
import { ThriftWriter } from "./thrift.ts";

export interface RawFileOptions {
  readonly context: PageContext;
  /** Of the metadata columns. */
  readonly prefix: string;
  readonly pipeline: string;
  readonly version: string;
  /** Raw bytes at which a row group is closed. */
  readonly rowGroupBytes: number;
}

/** Raw bytes that a row has beside key, value and headers: id, offset, timestamp and a share of the runs. */
const ROW_BYTES = 40;
/** Levels and lengths of a header. */
const HEADER_BYTES = 10;

/** Rows taken at a time, so that a row group ends near its limit however large a batch is. */
const STEP_ROWS = 16 * 1024;
/**
 * Milliseconds beyond which a timestamp in microseconds overflows int64. Readers that hold microseconds (DuckDB,
 * Spark) cannot even parse such bounds, so none are given; the values themselves are kept.
 */
const MICROSECOND_READERS = 9_200_000_000_000_000;

interface Column {
  readonly held: number;
  finish(out: OutQueue): ChunkInfo;
}

export class RawFile {
  readonly #o: RawFileOptions;
  readonly #leaves: readonly LeafSpec[];
  readonly #out: OutQueue;
  readonly #columns: readonly Column[];
  readonly #run: Readonly<Record<SetColumn, RunColumn>>;
  readonly #runs: readonly RunColumn[];
  readonly #neverSet: readonly RunColumn[];
  readonly #value: BytesLeaf;
  readonly #key: BytesLeaf;
  readonly #headerKeys: BytesLeaf;
  readonly #headerValues: BytesLeaf;
  readonly #offset: Int64Column;
  readonly #timestamp: Int64Column;
  readonly #recordId: RecordIdColumn;
  readonly #groups: Uint8Array[] = [];
  #groupBytes = 0;
  #groupRows = 0;
  #rows = 0;
  #stream: StreamId | null = null;
  #base: RecordIdBase = new Int32Array(4);

  constructor(options: RawFileOptions) {
    this.#o = options;
    const { context } = options;
    this.#out = new OutQueue(context.slabs);
    this.#leaves = leavesOf(options.prefix);
    this.#value = new BytesLeaf(context, { list: false, maxDefinition: 1 });
    this.#key = new BytesLeaf(context, { list: false, maxDefinition: 1 });
    this.#headerKeys = new BytesLeaf(context, { list: true, maxDefinition: 2 });
    this.#headerValues = new BytesLeaf(context, { list: true, maxDefinition: 3 });
    this.#offset = new Int64Column(context);
    this.#timestamp = new Int64Column(context, MICROSECOND_READERS);
    this.#recordId = new RecordIdColumn(context);
    const varying: Readonly<Record<string, readonly Column[]>> = {
      source_value: [this.#value],
      source_key: [this.#key],
      source_headers: [this.#headerKeys, this.#headerValues],
      source_offset: [this.#offset],
      source_timestamp: [this.#timestamp],
      record_id: [this.#recordId],
    };
    const runs = new Map<string, RunColumn>();
    this.#columns = METADATA_COLUMNS.flatMap((c): readonly Column[] => {
      const known = varying[c.name];
      if (known !== undefined) return known;
      const column = new RunColumn(context, c.type as RunKind, !c.nullable);
      runs.set(c.name, column);
      return [column];
    });
    this.#runs = [...runs.values()];
    this.#run = Object.fromEntries(SET_COLUMNS.map((n) => [n, runs.get(n)!])) as Record<SetColumn, RunColumn>;
    this.#neverSet = [...runs].filter(([name]) => !SET_BY_BATCH.has(name)).map(([, column]) => column);
    this.#out.append(MAGIC);
  }

  /** Rows so far, whole file. */
  get rows(): number {
    return this.#rows;
  }

  /** Bytes of memory behind the file: pages, buffers, finished bytes that wait. */
  get held(): number {
    let n = this.#out.held;
    for (const c of this.#columns) n += c.held;
    for (const g of this.#groups) n += g.length;
    return n;
  }

  /** How large the file would be if it were ended now, roughly: what is in no page yet counts raw. */
  get size(): number {
    const pages = [this.#value, this.#key, this.#headerKeys, this.#headerValues];
    const open =
      pages.reduce((n, c) => n + c.size, 0) + this.#offset.size + this.#timestamp.size + this.#recordId.size;
    return this.#out.position + open;
  }

  /** Bytes that are final; `first` and `dropFirst` take them out in order. */
  get out(): OutQueue {
    return this.#out;
  }

  /** Rows [from, to) of the batch. Copies what it keeps. `emitTs`: wall time, ms. */
  append(batch: RawBatch, from: number, to: number, emitTs: number): void {
    for (let at = from; at < to; at += STEP_ROWS) this.#step(batch, at, Math.min(to, at + STEP_ROWS), emitTs);
  }

  #step(batch: RawBatch, from: number, to: number, emitTs: number): void {
    const rows = to - from;
    this.#value.append(batch.value, null, from, to);
    this.#key.append(batch.key, null, from, to);
    this.#appendHeaders(batch, from, to);
    this.#offset.append(batch.offsets, from, to);
    this.#recordId.append(this.#baseOf(batch.stream), batch.stream.partition, batch.offsets, from, to);
    this.#appendRuns(batch, from, to);
    this.#appendConstants(batch, rows, emitTs);
    this.#rows += rows;
    this.#groupRows += rows;
    this.#groupBytes += rawBytes(batch, from, to);
    if (this.#groupBytes >= this.#o.rowGroupBytes || this.#dictionaryFull()) this.#closeGroup();
  }

  /** Ends the file; afterwards only `out` is of use. */
  finish(metadata: readonly (readonly [key: string, value: string])[]): void {
    this.#closeGroup();
    const schema = new ThriftWriter();
    const elements = writeSchema(schema, this.#o.prefix);
    this.#out.append(
      footerBytes({
        schema: schema.view(),
        elements,
        leaves: this.#leaves.length,
        rows: this.#rows,
        rowGroups: this.#groups,
        metadata,
        createdBy: `twg version ${this.#o.version}`,
      }),
    );
  }

  /** Gives all memory back to the pool. */
  drop(): void {
    for (const c of [this.#value, this.#key, this.#headerKeys, this.#headerValues]) c.drop();
    for (const c of [this.#offset, this.#timestamp, this.#recordId]) c.drop();
    this.#out.drop();
  }

  #baseOf(stream: StreamId): RecordIdBase {
    const s = this.#stream;
    if (
      s !== null &&
      s.topic === stream.topic &&
      s.cluster === stream.cluster &&
      s.incarnation === stream.incarnation
    ) {
      return this.#base;
    }
    this.#stream = stream;
    this.#base = recordIdBase(stream);
    return this.#base;
  }

  #appendHeaders(batch: RawBatch, from: number, to: number): void {
    const { headers } = batch;
    if (headers.entries === 0 || headers.offsets[from] === headers.offsets[to]) {
      this.#headerKeys.appendEmptyLists(to - from);
      this.#headerValues.appendEmptyLists(to - from);
      return;
    }
    this.#headerKeys.append(headers.keys, headers.offsets, from, to);
    this.#headerValues.append(headers.values, headers.offsets, from, to);
  }

  #appendRuns(batch: RawBatch, from: number, to: number): void {
    const { runs } = batch;
    const c = this.#run;
    for (let i = firstRunAfter(runs.end, runs.count, from), at = from; at < to; i++) {
      const end = Math.min(to, runs.end[i]!);
      const rows = end - at;
      const type = runs.timestampType[i]!;
      if (type === 0) this.#timestamp.appendNulls(rows);
      else this.#timestamp.append(batch.timestamps, at, end);
      c.source_timestamp_type.append(TIMESTAMP_TYPES[type] ?? null, rows);
      c.source_leader_epoch.append(orNull(runs.leaderEpoch[i]!), rows);
      c.source_producer_id.append(runs.producerId[i]! === -1n ? null : runs.producerId[i]!, rows);
      c.source_producer_epoch.append(orNull(runs.producerEpoch[i]!), rows);
      c.source_base_sequence.append(orNull(runs.baseSequence[i]!), rows);
      c.source_transactional.append(runs.transactional[i] === 1, rows);
      at = end;
    }
  }

  #appendConstants(batch: RawBatch, rows: number, emitTs: number): void {
    const { stream } = batch;
    const c = this.#run;
    c.source_transport.append(stream.transport, rows);
    c.source_cluster.append(stream.cluster === "" ? null : stream.cluster, rows);
    c.source_topic.append(stream.topic, rows);
    c.source_partition.append(stream.partition, rows);
    c.ingest_ts.append(batch.ingestTs, rows);
    c.emit_ts.append(emitTs, rows);
    c.pipeline.append(this.#o.pipeline, rows);
    for (const column of this.#neverSet) column.append(null, rows);
  }

  #dictionaryFull(): boolean {
    for (const column of this.#runs) if (column.distinct >= DICTIONARY_LIMIT) return true;
    return false;
  }

  #closeGroup(): void {
    if (this.#groupRows === 0) return;
    const at = this.#out.position;
    const chunks = this.#columns.map((c) => c.finish(this.#out));
    this.#groups.push(rowGroupBytes(this.#leaves, chunks, this.#groupRows, at, this.#groups.length));
    this.#groupRows = 0;
    this.#groupBytes = 0;
  }
}

const SET_COLUMNS = [
  "source_transport",
  "source_cluster",
  "source_topic",
  "source_partition",
  "source_leader_epoch",
  "source_timestamp_type",
  "source_producer_id",
  "source_producer_epoch",
  "source_base_sequence",
  "source_transactional",
  "ingest_ts",
  "emit_ts",
  "pipeline",
] as const;
type SetColumn = (typeof SET_COLUMNS)[number];
const SET_BY_BATCH: ReadonlySet<string> = new Set(SET_COLUMNS);

const orNull = (n: number): number | null => (n === -1 ? null : n);

/** Index of the run that holds row `row`. */
function firstRunAfter(end: Int32Array, count: number, row: number): number {
  let low = 0;
  let high = count - 1;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (end[middle]! > row) high = middle;
    else low = middle + 1;
  }
  return low;
}

function rawBytes(batch: RawBatch, from: number, to: number): number {
  const { key, value, headers } = batch;
  let n = (to - from) * ROW_BYTES;
  n += value.offsets[to]! - value.offsets[from]!;
  n += key.offsets[to]! - key.offsets[from]!;
  if (headers.entries > 0) {
    const first = headers.offsets[from]!;
    const last = headers.offsets[to]!;
    n += (last - first) * HEADER_BYTES;
    n += headers.keys.offsets[last]! - headers.keys.offsets[first]!;
    n += headers.values.offsets[last]! - headers.values.offsets[first]!;
  }
  return n;
}

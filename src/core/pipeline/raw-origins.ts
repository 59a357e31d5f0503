/**
 * The metadata columns of rows that were made of records of a topic: for each row the record at an index of its batch.
 * `locator`: topic, partition, offset and the schema's id. `all`: the whole list but the value, which the columns are.
 */
import { METADATA_COLUMNS, type MetadataColumn, metadataName } from "../records/metadata-columns.ts";
import type { BytesColumn, RawBatch } from "../records/raw-batch.ts";
import { fillRecordIds, recordIdBase } from "../records/record-id.ts";
import {
  type BoolBuilder,
  type BytesBuilder,
  builderOf,
  type ColumnBuilder,
  type FixedBuilder,
  type ListBuilder,
  type StructBuilder,
} from "../types/column-builder.ts";
import type { ColumnField, TableColumn } from "../types/table-batch.ts";
import { METADATA_TYPES } from "./row-origins.ts";

/** `id`: the record's id, and no place of it. */
export type RawMetadata = "none" | "id" | "locator" | "locator_id" | "all" | "reject";

const LOCATOR: readonly string[] = ["source_topic", "source_partition", "source_offset", "schema_id"];
const VALUE = "source_value";
const ID = "record_id";
const TWO32 = 0x1_0000_0000;
const UTF8 = new TextEncoder();
const TIMESTAMP_TYPES = [null, UTF8.encode("CreateTime"), UTF8.encode("LogAppendTime")];

/** `reject`: all, with the value. */
export function rawOriginColumns(choice: RawMetadata): readonly MetadataColumn[] {
  if (choice === "none") return [];
  if (choice === "all" || choice === "reject")
    return METADATA_COLUMNS.filter((c) => choice === "reject" || c.name !== VALUE);
  const [place, id] = [choice !== "id", choice !== "locator"];
  return METADATA_COLUMNS.filter((c) => (c.name === ID ? id : place && LOCATOR.includes(c.name)));
}

/** The same with the record's id, which is the row key of one row a record. */
export function withRowKey(choice: "none" | "locator" | "all"): RawMetadata {
  return choice === "all" ? "all" : choice === "locator" ? "locator_id" : "id";
}

/** What holds all of these. */
export function widest(all: readonly RawMetadata[]): RawMetadata {
  if (all.includes("all")) return "all";
  const place = all.includes("locator") || all.includes("locator_id");
  const id = all.includes("id") || all.includes("locator_id");
  return place ? (id ? "locator_id" : "locator") : id ? "id" : "none";
}

export function rawOriginFields(choice: RawMetadata, prefix: string): readonly ColumnField[] {
  return rawOriginColumns(choice).map((c) => ({
    name: metadataName(prefix, c),
    type: METADATA_TYPES[c.type],
    nullable: true,
  }));
}

export interface OriginStamps {
  readonly pipeline: string;
  /** Wall time, ms. */
  readonly now: number;
  /** Of the rows in their order, run by run; null: none is named. */
  readonly schemas: readonly { readonly id: string | null; readonly rows: number }[];
}

/** `rows`: indexes of records of the batch, ascending or not. */
export function rawOrigins(
  choice: RawMetadata,
  batch: RawBatch,
  rows: Int32Array,
  stamps: OriginStamps,
): readonly TableColumn[] {
  return rawOriginColumns(choice).map((c) => {
    const b = builderOf(METADATA_TYPES[c.type]);
    b.reserve(rows.length);
    FILL[c.name]?.(b, batch, rows, stamps);
    while (b.rows < rows.length) b.pushNull();
    const value = CONSTANT[c.name]?.(batch, stamps) ?? null;
    return value === null || value === "" ? b.finish() : { ...b.finish(), constant: UTF8.encode(value) };
  });
}

type Fill = (b: ColumnBuilder, batch: RawBatch, rows: Int32Array, stamps: OriginStamps) => void;

type Text = (batch: RawBatch, stamps: OriginStamps) => string | null;

/** What all rows of a batch have. Null or empty: nothing, or not the same. */
const CONSTANT: Readonly<Record<string, Text>> = {
  source_transport: (batch) => batch.stream.transport,
  source_cluster: (batch) => batch.stream.cluster,
  source_topic: (batch) => batch.stream.topic,
  pipeline: (_, stamps) => stamps.pipeline,
  schema_id: (_, { schemas }) => (schemas.length === 1 ? schemas[0]!.id : null),
};

const text = (of: Text | undefined): Fill => {
  return (b, batch, rows, stamps) => {
    const value = of?.(batch, stamps) ?? "";
    if (value !== "") (b as BytesBuilder).pushTimes(UTF8.encode(value), rows.length);
  };
};

const int32 = (b: ColumnBuilder, value: number) => {
  (b as FixedBuilder).i32[b.rows++] = value;
};

/** Word pairs of int64. */
const pairs = (of: (batch: RawBatch) => Int32Array): Fill => {
  return (b, batch, rows) => {
    const from = of(batch);
    const { i32 } = b as FixedBuilder;
    for (let i = 0; i < rows.length; i++) {
      i32[2 * i] = from[2 * rows[i]!]!;
      i32[2 * i + 1] = from[2 * rows[i]! + 1]!;
    }
    b.rows = rows.length;
  };
};

const millis = (of: (batch: RawBatch, stamps: OriginStamps) => number): Fill => {
  return (b, batch, rows, stamps) => {
    const ms = of(batch, stamps);
    const { i32 } = b as FixedBuilder;
    for (let i = 0; i < rows.length; i++) {
      i32[2 * i] = ms % TWO32;
      i32[2 * i + 1] = Math.floor(ms / TWO32);
    }
    b.rows = rows.length;
  };
};

const bytes = (of: (batch: RawBatch) => BytesColumn): Fill => {
  return (b, batch, rows) => {
    const column = of(batch);
    for (const row of rows) putBytes(b as BytesBuilder, column, row);
  };
};

function putBytes(b: BytesBuilder, { offsets, data, validity, nullCount }: BytesColumn, row: number): void {
  const isNull = nullCount > 0 && ((validity[row >> 3]! >> (row & 7)) & 1) === 0;
  if (isNull) b.pushNull();
  else b.push(data.subarray(offsets[row]!, offsets[row + 1]!));
}

/** Of what is the same over a run of records; null: a null. */
const run = (put: (b: ColumnBuilder, batch: RawBatch, run: number) => void): Fill => {
  return (b, batch, rows) => {
    const { end } = batch.runs;
    let at = 0;
    for (const row of rows) {
      // Rows of several schemas come group by group: back to the beginning now and then.
      if (at > 0 && row < end[at - 1]!) at = 0;
      while (row >= end[at]!) at++;
      put(b, batch, at);
    }
  };
};

const known = (of: (batch: RawBatch, run: number) => number): Fill =>
  run((b, batch, r) => {
    const n = of(batch, r);
    if (n < 0) b.pushNull();
    else int32(b, n);
  });

const FILL: Readonly<Record<string, Fill>> = {
  source_transport: text(CONSTANT["source_transport"]),
  source_cluster: text(CONSTANT["source_cluster"]),
  source_topic: text(CONSTANT["source_topic"]),
  source_partition: (b, batch, rows) => {
    (b as FixedBuilder).i32.fill(batch.stream.partition, 0, rows.length);
    b.rows = rows.length;
  },
  source_offset: pairs((batch) => batch.offsets),
  source_leader_epoch: known((batch, r) => batch.runs.leaderEpoch[r]!),
  source_timestamp: (b, batch, rows, stamps) => {
    pairs((x) => x.timestamps)(b, batch, rows, stamps);
    const { end, timestampType, count } = batch.runs;
    if (!timestampType.subarray(0, count).includes(0)) return;
    let at = 0;
    for (const [i, row] of rows.entries()) {
      if (at > 0 && row < end[at - 1]!) at = 0;
      while (row >= end[at]!) at++;
      if (timestampType[at] === 0) b.validity.clear(i);
    }
  },
  source_timestamp_type: run((b, { runs }, r) => {
    const type = TIMESTAMP_TYPES[runs.timestampType[r]!] ?? null;
    if (type === null) b.pushNull();
    else (b as BytesBuilder).push(type);
  }),
  source_key: bytes((batch) => batch.key),
  source_value: bytes((batch) => batch.value),
  source_headers: (b, { headers }, rows) => {
    const list = b as ListBuilder;
    const entry = list.child as StructBuilder;
    for (const row of rows) {
      for (let h = headers.offsets[row]!; h < headers.offsets[row + 1]!; h++) {
        for (const c of entry.children) c.reserve(1);
        entry.reserve(1);
        putBytes(entry.children[0] as BytesBuilder, headers.keys, h);
        putBytes(entry.children[1] as BytesBuilder, headers.values, h);
        entry.pushRow();
      }
      list.pushRow();
    }
  },
  source_producer_id: run((b, { runs }, r) => {
    const id = runs.producerId[r]!;
    if (id < 0n) return b.pushNull();
    const f = b as FixedBuilder;
    f.i32[2 * f.rows] = Number(BigInt.asIntN(32, id));
    f.i32[2 * f.rows + 1] = Number(id >> 32n);
    f.rows++;
  }),
  source_producer_epoch: known(({ runs }, r) => runs.producerEpoch[r]!),
  source_base_sequence: known(({ runs }, r) => runs.baseSequence[r]!),
  source_transactional: run((b, { runs }, r) => (b as BoolBuilder).push(runs.transactional[r] === 1)),
  record_id: (b, batch, rows) => {
    const ids = new Int32Array(4 * batch.rows);
    fillRecordIds(recordIdBase(batch.stream), batch.stream.partition, batch.offsets, 0, batch.rows, ids, 0);
    const { i32 } = b as FixedBuilder;
    for (let i = 0; i < rows.length; i++) for (let w = 0; w < 4; w++) i32[4 * i + w] = ids[4 * rows[i]! + w]!;
    b.rows = rows.length;
  },
  ingest_ts: millis((batch) => batch.ingestTs),
  emit_ts: millis((_, stamps) => stamps.now),
  pipeline: text(CONSTANT["pipeline"]),
  schema_id: (b, _batch, _rows, { schemas }) => {
    for (const { id, rows } of schemas) {
      if (id !== null) (b as BytesBuilder).pushTimes(UTF8.encode(id), rows);
      else for (let i = 0; i < rows; i++) b.pushNull();
    }
  },
};

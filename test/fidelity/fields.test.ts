/**
 * Goal: every field of a record of Kafka is what it was in each representation, and after it was produced and consumed again;
 * where it is not, the corpus says so and why. Method: the corpus's bytes (golden/fidelity/records.py, which knows nothing of
 * our code) are consumed and turned into each representation, and each is read back into rows of plain cells, which must be
 * those of the corpus: files by hyparquet, raw ones by recovery too.
 */
import { describe, expect, test } from "bun:test";
import { ownedColumns } from "../../src/adapters/kafka/sink/columns.ts";
import { tableEncoding } from "../../src/commands/table-encoding.ts";
import { JoinedFile } from "../../src/core/formats/parquet/join.ts";
import { rawOriginFields, rawOrigins } from "../../src/core/pipeline/raw-origins.ts";
import { copyBatch } from "../../src/core/records/copy-batch.ts";
import { METADATA_COLUMNS } from "../../src/core/records/metadata-columns.ts";
import { pickRows } from "../../src/core/records/pick-rows.ts";
import type { RawBatch } from "../../src/core/records/raw-batch.ts";
import { builderOf } from "../../src/core/types/column-builder.ts";
import type { ColumnType, TableBatch } from "../../src/core/types/table-batch.ts";
import { instantLeaves } from "../../src/core/types/utc-instants.ts";
import { cellValue, pushValue } from "../../src/core/types/value-cells.ts";
import { replayedBatches } from "../commands/replayed.ts";
import { concat, EMIT_TS, fileOf, readBack } from "../core/formats/parquet/rows.ts";
import {
  BYTES,
  type Entry,
  FIELDS,
  HEADERS,
  RAW_BATCH,
  REPRESENTATIONS,
  type Representation,
  RUNS,
  STREAM,
} from "./fields.ts";
import { produced } from "./produced.ts";
import {
  CORPUS,
  CORPUS_ROWS,
  codecs,
  consumed,
  corpusBatches,
  NEXT,
  type Plain,
  PREFIX,
  plain,
  plainBatch,
  plainTable,
  whole,
} from "./records.ts";

const batches = corpusBatches();
const STAMPS = { emit_ts: String(EMIT_TS), pipeline: "p" };
const wanted = CORPUS_ROWS.map((r) => whole({ ...r, ...STAMPS }));

function tableOf(b: RawBatch): TableBatch {
  const rows = Int32Array.from({ length: b.rows }, (_, i) => i);
  const stamps = { pipeline: "p", now: EMIT_TS, schemas: [{ id: null, rows: b.rows }] };
  return {
    fields: rawOriginFields("reject", PREFIX),
    columns: rawOrigins("reject", b, rows, stamps),
    rows: b.rows,
  };
}

/** A lane's tables in one file, as a set of the sink is written. */
function tableFile(): Uint8Array<ArrayBuffer> {
  const encode = tableEncoding({ compression: "zstd", level: 1 }, codecs);
  const joined = new JoinedFile(instantLeaves(rawOriginFields("reject", PREFIX)));
  const parts = [JoinedFile.head, ...batches.map((b) => joined.add(encode(tableOf(b))))];
  return concat([...parts, joined.finish([], "twg")]);
}

async function readFile(file: Uint8Array<ArrayBuffer>): Promise<Plain[]> {
  const rows = await readBack(file);
  return rows.map((r) =>
    whole(Object.fromEntries(Object.entries(r).map(([k, v]) => [k.slice(PREFIX.length), plain(v)]))),
  );
}

/** The metadata of a record as a Value beside its payload: a record within the record, whose names are ours. */
function throughValues(t: TableBatch): TableBatch {
  const type: ColumnType = { id: "struct", fields: t.fields };
  const struct = {
    type,
    length: t.rows,
    nullCount: 0,
    validity: null,
    offsets: null,
    data: new Uint8Array(0),
    children: t.columns,
  };
  const builder = builderOf(type);
  for (let row = 0; row < t.rows; row++) pushValue(builder, cellValue(struct, row));
  return { ...t, columns: builder.finish().children };
}

const text = (hex: unknown) => (hex === undefined ? null : Buffer.from(String(hex), "hex").toString());
const NUMBERS: ReadonlySet<string> = new Set([
  "source_partition",
  "source_leader_epoch",
  "source_producer_epoch",
  "source_base_sequence",
]);

/** Behind a record's own headers stand ours: each name once. */
function fromTopic(row: Plain, i: number): Plain {
  const all = row["source_headers"] as readonly { readonly key: string; readonly value: string | null }[];
  const own = (CORPUS_ROWS[i]!["source_headers"] as readonly unknown[]).length;
  const added = all.slice(own).map(({ key, value }) => {
    const name = text(key)!.slice(PREFIX.length);
    const seen = text(value);
    return [
      name,
      name === "source_transactional" ? seen === "true" : NUMBERS.has(name) ? Number(seen) : seen,
    ];
  });
  expect(new Set(added.map(([name]) => name)).size).toBe(added.length);
  const said = Object.fromEntries(added) as Plain;
  return whole({
    ...said,
    // A record of Kafka has a time; that the first format had none, the header that is not there says.
    source_timestamp: "source_timestamp_type" in said ? row["source_timestamp"] : null,
    source_key: row["source_key"],
    source_value: row["source_value"],
    source_headers: all.slice(0, own),
  });
}

function throughTopic(): Plain[] {
  const log = batches.map((b) =>
    produced(ownedColumns(b, { choice: "all", prefix: PREFIX, pipeline: "p" }).columns),
  );
  const copy = { transport: "kafka" as const, cluster: "other", topic: "copy", incarnation: 0, partition: 0 };
  const rows = log.flatMap(({ bytes, next }) => consumed(bytes, copy, next).flatMap(plainBatch));
  return rows.map(fromTopic);
}

const WAYS: Readonly<Record<Representation, () => Plain[] | Promise<Plain[]>>> = {
  batch: () => {
    const all = (b: RawBatch) =>
      pickRows(
        b,
        Int32Array.from({ length: b.rows }, (_, i) => i),
      );
    const picked = batches.flatMap((b) => plainBatch(all(copyBatch(b))));
    expect(picked).toEqual(batches.flatMap(plainBatch));
    return picked;
  },
  "raw file": () => readFile(fileOf(batches)),
  replay: async () => {
    const again = await replayedBatches([fileOf(batches)], { stream: CORPUS, from: 0n, next: NEXT });
    return again.filter((b) => b.rows > 0).flatMap(plainBatch);
  },
  columns: () => batches.flatMap((b) => plainTable(tableOf(b))),
  "table file": () => readFile(tableFile()),
  value: () => batches.flatMap((b) => plainTable(throughValues(tableOf(b)))),
  topic: throughTopic,
};

describe("the corpus", () => {
  test("has an entry for every column of the list, and none beside", () => {
    expect(Object.keys(FIELDS)).toEqual(METADATA_COLUMNS.map((c) => c.name));
  });

  test("has an entry for every field of a batch, as it is made", () => {
    const [b] = batches;
    const parts = [
      [RAW_BATCH, b],
      [RUNS, b?.runs],
      [STREAM, b?.stream],
      [HEADERS, b?.headers],
      [BYTES, b?.key],
    ] as const;
    for (const [entries, made] of parts)
      expect(Object.keys(made!).sort()).toEqual(Object.keys(entries).sort());
    const named = parts.flatMap(([entries]) =>
      Object.values(entries as Record<string, Entry>).flatMap((e) => ("none" in e ? [] : e)),
    );
    const ofRecords = Object.keys(FIELDS).filter((name) => FIELDS[name]!.source === "record");
    expect([...new Set(named)].sort()).toEqual(ofRecords.sort());
  });

  test("gives every field of a record several values, and none where it may have none", () => {
    const ofStream = new Set<string>([
      ...STREAM.transport,
      ...STREAM.cluster,
      ...STREAM.topic,
      ...STREAM.partition,
    ]);
    ofStream.delete("record_id");
    for (const [name, { source }] of Object.entries(FIELDS)) {
      const seen = new Set(CORPUS_ROWS.map((r) => JSON.stringify(r[name] ?? null)));
      const { nullable, type } = METADATA_COLUMNS.find((c) => c.name === name)!;
      if (source !== "record") expect([name, seen]).toEqual([name, new Set(["null"])]);
      else if (ofStream.has(name) || name === "ingest_ts") expect([name, seen.size]).toEqual([name, 1]);
      else {
        const mayLack =
          nullable && type !== "headers" && !["source_offset", "source_transactional"].includes(name);
        expect([name, seen.has("null")]).toEqual([name, mayLack]);
        expect([name, seen.size > 1]).toEqual([name, true]);
      }
    }
  });

  test("names no loss but these", () => {
    const losses = Object.entries(FIELDS).flatMap(([name, { lost }]) =>
      Object.keys(lost ?? {}).map((representation) => `${name} in ${representation}`),
    );
    expect(losses).toEqual([
      "emit_ts in batch",
      "emit_ts in replay",
      "emit_ts in topic",
      "pipeline in batch",
      "pipeline in replay",
    ]);
  });
});

describe("every field of every record is kept in", () => {
  test.each(REPRESENTATIONS.map((r) => [r] as const))("%s", async (representation) => {
    const rows = await WAYS[representation]();
    expect(rows.length).toBe(wanted.length);
    for (const [name, { lost }] of Object.entries(FIELDS)) {
      const [seen, corpus] = [rows, wanted].map((list) => list.map((r) => [r["source_offset"], r[name]]));
      // A loss that is none any more has to go from the list.
      if (lost?.[representation] !== undefined) expect(seen).not.toEqual(corpus);
      else expect([name, seen]).toEqual([name, corpus]);
    }
  });
});

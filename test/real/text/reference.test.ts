/**
 * Goal: what lands in Parquet of JSON and XML is what Python's readers (json; ElementTree over expat) make of the same bytes, cell for
 * cell, by way of columns and by way of Values; and what is refused is what the rules of docs/formats.md refuse, written there once
 * more in Python. Method: Python makes records by chance, written in every way that the formats have for them, some damaged; we read
 * them and write Parquet; pyarrow reads that. A null and a field that is not there are counted by both.
 * TWG_TEXT_RECORDS: how many of each format (default 1,000).
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { isUtf8 } from "node:buffer";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DuckEngine } from "../../../src/adapters/duckdb/engine.ts";
import { ParquetEncoder } from "../../../src/adapters/duckdb/parquet-encode.ts";
import { compileJson } from "../../../src/core/codecs/json/compile.ts";
import type { Payloads, RecordDecoder } from "../../../src/core/codecs/record-codec.ts";
import { compileXml } from "../../../src/core/codecs/xml/compile.ts";
import { JoinedFile } from "../../../src/core/formats/parquet/join.ts";
import { builderOf } from "../../../src/core/types/column-builder.ts";
import type { ColumnField, ColumnType, TableBatch } from "../../../src/core/types/table-batch.ts";
import { instantLeaves } from "../../../src/core/types/utc-instants.ts";
import type { Value } from "../../../src/core/types/value.ts";
import { pushValue } from "../../../src/core/types/value-cells.ts";
import { payloadsOf, Reference } from "../reference-child.ts";

const python = process.env["TWG_PYTHON"];
const strict = process.env["TWG_STRICT"] === "1";
if (python === undefined)
  console.error(
    "SKIP: TWG_PYTHON names no Python with pyarrow; JSON and XML are not compared with its reading",
  );

const RECORDS = Number(process.env["TWG_TEXT_RECORDS"] ?? 1000);
/** Compared at a time: what is held in memory and on disk. */
const CHUNK = 20_000;
const DAMAGED = 0.1;

interface Compared {
  readonly payloads: number;
  readonly rows: number;
  readonly both_refused: number;
  readonly only_ours: number;
  readonly only_theirs: number;
  readonly cells: number;
  readonly different: number;
  readonly null: number;
  readonly missing: number;
  readonly samples: readonly (readonly unknown[])[];
}

/** A Value has the text of a json column, which is not to be quoted once more. */
function textual(type: ColumnType): ColumnType {
  const within = (f: ColumnField): ColumnField => ({ ...f, type: textual(f.type) });
  if (type.id === "json") return { id: "utf8" };
  if (type.id === "list") return { ...type, item: within(type.item) };
  if (type.id === "map") return { ...type, value: within(type.value) };
  return type.id === "struct" ? { ...type, fields: type.fields.map(within) } : type;
}

/** Fields of records, however deep, that are there and null, and that are not there. */
function presence(
  fields: readonly ColumnField[],
  value: Value,
  out: { null: number; missing: number },
): void {
  if (value.kind !== "record") throw new Error(value.kind);
  const given = new Map(value.fields.map((f) => [f.name, f.value]));
  for (const f of fields) {
    const v = given.get(f.name);
    if (v === undefined) out.missing++;
    else if (v.kind === "null") out.null++;
    else inner(f.type, v, out);
  }
}

function inner(type: ColumnType, value: Value, out: { null: number; missing: number }): void {
  if (value.kind === "null") return;
  if (type.id === "struct") presence(type.fields, value, out);
  else if (type.id === "list" && value.kind === "list")
    for (const item of value.items) inner(type.item.type, item, out);
  else if (type.id === "map" && value.kind === "map")
    for (const [, v] of value.entries) inner(type.value.type, v, out);
}

function byColumns(decoder: RecordDecoder, payloads: Payloads) {
  const columns = decoder.fields.map((f) => builderOf(f.type));
  const faults: Record<number, string> = {};
  const rows = decoder.decode(payloads, columns, (f) => {
    faults[f.row] = f.code;
  });
  const batch: TableBatch = { fields: decoder.fields, columns: columns.map((c) => c.finish()), rows };
  return { batch, faults };
}

function byValues(decoder: RecordDecoder, { bytes, starts, ends, count }: Payloads) {
  const fields = decoder.fields.map((f) => ({ ...f, type: textual(f.type) }));
  const columns = fields.map((f) => builderOf(f.type));
  const faults: Record<number, string> = {};
  const counted = { null: 0, missing: 0 };
  let rows = 0;
  for (let i = 0; i < count; i++) {
    let value: Value;
    try {
      value = decoder.value(bytes, starts[i]!, ends[i]!);
    } catch (e) {
      faults[i] = (e as { readonly code: string }).code;
      continue;
    }
    presence(decoder.fields, value, counted);
    const given = new Map(value.kind === "record" ? value.fields.map((f) => [f.name, f.value]) : []);
    for (const [c, f] of fields.entries()) pushValue(columns[c]!, given.get(f.name) ?? { kind: "null" });
    rows++;
  }
  const batch: TableBatch = { fields, columns: columns.map((c) => c.finish()), rows };
  return { batch, faults, counted };
}

const schemaFile = (format: string) => join(import.meta.dir, `orders-${format}.json`);

function decoderOf(format: string): RecordDecoder {
  const schema = { text: readFileSync(schemaFile(format), "utf8"), references: [] };
  const options = { unknown: "reject", reserved: "_twg_", maxBytes: 1 << 24, maxDepth: 100, isUtf8 } as const;
  return format === "json" ? compileJson(schema, options) : compileXml(schema, options);
}

test.skipIf(python === undefined && !strict)("there is a Python to compare with", () =>
  expect(python).toBeDefined(),
);

describe.skipIf(python === undefined)("as Python reads it", () => {
  const folder = mkdtempSync(join(tmpdir(), "twg-text-"));
  let reference: Reference;
  let engine: DuckEngine;
  let encoder: ParquetEncoder;
  beforeAll(() => {
    reference = new Reference(python!, join(import.meta.dir, "reference.py"));
    engine = new DuckEngine({ threads: 1, memoryBytes: 1 << 30, spill: null, allowed: [] });
    encoder = new ParquetEncoder(engine, { compression: "none", level: 0 });
  });
  afterAll(async () => {
    await reference.close();
    encoder.close();
    engine.close();
    rmSync(folder, { recursive: true });
  });

  function toParquet(name: string, batch: TableBatch): string {
    const path = join(folder, name);
    const file = openSync(path, "w");
    const joined = new JoinedFile(instantLeaves(batch.fields));
    writeSync(file, JoinedFile.head);
    writeSync(file, joined.add(encoder.encode(batch)));
    writeSync(file, joined.finish([], "test"));
    closeSync(file);
    return path;
  }

  async function run(format: string, seed: number, count: number) {
    const [payloads, faults] = ["payloads", "faults"].map((n) => join(folder, n)) as [string, string];
    await reference.ask("make", format, schemaFile(format), seed, count, DAMAGED, payloads);
    const decoder = decoderOf(format);
    const columns = byColumns(decoder, payloadsOf(payloads));
    const values = byValues(decoder, payloadsOf(payloads));
    expect(values.faults).toEqual(columns.faults);
    writeFileSync(faults, JSON.stringify(columns.faults));
    const files = [toParquet("columns.parquet", columns.batch), toParquet("values.parquet", values.batch)];
    const found = await reference.ask<Compared>(
      "compare",
      format,
      schemaFile(format),
      payloads,
      ...files,
      faults,
    );
    return { ...found, counted: values.counted };
  }

  test.each(["json", "xml"])(
    `${RECORDS} records of %s`,
    async (format) => {
      const total = {
        ...{ payloads: 0, rows: 0, both_refused: 0, cells: 0, null: 0, missing: 0 },
        ...{ only_ours: 0, only_theirs: 0, different: 0 },
      };
      // A long run tells of all, and not of the first alone.
      const samples: unknown[] = [];
      for (let from = 0; from < RECORDS; from += CHUNK) {
        const count = Math.min(CHUNK, RECORDS - from);
        const found = await run(format, from, count);
        expect(found.payloads).toBe(count);
        samples.push(...found.samples);
        // XML has no null but xsi:nil, which is not told apart here.
        if (format === "json") expect(found.counted).toEqual({ null: found.null, missing: found.missing });
        for (const key of Object.keys(total) as (keyof typeof total)[]) total[key] += found[key];
        if (RECORDS > CHUNK) console.log(JSON.stringify({ ...total, differing: samples.length }));
      }
      console.log(JSON.stringify({ format, ...total }));
      expect(samples).toEqual([]);
      expect(total).toMatchObject({ only_ours: 0, only_theirs: 0, different: 0 });
      // Both kinds are there in numbers, or the test shows nothing.
      expect(total.rows).toBeGreaterThan(RECORDS * 0.8);
      expect(total.both_refused).toBeGreaterThan(RECORDS / 30);
    },
    Math.max(60_000, RECORDS * 20),
  );
});

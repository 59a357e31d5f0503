/**
 * Goal: files of a table that grew (new columns, structs that grew inside, wider whole numbers) are one table for readers
 * that are not ours, whatever file they meet first. Method: files as the sink writes them, each by the schema that it met
 * then, read by PyPI's DuckDB and pyarrow in a Python that TWG_PYTHON names.
 */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { libduckdbPath } from "../../src/adapters/duckdb/embedded.ts";
import { loadNative } from "../../src/adapters/duckdb/native.ts";
import { LocalObjectStore } from "../../src/adapters/object-store/local.ts";
import { ParquetTableWriter } from "../../src/adapters/parquet/table-writer.ts";
import { tableEncoding } from "../../src/commands/table-encoding.ts";
import { evolve } from "../../src/core/schema/evolution.ts";
import { FOLDER_TABLE } from "../../src/core/schema/folder-table.ts";
import { builderOf } from "../../src/core/types/column-builder.ts";
import type { ColumnField } from "../../src/core/types/table-batch.ts";
import { parseType } from "../../src/core/types/type-text.ts";
import type { Value } from "../../src/core/types/value.ts";
import { pushValue } from "../../src/core/types/value-cells.ts";

const python = process.env["TWG_PYTHON"];
const strict = process.env["TWG_STRICT"] === "1";
if (python === undefined)
  console.error(
    "SKIP: TWG_PYTHON names no Python with pyarrow and duckdb; tables that grew are not read by them",
  );
const folder = mkdtempSync(join(tmpdir(), "twg-growth-"));
const encode = tableEncoding({ compression: "zstd", level: 1 }, loadNative(libduckdbPath()));
afterAll(() => rmSync(folder, { recursive: true }));

const int = (value: bigint): Value =>
  value < 2n ** 31n ? { kind: "int", value: Number(value) } : { kind: "long", value };
const text = (value: string): Value => ({ kind: "string", value });
const record = (fields: Readonly<Record<string, Value>>): Value => ({
  kind: "record",
  fields: Object.entries(fields).map(([name, value]) => ({ name, value })),
});

interface Step {
  readonly columns: readonly string[];
  readonly row: readonly Value[];
}

const BIG = 2n ** 40n;
/** Each file has the columns of its step. */
const STEPS: readonly Step[] = [
  { columns: ["n int32", "s struct<x int32>"], row: [int(1n), record({ x: int(1n) })] },
  {
    columns: ["n int32", "s struct<x int64, y string>", "l list<struct<x int16>>"],
    row: [int(2n), record({ x: int(BIG), y: text("q") }), { kind: "list", items: [record({ x: int(7n) })] }],
  },
  {
    columns: ["n int64", "s struct<x int64, y string>", "l list<struct<x int32, z string>>", "more string"],
    row: [
      int(BIG),
      record({ x: int(2n), y: text("r") }),
      { kind: "list", items: [record({ x: int(70_000n), z: text("w") })] },
      text("m"),
    ],
  },
];

const typed = (columns: readonly string[]): ColumnField[] =>
  columns.map((c) => {
    const [, name = "", type = ""] = /^(\S+) (.*)$/.exec(c) ?? [];
    return { name, type: parseType(type) as ColumnField["type"], nullable: true };
  });

async function write(id: string, { columns, row }: Step): Promise<void> {
  const fields = typed(columns);
  const store = new LocalObjectStore({ root: folder, staging: join(folder, "_twg"), instance: "i" });
  await store.prepare();
  const writer = new ParquetTableWriter(
    { folder: "", pipeline: "p", sink: "s", version: "test" },
    { store, encode },
  );
  writer.open(id);
  const built = fields.map((f, i) => {
    const b = builderOf(f.type);
    b.reserve(1);
    pushValue(b, row[i]!);
    return b.finish();
  });
  writer.write({ fields, columns: built, rows: 1 });
  const { targets } = await writer.seal([]);
  for (const t of targets) await store.publish(t);
}

test.skipIf(python === undefined && !strict)("there is a Python to read with", () =>
  expect(python).toBeDefined(),
);

test.skipIf(python === undefined)(
  "DuckDB and Arrow read old and new files as one table",
  async () => {
    // The table takes every step: a reader is promised no more than that.
    let fields: readonly ColumnField[] = [];
    for (const { columns } of STEPS) {
      const next = evolve(fields, typed(columns), FOLDER_TABLE);
      if (next.kind === "refused") throw new Error(next.differences.join());
      ({ fields } = next);
    }
    for (const [i, step] of STEPS.entries()) await write(`f${i}`, step);
    const run = Bun.spawnSync([python!, join(import.meta.dir, "growth.py"), folder]);
    expect(run.stderr.toString()).toBe("");
    const rows = [
      { n: 1, s: { x: 1, y: null }, l: null, more: null },
      { n: 2, s: { x: Number(BIG), y: "q" }, l: [{ x: 7, z: null }], more: null },
      { n: Number(BIG), s: { x: 2, y: "r" }, l: [{ x: 70_000, z: "w" }], more: "m" },
    ];
    const [duck, arrow] = run.stdout
      .toString()
      .trim()
      .split("\n")
      .map((l) => JSON.parse(l) as unknown);
    expect(duck).toEqual(rows);
    expect(arrow).toEqual(rows);
  },
  60_000,
);

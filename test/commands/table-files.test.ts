/**
 * Goal: the columns of a table whose schema is stored nowhere are those of its newest files, whatever their types.
 * Method: files as the sink writes them, over every type that a decoder makes, read by their footers; the same list
 * from a bucket's listing.
 */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { libduckdbPath } from "../../src/adapters/duckdb/embedded.ts";
import { DuckEngine } from "../../src/adapters/duckdb/engine.ts";
import { loadNative } from "../../src/adapters/duckdb/native.ts";
import { ParquetEncoder } from "../../src/adapters/duckdb/parquet-encode.ts";
import type { S3Objects } from "../../src/adapters/object-store/s3-objects.ts";
import { tableEncoding } from "../../src/commands/table-encoding.ts";
import { columnsOfFiles, newestFiles, newestObjects } from "../../src/commands/table-files.ts";
import { Failure } from "../../src/core/failure/failure.ts";
import { JoinedFile } from "../../src/core/formats/parquet/join.ts";
import { asStored } from "../../src/core/schema/folder-table.ts";
import { builderOf } from "../../src/core/types/column-builder.ts";
import type { ColumnField, TableBatch } from "../../src/core/types/table-batch.ts";
import { parseType, typeText } from "../../src/core/types/type-text.ts";
import { instantLeaves } from "../../src/core/types/utc-instants.ts";

const folder = mkdtempSync(join(tmpdir(), "twg-table-files-"));
const engine = new DuckEngine({ threads: 1, memoryBytes: 64 << 20, spill: null, allowed: [] });
const encoder = new ParquetEncoder(engine, { compression: "zstd", level: 1 });
const own = tableEncoding({ compression: "zstd", level: 1 }, loadNative(libduckdbPath()));
afterAll(() => {
  encoder.close();
  engine.close();
  rmSync(folder, { recursive: true });
});

const TYPES = [
  ...["boolean", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float", "double"],
  ...["decimal(9,2)", "decimal(18,0)", "decimal(38,10)", "string", "binary", "date", "time", "uuid", "json"],
  ...["timestamp[s]", "timestamp[ms]", "timestamp", "timestamp[ns]"],
  ...["timestamptz[s]", "timestamptz[ms]", "timestamptz", "timestamptz[ns]"],
  ...["list<int32>", "map<string,int64>", "struct<a int32, b list<struct<c string>>>"],
];
const FIELDS: ColumnField[] = [
  ...TYPES.map((t, i) => ({ name: `c${i}`, type: parseType(t) as ColumnField["type"], nullable: true })),
  { name: "raw", type: { id: "fixed", bytes: 4 }, nullable: true },
];

/** As the sink writes it: a row group is a small file, joined under one footer. */
function written(
  name: string,
  fields: readonly ColumnField[],
  at: number,
  encode: (batch: TableBatch) => Uint8Array = own,
): string {
  const columns = fields.map((f) => {
    const b = builderOf(f.type);
    b.reserve(1);
    b.pushNull();
    return b.finish();
  });
  const path = join(folder, name);
  const file = new JoinedFile(instantLeaves(fields));
  const group = file.add(encode({ fields, columns, rows: 1 }));
  writeFileSync(path, Buffer.concat([JoinedFile.head, group, file.finish([], "twg test")]));
  utimesSync(path, at, at);
  return path;
}

const topic: ColumnField = { name: "_TWG_source_topic", type: { id: "utf8" }, nullable: true };

test("every type comes back so that rows of it still fit; metadata and older files are left out", async () => {
  written("a.parquet", FIELDS.slice(0, 1), 1_000);
  written("c.parquet", FIELDS.slice(0, 2), 2_000);
  const last = written("b.parquet", [...FIELDS, topic], 3_000, (b) => encoder.encode(b));
  writeFileSync(join(folder, "notes.txt"), "no table");
  const files = await newestFiles(folder, 2);
  expect(files.map((f) => f.name.slice(-9))).toEqual(["c.parquet", "b.parquet"]);
  const [, newest] = await columnsOfFiles(files, "_twg_");
  expect(newest!.name).toBe(last);
  const shown = (list: readonly ColumnField[]) => list.map((f) => `${f.name} ${typeText(f.type)}`);
  const stored = shown(FIELDS.map((f) => ({ ...f, type: asStored(f.type) })));
  expect(shown(newest!.fields)).toEqual(stored);
  // By the encoder that a lane has for the type.
  for (const [i, f] of FIELDS.entries()) {
    const name = written("one.parquet", [f], 4_000);
    const open = (await newestFiles(folder, 1)).filter((x) => x.name === name);
    expect(shown((await columnsOfFiles(open, "_twg_"))[0]!.fields)).toEqual([stored[i]!]);
  }
  rmSync(join(folder, "one.parquet"));
});

test("a folder that is not there has none; one with a file that is no Parquet says which", async () => {
  expect(await newestFiles(join(folder, "none"), 2)).toEqual([]);
  const bad = join(folder, "z.parquet");
  writeFileSync(bad, "PAR1 and not more");
  const failure = await columnsOfFiles(await newestFiles(folder, 16), "_twg_").catch((e) => e as Failure);
  rmSync(bad);
  expect(failure).toBeInstanceOf(Failure);
  expect([(failure as Failure).code, (failure as Failure).at]).toEqual(["files.not_parquet", bad]);
});

test("in a bucket too: by age, and only what lies at its root", async () => {
  const bytes = await Bun.file(join(folder, "c.parquet")).bytes();
  const object = (key: string, ageMs: number) => ({ key, ageMs, bytes: bytes.length });
  const objects = {
    place: "s3://b/t",
    list: async () => [
      object("x.parquet", 5),
      object("_twg/p/s/y.parquet", 1),
      object("w.parquet", 9),
      object("v.parquet", 99),
      object("_rejects/x.ndjson", 1),
    ],
    getRange: async (_key: string, from: number, to: number) => bytes.slice(from, to),
  } as unknown as S3Objects;
  const files = await newestObjects(objects, 2);
  expect(files.map((f) => f.name)).toEqual(["s3://b/t/w.parquet", "s3://b/t/x.parquet"]);
  expect((await columnsOfFiles(files, "_twg_")).map((f) => f.fields.length)).toEqual([2, 2]);
});

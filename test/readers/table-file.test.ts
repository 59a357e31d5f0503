/**
 * Goal: what the encoder of tables writes is read as DuckDB's own files of the same columns are, by DuckDB and by pyarrow,
 * cell for cell; row groups of both can stand in one file. Method: random types, nestings, nulls and values; DuckDB's
 * encoder, which has its own tests, as the reference.
 */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { libduckdbPath } from "../../src/adapters/duckdb/embedded.ts";
import { DuckEngine } from "../../src/adapters/duckdb/engine.ts";
import { loadNative } from "../../src/adapters/duckdb/native.ts";
import { ParquetEncoder } from "../../src/adapters/duckdb/parquet-encode.ts";
import { zstdBound } from "../../src/core/compression/codec.ts";
import { JoinedFile } from "../../src/core/formats/parquet/join.ts";
import { type PageCodec, PageContext } from "../../src/core/formats/parquet/page.ts";
import { SlabPool } from "../../src/core/formats/parquet/slabs.ts";
import { TableEncoder } from "../../src/core/formats/parquet/table-file.ts";
import type { ColumnField, TableBatch, TableColumn } from "../../src/core/types/table-batch.ts";
import { instantLeaves, withoutInstants } from "../../src/core/types/utc-instants.ts";
import { cellOf } from "../core/codecs/table.ts";
import { everyType, randomTable, typeOf } from "../core/formats/parquet/random-table.ts";

const folder = mkdtempSync(join(tmpdir(), "twg-table-file-"));
const engine = new DuckEngine({ threads: 1, memoryBytes: 512 << 20, spill: null, allowed: [folder] });
const duck = new ParquetEncoder(engine, { compression: "zstd", level: 1 });
const codecs = loadNative(libduckdbPath());
const zstd: PageCodec = {
  name: "zstd",
  bound: zstdBound,
  compress: (input, output) => codecs.zstdCompress(input, output, 1),
};
const own = new TableEncoder(new PageContext(zstd, new SlabPool()));
const plain = new TableEncoder(new PageContext(null, new SlabPool()));
afterAll(() => {
  duck.close();
  engine.close();
  rmSync(folder, { recursive: true, force: true });
});

const python = process.env["TWG_PYTHON"];
if (python === undefined)
  console.error("SKIP: TWG_PYTHON names no Python with pyarrow and duckdb; tables are not read by them");
test.skipIf(python === undefined && process.env["TWG_STRICT"] !== "1")("there is a Python to read with", () =>
  expect(python).toBeDefined(),
);

function file(name: string, fields: readonly ColumnField[], ...pieces: Uint8Array[]): string {
  const joined = new JoinedFile(instantLeaves(fields));
  const parts = [JoinedFile.head, ...pieces.map((p) => joined.add(p))];
  const path = join(folder, `${name}.parquet`);
  writeFileSync(path, Buffer.concat([...parts, joined.finish([["twg.test", name]], "twg test")]));
  return path;
}

function rowsOf(path: string): unknown[][] {
  const rows: unknown[][] = [];
  for (const b of engine.batches(`SELECT * FROM read_parquet('${path}')`))
    for (let r = 0; r < b.rows; r++) rows.push(b.columns.map((c) => cellOf(c, r)));
  return rows;
}

function encoded(encoder: TableEncoder, batch: TableBatch): Uint8Array {
  const bytes = encoder.encode(batch);
  if (bytes === null) throw new Error("left to DuckDB");
  return bytes;
}

/**
 * By DuckDB in the encodings of version 1: the deltas of version 2 are not read by pyarrow where two int32 differ by more
 * than 2^31.
 */
function reference(batch: TableBatch): Uint8Array {
  const path = join(folder, "piece.parquet");
  engine.lend(withoutInstants(batch), (view) =>
    engine.run(`COPY ${view} TO '${path}' (format parquet, codec 'uncompressed', parquet_version v1)`),
  );
  return new Uint8Array(readFileSync(path));
}

/** [ours, DuckDB's] of the same rows. */
const pairs: [string, string][] = [];

function compare(name: string, batch: TableBatch): void {
  const ours = encoded(own, batch);
  const path = file(`${name}-own`, batch.fields, ours);
  const theirs = file(`${name}-duckdb`, batch.fields, reference(batch));
  pairs.push([path, theirs]);
  const want = rowsOf(theirs);
  const seen = rowsOf(path);
  expect([name, seen.length]).toEqual([name, batch.rows]);
  const differs = seen.findIndex((row, i) => !Bun.deepEquals(row, want[i], true));
  if (differs >= 0) expect([name, differs, seen[differs]]).toEqual([name, differs, want[differs]]);
}

test("every type, alone", () => {
  for (const [i, rows] of [1, 8, 9, 700].entries())
    compare(`every-${rows}`, randomTable(i, rows, everyType()));
});

test("random tables", () => {
  for (let seed = 100; seed < 130; seed++)
    compare(`random-${seed}`, randomTable(seed, [1, 3, 65, 300, 900][seed % 5]!));
});

test("many rows: columns have several pages, lists are not split between them", () => {
  const names = [
    "int64",
    "string",
    "list<struct<a int32, b list<string>>>",
    "boolean",
    "struct<d double, t timestamptz[ms]>",
  ];
  const fields = names.map((t, i) => ({ name: `c${i}`, type: typeOf(t), nullable: true }));
  const batch = randomTable(3, 36_000, fields);
  compare("many", batch);
  pairs.push([file("many-by-duckdb", fields, duck.encode(batch)), pairs.at(-1)![1]]);
}, 60_000);

test("long values: pages end by their bytes", () => {
  const value = (i: number) => new Uint8Array(1 + ((i * 7919) % 60_000)).fill(97 + (i % 26));
  const parts = Array.from({ length: 300 }, (_, i) => value(i));
  const offsets = Int32Array.from([0, ...parts]).fill(0);
  for (const [i, p] of parts.entries()) offsets[i + 1] = offsets[i]! + p.length;
  const type = { id: "utf8" } as const;
  const data = new Uint8Array(Buffer.concat(parts));
  const column = { type, length: 300, nullCount: 0, validity: null, offsets, data, children: [] };
  compare("long", { fields: [{ name: "s", type, nullable: true }], columns: [column], rows: 300 });
});

test("a column that is said to be constant", () => {
  const batch = randomTable(5, 500, [{ name: "s", type: typeOf("string"), nullable: true }]);
  const value = new TextEncoder().encode("the same");
  const data = new Uint8Array(Buffer.concat(Array.from({ length: 500 }, () => value)));
  const offsets = Int32Array.from({ length: 501 }, (_, i) => 8 * i);
  const column = { ...batch.columns[0]!, nullCount: 0, validity: null, offsets, data, constant: value };
  compare("constant", { ...batch, columns: [column] });
});

/** Rows [1, 3) of a column in Arrow's looser forms: nulls of structs over values, lists that begin later. */
test("values below a null row are not there", () => {
  const inner: TableColumn = {
    type: { id: "int", bits: 32, signed: true },
    ...{ length: 5, nullCount: 0, validity: null, offsets: null, children: [] },
    data: new Uint8Array(Int32Array.of(1, 2, 3, 4, 5).buffer),
  };
  const type = typeOf("list<int32>");
  const list: TableColumn = {
    type,
    ...{ length: 3, nullCount: 1, validity: Uint8Array.of(0b101), data: new Uint8Array(0) },
    offsets: Int32Array.of(1, 2, 4, 5),
    children: [inner],
  };
  const batch = { fields: [{ name: "l", type, nullable: true }], columns: [list], rows: 3 };
  expect(rowsOf(file("under-null", batch.fields, encoded(own, batch))).flat()).toEqual([[2], null, [5]]);
});

test("row groups of both encoders, compressed or not, are one file", () => {
  const [a, b, c] = [7, 8, 9].map((seed) => randomTable(seed, 300, everyType()));
  const path = file("joined", a!.fields, encoded(own, a!), duck.encode(b!), encoded(plain, c!));
  const want = file("joined-duckdb", a!.fields, ...[a!, b!, c!].map(reference));
  expect(rowsOf(path)).toEqual(rowsOf(want));
  pairs.push([path, want]);
});

test("what it does not know, and what does not fit, is left to others", () => {
  const of = (type: ColumnField["type"], column: TableColumn) =>
    own.encode({ fields: [{ name: "c", type, nullable: true }], columns: [column], rows: 1 });
  const one = { length: 1, nullCount: 0, validity: null, offsets: null, children: [] };
  const interval = { id: "interval" } as const;
  expect(of(interval, { ...one, type: interval, data: new Uint8Array(16) })).toBeNull();
  // 2^62 s have no place in int64 as microseconds.
  const instant = typeOf("timestamptz[s]");
  const far = new Uint8Array(BigInt64Array.of(1n << 62n).buffer);
  expect(of(instant, { ...one, type: instant, data: far })).toBeNull();
  expect(of(instant, { ...one, type: instant, data: new Uint8Array(8) })).not.toBeNull();
});

test("bounds of a row group leave out no row, and say so to those who skip by them", () => {
  const fields = everyType();
  const batch = randomTable(21, 900, fields);
  const path = file("bounds", fields, encoded(own, batch));
  for (const [i, f] of fields.entries()) {
    const row = rowsOf(path).find((r) => r[i] !== null);
    if (row === undefined) continue;
    const rows = (sql: string) =>
      [...engine.batches(sql)].reduce((n, b) => n + Number(cellOf(b.columns[0]!, 0)), 0);
    // Each value finds at least itself, and nobody is found twice: pages are skipped by bounds only.
    const where = `"${f.name}" >= (SELECT min("${f.name}") FROM read_parquet('${path}'))`;
    const there = rows(`SELECT count("${f.name}") FROM read_parquet('${path}')`);
    expect([f.name, rows(`SELECT count(*) FROM read_parquet('${path}') WHERE ${where}`)]).toEqual([
      f.name,
      there,
    ]);
  }
});

const COMPARE = `
import sys, math
import pyarrow.parquet as pq
import duckdb
def same(a, b):
    if a.schema != b.schema: return f"{a.schema} {b.schema}"
    for n in a.column_names:
        x, y = a.column(n).combine_chunks(), b.column(n).combine_chunks()
        # NaN is not equal to itself, in their text it is.
        if not x.equals(y) and str(x.to_pylist()) != str(y.to_pylist()): return n
    return None
bad = 0
lines = sys.stdin.read().split()
for ours, theirs in zip(lines[::2], lines[1::2]):
    file = pq.ParquetFile(ours)
    why = same(file.read(), pq.read_table(theirs))
    if why is None:
        n = duckdb.sql(f"select count(*) from (from '{ours}' except all from '{theirs}')").fetchall()[0][0]
        if n or len(file.read()) != duckdb.sql(f"select count(*) from '{theirs}'").fetchall()[0][0]: why = f"duckdb: {n} rows"
    if why is not None:
        bad += 1
        print(ours, why)
print(f"{len(lines) // 2} files, {bad} bad")
`;

test.skipIf(python === undefined)(
  "pyarrow and PyPI's DuckDB see the same in both",
  () => {
    const run = Bun.spawnSync([python!, "-c", COMPARE], { stdin: Buffer.from(pairs.flat().join("\n")) });
    expect(run.stdout.toString() + run.stderr.toString()).toBe(`${pairs.length} files, 0 bad\n`);
  },
  60_000,
);

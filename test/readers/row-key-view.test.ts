/**
 * Goal: the views of the guide that show each row once do, of files and of a table that have rows twice. Method: files as the sink
 * writes them, one of them copied; the guide's own statements, run by DuckDB.
 */
import { afterAll, expect, test } from "bun:test";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DuckEngine, sqlText } from "../../src/adapters/duckdb/engine.ts";
import { batchOf, bytes, fileOf, row } from "../core/formats/parquet/rows.ts";

const folder = mkdtempSync(join(tmpdir(), "twg-views-"));
afterAll(() => rmSync(folder, { recursive: true }));

const guide = readFileSync(join(import.meta.dir, "../../docs/guide.md"), "utf8");
const section = guide.slice(guide.indexOf("### Rows once, by their key"));
const [overFiles, overTable] = [...section.matchAll(/```sql\n(.*?)```/gs)].map((m) => m[1]!);

const rows = (from: number) => [0, 1, 2].map((i) => row(from + i, { value: bytes(`v${from + i}`) }));

test("each row once, over files and over a table", () => {
  for (const from of [0, 3]) writeFileSync(join(folder, `${from}.parquet`), fileOf([batchOf(rows(from))]));
  copyFileSync(join(folder, "3.parquet"), join(folder, "copy.parquet"));
  const engine = new DuckEngine({ threads: 1, memoryBytes: 1 << 28, spill: null, allowed: [`${folder}/`] });
  const offsets = (from: string) =>
    [...engine.batches(`SELECT _twg_source_offset AS o FROM ${from} ORDER BY o`)].flatMap((b) => {
      const { data, length } = b.columns[0]!;
      return [...new BigInt64Array(data.slice(0, 8 * length).buffer)].map(Number);
    });
  const files = `read_parquet(${sqlText(`${folder}/*.parquet`)})`;
  expect(offsets(files)).toEqual([0, 1, 2, 3, 3, 4, 4, 5, 5]);
  engine.run(overFiles!.replace("/data/orders/", `${folder}/`));
  expect(offsets("orders_once")).toEqual([0, 1, 2, 3, 4, 5]);
  engine.run("DROP VIEW orders_once");
  engine.run(`CREATE TABLE orders AS SELECT * FROM ${files}`);
  engine.run(overTable!);
  expect(offsets("orders_once")).toEqual([0, 1, 2, 3, 4, 5]);
});

/**
 * Goal: refused records are grouped and counted, values stay masked, and what cannot be read is told. Method: rejects are made
 * as a lane makes them and encoded by the engine that a sink has; the folder is read by the command. Counts by hand.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DuckEngine } from "../../src/adapters/duckdb/engine.ts";
import { ParquetEncoder } from "../../src/adapters/duckdb/parquet-encode.ts";
import { runCli } from "../../src/commands/program.ts";
import { type RefusedRecord, rejectsOf } from "../../src/core/pipeline/derived.ts";
import { batchOf, bytes, row } from "../core/formats/parquet/rows.ts";
import { fakeCli, fileWith, ORDERS } from "./fake-cli.ts";

const root = mkdtempSync(join(tmpdir(), "twg-rejects-"));
const engine = new DuckEngine({ threads: 1, memoryBytes: 128 << 20, spill: null, allowed: [] });
const T0 = 1_700_000_000_000n;
const SECRET = "card 4711";

const config = (path: string, more = "") =>
  fileWith(`${ORDERS}
role = "primary_raw"
[decode]
format = "json"
schema_file = "orders.json"
[[sink]]
name = "refused"
type = "parquet"
receives = "rejected"
path = ${JSON.stringify(path)}
${more}`);

function refused(n: number, code: string, path: string, schemaId: string | null = null): RefusedRecord {
  const message = code === "decode.schema" ? "no such schema" : `${JSON.stringify(SECRET)} is no int32`;
  return { row: n, code, path, message, schemaId };
}

function write(folder: string, name: string, first: number, records: readonly RefusedRecord[]): void {
  const rows = records.map((_, i) =>
    row(first + i, {
      timestamp: T0 + 1000n * BigInt(first + i),
      key: i === 0 ? null : bytes(`k${i}`),
      value: i % 2 === 0 ? bytes(SECRET) : Uint8Array.of(0x5c, 0x1b, 0xc3, 0xa9, 0xff),
    }),
  );
  const stamps = { prefix: "_twg_", pipeline: "p", now: 1 };
  const table = rejectsOf(batchOf(rows), records, stamps);
  mkdirSync(folder, { recursive: true });
  const encoder = new ParquetEncoder(engine, { compression: "zstd", level: 1 });
  writeFileSync(join(folder, name), encoder.encode(table!));
  encoder.close();
}

async function inspect(...argv: string[]) {
  const cli = fakeCli();
  const code = await runCli(["inspect", "rejects", ...argv], cli);
  return { code, out: cli.stdout(), err: cli.stderr() };
}

const folder = join(root, "refused");

beforeAll(() => {
  write(folder, "1.parquet", 5, [
    refused(0, "decode.type", "items[0].qty", "7"),
    refused(1, "decode.type", "items[12].qty", "7"),
    refused(2, "decode.range", "", "7"),
  ]);
  write(folder, "2.parquet", 100, [
    refused(0, "decode.type", "items[3].qty", "7"),
    refused(1, "decode.schema", "", "99"),
  ]);
});

afterAll(() => engine.close());

test("kinds are counted over all files, the largest first, with times and offsets", async () => {
  const { code, out, err } = await inspect("-c", config(folder), "--json", "--samples", "2");
  expect([code, err]).toEqual([0, ""]);
  const { tables, failures } = JSON.parse(out);
  expect(failures).toEqual([]);
  expect(tables).toHaveLength(1);
  expect(tables[0]).toMatchObject({ sink: "refused", place: folder, files: 2, records: 5, others: 0 });
  const [type, ...rest] = tables[0].groups;
  expect(type).toMatchObject({
    ...{ code: "decode.type", topic: "orders", schemaId: "7", path: "items[].qty", records: 3 },
    ...{ first: "2023-11-14T22:13:25.000Z", last: "2023-11-14T22:15:00.000Z" },
    partitions: [{ partition: 3, records: 3, first: "5", last: "100" }],
  });
  expect(type.samples.map((s: { path: string; offset: string }) => [s.offset, s.path])).toEqual([
    ["5", "items[0].qty"],
    ["6", "items[12].qty"],
  ]);
  expect(rest.map((g: { code: string; records: number }) => [g.code, g.records]).sort()).toEqual([
    ["decode.range", 1],
    ["decode.schema", 1],
  ]);
});

test("keys, values and what may quote them are masked unless asked for, in both formats", async () => {
  for (const json of [[], ["--json"]]) {
    const masked = await inspect("-c", config(folder), ...json);
    expect(masked.out).not.toMatch(/4711|6361/);
    expect(masked.out).toContain("no such schema");
    const shown = await inspect("-c", config(folder), "--show-values", ...json);
    expect(shown.out).toContain(SECRET);
    expect(shown.out).toContain("is no int32");
  }
  const { out } = await inspect("-c", config(folder), "--json", "--samples", "2", "--show-values");
  const [type] = JSON.parse(out).tables[0].groups;
  expect(type.samples.map((s: { key: unknown; value: unknown }) => [s.key, s.value])).toEqual([
    [null, { bytes: 9, escaped: SECRET }],
    [
      { bytes: 2, escaped: "k1" },
      { bytes: 5, escaped: "\\\\\\x1bé\\xff" },
    ],
  ]);
});

test("as text: a table, what it sums to, and a sample of each group", async () => {
  const { out } = await inspect("-c", config(folder), "--sink", "refused");
  const lines = out.split("\n").map((l) => l.trim());
  expect(lines[0]).toBe(`refused: ${folder}`);
  expect(lines[1]).toMatch(/^RECORDS +CODE +TOPIC +SCHEMA +PATH +FIRST +LAST +PARTITION:OFFSETS$/);
  expect(lines[2]).toMatch(/^3 +decode\.type +orders +7 +items\[\]\.qty .* 3:5-100$/);
  expect(lines).toContain("5 refused records, 2 files");
  expect(lines).toContain("orders/3@5 of 2023-11-14T22:13:25.000Z, at items[0].qty");
  expect(lines).toContain("key null, value of 9 bytes");
  const none = await inspect("-c", config(folder), "--samples", "0");
  expect(none.out).not.toContain("orders/3@5");
});

test("more kinds than are shown are counted together", async () => {
  const many = join(root, "many");
  const records = Array.from({ length: 1100 }, (_, i) => refused(i, "decode.type", `f${i}`));
  write(many, "1.parquet", 0, records);
  const { out } = await inspect("-c", config(many), "--json");
  const [table] = JSON.parse(out).tables;
  expect([table.records, table.groups.length, table.others]).toEqual([1100, 100, 1000]);
  expect((await inspect("-c", config(many))).out).toContain(
    "1100 refused records, 1000 of them in groups that are not shown, 1 file",
  );
});

test("nothing written yet is nothing refused", async () => {
  const { code, out } = await inspect("-c", config(join(root, "nowhere")));
  expect([code, out]).toEqual([0, `refused: ${join(root, "nowhere")}\nno refused records\n`]);
});

test("a file that is damaged or of another kind is told and hides nothing", async () => {
  const damaged = join(root, "damaged");
  write(damaged, "1.parquet", 0, [refused(0, "decode.type", "a")]);
  writeFileSync(join(damaged, "2.parquet"), "PAR1 and nothing else");
  const { code, out, err } = await inspect("-c", config(damaged));
  expect(code).toBe(1);
  expect(out).toContain("1 refused record, 2 files");
  expect(err).toContain("inspect.not_parquet");
  const other = join(import.meta.dir, "fixtures");
  const foreign = await inspect("-c", config(other));
  expect(foreign.err).toContain("inspect.unreadable: this is no table of rejects: it has no column code");
});

test("a file without such a sink, or a name that is none, is a mistake of the command line", async () => {
  const without = await inspect("-c", fileWith(ORDERS));
  expect([without.code, without.err]).toEqual([
    2,
    expect.stringContaining('no sink of the file has receives = "rejected"'),
  ]);
  const wrong = await inspect("-c", config(folder), "--sink", "raw");
  expect([wrong.code, wrong.err]).toEqual([
    2,
    expect.stringContaining('no sink "raw" has receives = "rejected", there is refused'),
  ]);
});

/**
 * Goal: columns go to DuckDB and come back as they were, what it says becomes a coded failure, and a query can leave
 * its sandbox by no door. Method: the real library; values made by SQL, files read back by hyparquet.
 */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parquetMetadata, parquetReadObjects } from "hyparquet";
import { compressors } from "hyparquet-compressors";
import { DuckEngine, interruptEngine } from "../../../src/adapters/duckdb/engine.ts";
import { ParquetEncoder } from "../../../src/adapters/duckdb/parquet-encode.ts";
import { Failure } from "../../../src/core/failure/failure.ts";
import { JoinedFile } from "../../../src/core/formats/parquet/join.ts";
import { readTree, type ThriftList } from "../../../src/core/formats/parquet/thrift-tree.ts";
import type { TableBatch } from "../../../src/core/types/table-batch.ts";
import { cellOf } from "../../core/codecs/table.ts";

const engine = new DuckEngine({ threads: 1, memoryBytes: 256 * 1024 * 1024, spill: null, allowed: [] });
afterAll(() => engine.close());

const rowsOf = (b: TableBatch) =>
  Array.from({ length: b.rows }, (_, r) => b.columns.map((c) => cellOf(c, r)));
const all = (sql: string) => [...engine.batches(sql)].flatMap(rowsOf);

function failure(sql: string): string {
  try {
    engine.run(sql);
    return "none";
  } catch (e) {
    return e instanceof Failure ? e.code : String(e);
  }
}

const EVERY_TYPE = `
  SELECT CASE WHEN i % 3 = 0 THEN NULL ELSE (i % 2 = 0) END AS b, i::TINYINT AS i8, i::BIGINT - 2 AS i64,
    (i * 1.5)::DOUBLE AS f, (i / 7)::DECIMAL(38, 10) AS d, 'text ' || i AS s, ('b' || i)::BLOB AS z,
    DATE '2026-01-01' + i::INT AS day, TIMESTAMP '2026-01-01' + INTERVAL (i) SECOND AS at,
    md5(i::VARCHAR)::UUID AS id, [i, NULL, i + 1] AS l, {'x': i, 'y': 'n' || i} AS st, MAP {'k': i} AS m
  FROM range(1, 12) t(i)`;

test("every type comes out of a query and goes in again unchanged", () => {
  const batches = [...engine.batches(EVERY_TYPE)];
  expect(batches).toHaveLength(1);
  const [batch] = batches;
  const back = engine.lend(batch!, (view) => [...engine.batches(`SELECT * FROM ${view}`)]);
  expect(back.flatMap(rowsOf)).toEqual(batches.flatMap(rowsOf));
  expect(back[0]!.fields.map((f) => f.type)).toEqual(batch!.fields.map((f) => f.type));
});

test("values are DuckDB's own, by its text of them", () => {
  const [row] = all("SELECT 7::INT a, 1.25::DECIMAL(5,2) d, 'é' s, NULL::VARCHAR n");
  expect(row).toEqual([7, 125n, "é", null]);
});

test("many chunks are one result", () => {
  expect(all("SELECT i FROM range(10000) t(i)").flat()).toEqual(
    Array.from({ length: 10_000 }, (_, i) => BigInt(i)),
  );
});

test("nothing outside of memory can be read, written, attached or installed", () => {
  for (const sql of [
    "SELECT * FROM read_text('/etc/passwd')",
    "COPY (SELECT 1) TO '/tmp/twg-out.csv'",
    "ATTACH '/tmp/twg.db'",
    "INSTALL httpfs",
    "SET threads = 4",
    "SET enable_external_access = true",
  ]) {
    expect([sql, failure(sql)]).not.toEqual([sql, "none"]);
  }
});

test("failures have codes", () => {
  expect(failure("SELEC 1")).toBe("duckdb.query");
  expect(failure("SELECT list(i) FROM range(1000000000) t(i)")).toBe("duckdb.out_of_memory");
  expect(() => [...engine.batches("SELECT nothing")]).toThrow(Failure);
});

test("a query can be ended from elsewhere", async () => {
  const worker = new Worker(
    URL.createObjectURL(
      new Blob([
        `import { interruptEngine } from ${JSON.stringify(`${import.meta.dir}/../../../src/adapters/duckdb/engine.ts`)};
         self.onmessage = (e) => { const t = setInterval(() => interruptEngine(e.data), 5); setTimeout(() => clearInterval(t), 20_000); };
         self.postMessage("ready");`,
      ]),
    ),
  );
  await new Promise((resolve) => worker.addEventListener("message", resolve, { once: true }));
  worker.postMessage(engine.connection);
  expect(failure("SELECT count(*) FROM range(100000000000) a(i) WHERE i % 7 = 3")).toBe("duckdb.interrupted");
  worker.terminate();
  expect(interruptEngine).toBeFunction();
});

test("pieces that are joined read as one file", async () => {
  const encoder = new ParquetEncoder(engine, { compression: "zstd", level: 1 });
  const joined = new JoinedFile();
  const parts: Uint8Array[] = [JoinedFile.head];
  const want: unknown[] = [];
  for (let n = 0; n < 3; n++) {
    const sql = `SELECT i, 'name ' || (i % 5) AS s, [i] AS l, CASE WHEN i % 4 = 0 THEN NULL ELSE i / 3 END AS f
                 FROM range(${n * 100}, ${n * 100 + 70}) t(i)`;
    for (const batch of engine.batches(sql)) {
      parts.push(joined.add(encoder.encode(batch)));
      want.push(...rowsOf(batch).map(([i, s, l, f]) => ({ i, s, l, f })));
    }
  }
  parts.push(joined.finish([["twg.test", "yes"]], "twg test"));
  const file = Buffer.concat(parts);
  const read = await parquetReadObjects({ file: new Uint8Array(file).buffer, compressors });
  expect(read).toEqual(want as never);
  expect(file.length).toBe(parts.reduce((n, p) => n + p.length, 0));
  encoder.close();
});

/** FileMetaData.column_orders, which hyparquet does not give. */
function ordersOf(file: Uint8Array): readonly unknown[] {
  const length = new DataView(file.buffer).getUint32(file.length - 8, true);
  const footer = readTree(file.subarray(file.length - 8 - length, file.length - 8));
  return (footer.get(7)!.value as ThriftList).items;
}

test("columns that hold one value are put beside what the engine wrote, and read as if it had written them", async () => {
  const encoder = new ParquetEncoder(engine, { compression: "zstd", level: 1 });
  const joined = new JoinedFile();
  const parts: Uint8Array[] = [JoinedFile.head];
  const want: unknown[] = [];
  const digest = Uint8Array.from({ length: 32 }, (_, i) => (37 * i + 129) & 255);
  for (const [rows, known] of [
    [1, true],
    [70, false],
    [200, true],
  ] as const) {
    const sql = `SELECT [i, NULL] AS l, {'x': i, 'y': 's' || i} AS st, 'in/café.csv' AS name, i, from_hex('${digest.toHex()}') AS digest,
                 i % 3 = 0 AS b FROM range(${rows}) t(i)`;
    for (const batch of engine.batches(sql)) {
      const constants: Record<string, Uint8Array> = known
        ? { name: new TextEncoder().encode("in/café.csv"), digest }
        : {};
      const columns = batch.columns.map((c, i) => {
        const constant = constants[batch.fields[i]!.name];
        return constant === undefined ? c : { ...c, constant };
      });
      // Row groups of both kinds in one file: their schemas must be the same.
      parts.push(joined.add(encoder.encode({ ...batch, columns })));
      for (const [l, st, name, i, d, b] of rowsOf(batch)) want.push({ l, st, name, i, digest: d, b });
    }
  }
  parts.push(joined.finish([], "twg test"));
  const file = new Uint8Array(Buffer.concat(parts));
  // Arrow refuses a file whose leaves and orders of comparison differ in number.
  const footer = parquetMetadata(file.buffer);
  expect(ordersOf(file)).toHaveLength(footer.row_groups[0]!.columns.length);
  const read = await parquetReadObjects({ file: file.buffer, compressors, utf8: false });
  const plain = (v: unknown) =>
    JSON.stringify(v, (_, x) =>
      typeof x === "bigint" ? Number(x) : x instanceof Uint8Array ? x.toHex() : x,
    );
  expect(read.map(plain)).toEqual(want.map(plain));
  const path = join(mkdtempSync(join(tmpdir(), "twg-constant-")), "a.parquet");
  await Bun.write(path, file);
  const other = new DuckEngine({ threads: 1, memoryBytes: 256 << 20, spill: null, allowed: [dirname(path)] });
  const of = (sql: string) => [...other.batches(sql)].flatMap(rowsOf);
  expect(
    of(`SELECT name, digest, count(*), sum(i) FROM '${path}' WHERE name = 'in/café.csv' GROUP BY ALL`).map(
      plain,
    ),
  ).toEqual([["in/café.csv", digest, 271, 22_315]].map(plain));
  expect(of(`SELECT count(*) FROM '${path}' WHERE name < 'in'`).map(plain)).toEqual(["[0]"]);
  other.close();
  encoder.close();
});

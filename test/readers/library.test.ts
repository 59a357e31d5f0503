/** Raw files read by the DuckDB library that ships. */
import { afterAll, describe, expect, test } from "bun:test";
import { libduckdbPath } from "../../src/adapters/duckdb/embedded.ts";
import { corpus } from "./corpus.ts";
import { openEngine } from "./duckdb-library.ts";

const { folder, files, remove } = corpus();
const engine = openEngine(libduckdbPath(), folder);
afterAll(() => {
  engine.close();
  remove();
});

const HEADERS = `'[' || array_to_string(list_transform(_twg_source_headers,
  lambda h: lower(hex(h.key)) || ':' || coalesce(lower(hex(h.value)), '~')), ',') || ']'`;
const or = (sql: string) => `coalesce(${sql}::varchar, '~')`;
const LINE = [
  "_twg_source_topic",
  "_twg_source_partition",
  "_twg_source_offset",
  or("epoch_ms(_twg_source_timestamp)"),
  or("_twg_source_timestamp_type"),
  or("lower(hex(_twg_source_key))"),
  or("lower(hex(_twg_source_value))"),
  HEADERS,
  or("_twg_source_leader_epoch"),
  or("_twg_source_producer_id"),
  or("_twg_source_producer_epoch"),
  or("_twg_source_base_sequence"),
  "_twg_source_transactional",
  "lower(hex(_twg_record_id))",
].join(" || ' ' || ");

describe("libduckdb finds every row as it was written", () => {
  for (const file of files) {
    // Milliseconds at the ends of int64 do not fit DuckDB's microseconds: it can read all but that column.
    if (file.name === "extremes") continue;
    test(file.name, () => {
      const lines = engine.query(`SELECT ${LINE} FROM '${file.path}'`).map(([line]) => line);
      expect(lines.length).toBe(file.lines.length);
      expect(lines.findIndex((l, i) => l !== file.lines[i])).toBe(-1);
    }, 20_000);
  }

  test("timestamps beyond its microseconds spoil that column only, and no query over others", () => {
    const path = files.find((f) => f.name === "extremes")?.path;
    expect(engine.query(`SELECT count(*), max(_twg_source_offset) FROM '${path}'`)).toEqual([["3", "2"]]);
    expect(() => engine.query(`SELECT _twg_source_timestamp FROM '${path}'`)).toThrow("Timestamp");
    expect(
      engine.query(
        `SELECT stats_min_value, stats_null_count FROM parquet_metadata('${path}') WHERE path_in_schema = '_twg_source_timestamp'`,
      ),
    ).toEqual([[null, "0"]]);
  });
});

describe("statistics", () => {
  const turns = files.find((f) => f.name === "turns")?.path;

  test("pruning by them loses no row: every predicate counts what a full scan counts", () => {
    for (const where of [
      "_twg_source_offset = 12345",
      "_twg_source_offset BETWEEN 7000 AND 7600",
      "_twg_source_partition = 2147483647",
      "_twg_source_topic = 'other.topic'",
      "_twg_source_topic < 'orders'",
      "_twg_source_timestamp < TIMESTAMPTZ '2023-11-14 22:13:20.5Z'",
      "_twg_source_base_sequence >= 9",
      "_twg_source_transactional",
      "_twg_source_cluster IS NULL",
      "_twg_dq IS NOT NULL",
      "_twg_source_key IS NULL",
    ]) {
      // The second form cannot be pushed down to the row groups.
      const [pruned] = engine.query(`SELECT count(*) FROM '${turns}' WHERE ${where}`);
      const [whole] = engine.query(`SELECT count(*) FILTER (WHERE ${where}) FROM '${turns}'`);
      expect([where, pruned]).toEqual([where, whole]);
    }
  });

  test("those in the footer are those of the rows, row group by row group", () => {
    const bad = engine.query(`
      WITH rows AS (SELECT *, row_number() OVER () - 1 AS n FROM (SELECT _twg_source_offset AS o, file_row_number FROM read_parquet('${turns}', file_row_number = true))),
      groups AS (SELECT row_group_id, min(stats_min_value::BIGINT) AS lo, max(stats_max_value::BIGINT) AS hi, any_value(row_group_num_rows) AS size
                 FROM parquet_metadata('${turns}') WHERE path_in_schema = '_twg_source_offset' GROUP BY 1),
      placed AS (SELECT *, sum(size) OVER (ORDER BY row_group_id) - size AS first FROM groups)
      SELECT p.row_group_id FROM placed p JOIN rows r ON r.file_row_number >= p.first AND r.file_row_number < p.first + p.size
      GROUP BY p.row_group_id, p.lo, p.hi HAVING min(r.o) <> p.lo OR max(r.o) <> p.hi`);
    expect(bad).toEqual([]);
    expect(engine.query(`SELECT count(DISTINCT row_group_id) > 3 FROM parquet_metadata('${turns}')`)).toEqual(
      [["true"]],
    );
  });
});

test("the engine is shut in: no other file, no setting, no extension", () => {
  expect(() => engine.query("SELECT * FROM read_text('/etc/hostname')")).toThrow("Permission");
  expect(() => engine.query("SELECT 1); SET threads = 4; SELECT (1")).toThrow();
});

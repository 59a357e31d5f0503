/**
 * Goal: rows never land as values of another type. Method: a column of the table is changed by hand while rows that were made
 * for it are on their way, to types of which the server takes the same bytes, and to others; then it is changed back.
 */
import { describe, expect, test } from "bun:test";
import { row } from "../../core/formats/parquet/rows.ts";
import { failed } from "./failed.ts";
import { demandPostgres, POSTGRES, psql } from "./server.ts";
import { KEY } from "./sink.ts";
import { SinkOfEachTest } from "./sink-of-each-test.ts";

demandPostgres("columns whose type is changed");

const rows = (from: number) => Array.from({ length: 50 }, (_, i) => row(BigInt(from + i)));
const [ROWS, LATER] = [rows(0), rows(50)];

/** Column, its type, another, and how values become that. */
const CHANGES: readonly (readonly [string, string, string, string])[] = [
  ["_twg_source_offset", "bigint", "numeric", "_twg_source_offset"],
  ["_twg_source_offset", "bigint", "double precision", "_twg_source_offset"],
  ["_twg_source_offset", "bigint", "timestamptz", "to_timestamp(_twg_source_offset)"],
  ["_twg_source_offset", "bigint", "boolean", "_twg_source_offset > 0"],
  ["_twg_source_offset", "bigint", "integer", "_twg_source_offset"],
  ["_twg_source_partition", "integer", "real", "_twg_source_partition"],
  ["_twg_source_topic", "text", "bytea", "convert_to(_twg_source_topic, 'UTF8')"],
  ["_twg_source_topic", "text", "character(300)", "_twg_source_topic"],
  ["_twg_source_value", "bytea", "text", "encode(_twg_source_value, 'hex')"],
];

describe.skipIf(POSTGRES === null)("a set for a column", () => {
  const t = new SinkOfEachTest({});
  const state = async () => ({
    rows: await psql(t.database, "select count(*), count(distinct _twg_source_offset) from raw"),
    rejects: await psql(t.database, "select count(*) from twg.reject"),
    covered: (await t.sink.coverage.covered(KEY)).length,
  });
  const alter = (column: string, type: string, using: string) =>
    psql(t.database, `alter table raw alter "${column}" type ${type} using ${using}`);

  test.each(CHANGES)("%s that is %s, and then %s, does not land", async (column, _, other, using) => {
    t.sink.begin(ROWS);
    await alter(column, other, using);
    expect((await failed(t.sink.seal(ROWS, t.authorities))).code).toBe("postgres.table_mismatch");
    expect(await state()).toMatchObject({ rows: "0|0", rejects: "0", covered: 0 });
  });

  test("lands once the column is what it was, with the same rows", async () => {
    t.sink.begin(ROWS);
    await alter("_twg_source_offset", "numeric", "_twg_source_offset");
    await failed(t.sink.seal(ROWS, t.authorities));
    await alter("_twg_source_offset", "bigint", "_twg_source_offset");
    expect(await t.sink.seal(ROWS, t.authorities)).toMatchObject({ covered: true, rows: 50 });
    expect((await state()).rows).toBe("50|50");
  });

  test("of text that holds as much lands as ever", async () => {
    t.sink.begin(ROWS);
    await alter("_twg_source_topic", "character varying", "_twg_source_topic");
    expect(await t.sink.seal(ROWS, t.authorities)).toMatchObject({ covered: true, rows: 50 });
    expect((await state()).rows).toBe("50|50");
  });

  test("is held against the table whose lock it has: a change waits for it", async () => {
    let changed: Promise<string> | null = null;
    await t.again({
      hook: (point) => {
        if (point === "copy_begun") changed ??= alter("_twg_source_offset", "numeric", "_twg_source_offset");
      },
    });
    expect(await t.sink.land(ROWS, t.authorities)).toMatchObject({ covered: true, rows: 50 });
    await changed;
    expect((await state()).rows).toBe("50|50");
    expect((await failed(t.sink.land(LATER, t.authorities))).code).toBe("postgres.table_mismatch");
  });
});

/**
 * Goal: a table of decoded rows that somebody changed is told from a schema that never went into it: the one is an outage with a
 * name for each column, what it is, was, and has to be, the other is that schema's fault. Method: tables that fitted are changed
 * by psql in every way that we know of, and changed back by the statement that the hint has; preparations of new connections judge.
 */
import { afterEach, beforeAll, describe, expect, test } from "bun:test";
import { prepareFields } from "../../../src/adapters/postgres/prepare.ts";
import { forgetKnownColumns } from "../../../src/adapters/postgres/state/known-columns.ts";
import { stateNames } from "../../../src/adapters/postgres/state/tables.ts";
import type { TableGrowth } from "../../../src/adapters/postgres/table/grow.ts";
import { UnfitColumns } from "../../../src/adapters/postgres/table/misfit.ts";
import type { ColumnField, ColumnType } from "../../../src/core/types/table-batch.ts";
import { field } from "./columns.ts";
import { failed } from "./failed.ts";
import { demandPostgres, freshDatabase, POSTGRES, parts, psql, settings } from "./server.ts";
import { Sink } from "./sink.ts";

demandPostgres("tables that somebody changed");

const int = (bits: 16 | 32 | 64): ColumnType => ({ id: "int", bits, signed: true });
const TEXT: ColumnType = { id: "utf8" };
const GROWTH: TableGrowth = { lockTimeoutMs: 5000, rewriteMaxBytes: 2 ** 30, dateToTimestamp: false };
const TABLE = { schema: "public", table: "typed" };
const FIELDS = [field("id", int(32)), field("name", TEXT), field("at", { id: "date32" })];

describe.skipIf(POSTGRES === null)("a table that fitted", () => {
  let database: string;
  const run = (statements: string) => psql(database, `set search_path = public; ${statements}`);
  beforeAll(async () => {
    database = await freshDatabase();
    // Somebody has the sink; the state is there.
    const sink = new Sink({ settings: settings(database) });
    await sink.claimed();
    await sink.close();
  });
  afterEach(() => run("drop table if exists typed cascade; delete from twg.table_column"));

  interface How {
    readonly growth?: TableGrowth | null;
    readonly sink?: string;
    readonly create?: boolean;
    readonly rejects?: string;
  }
  const prepared = (
    fields: readonly ColumnField[],
    { growth = GROWTH, sink = "typed", create = true, rejects }: How = {},
  ) =>
    prepareFields(
      {
        settings: settings(database),
        table: TABLE,
        rejects: rejects === undefined ? null : { schema: "public", table: rejects },
        stateSchema: "twg",
        key: { pipeline: "p", sink },
        ...{ create, growth, unique: [], remembers: true },
      },
      fields,
      parts,
    );
  /** Whose fault it is, and what is told. */
  const judged = async (fields: readonly ColumnField[], how?: How) => {
    const f = await failed(prepared(fields, how));
    expect(f.code).toBe("postgres.table_mismatch");
    const by = f instanceof UnfitColumns ? (f.tableFitted ? "schema" : "schema, first") : "table";
    return { by, why: f.message.replace("public.typed does not fit: ", ""), hint: f.hint ?? "" };
  };

  const CHANGES: readonly (readonly [change: string, why: string, undo: string])[] = [
    [
      "alter table typed alter id type boolean using id > 0",
      "column id is boolean and was integer, wanted is integer",
      "alter table typed alter id type integer using id::integer",
    ],
    [
      "alter table typed alter id type text",
      "column id is text and was integer, wanted is integer",
      "alter table typed alter id type integer using id::integer",
    ],
    [
      "alter table typed alter at type timestamptz",
      "column at is timestamp with time zone and was date, wanted is date",
      "alter table typed alter at type date",
    ],
    [
      "alter table typed alter name type integer using 1, alter id type bytea using '\\x00'",
      "column id is bytea and was integer, wanted is integer; column name is integer and was text, wanted is text",
      "alter table typed alter name type text, alter id type integer using 1",
    ],
    [
      "alter table typed drop column name",
      "column name, which was text, is gone, wanted is text",
      "alter table typed add column name text",
    ],
    [
      "alter table typed rename id to ident",
      "column id, which was integer, is gone, wanted is integer",
      "alter table typed rename ident to id",
    ],
    [
      "drop table typed; create table typed (id text, name text)",
      "column id is text and was integer, wanted is integer; column at, which was date, is gone, wanted is date",
      "drop table typed; create table typed (id bigint, name text, at date)",
    ],
    [
      "alter table typed add column owner text not null",
      "column owner is NOT NULL without a default, and the sink does not fill it",
      "alter table typed alter owner set default ''",
    ],
    [
      "alter table typed drop column id, add column id integer generated always as (1) stored",
      "column id is generated and cannot be written",
      "alter table typed drop column id, add column id integer",
    ],
    [
      "alter table typed rename to other; create view typed as select * from other",
      "it is a view, wanted is a table",
      "drop view typed; alter table other rename to typed",
    ],
  ];

  test.each(CHANGES)(
    "and is another by %s, is at fault until it is changed back",
    async (change, why, undo) => {
      await prepared(FIELDS);
      await run(change);
      for (const create of [true, false])
        expect(await judged(FIELDS, { create, growth: create ? GROWTH : null })).toMatchObject({
          by: "table",
          why,
        });
      await run(undo);
      expect((await prepared(FIELDS)).length).toBe(3);
      await run("drop table if exists typed, other cascade");
    },
  );

  test("and is another says what changes it back, and that is enough", async () => {
    await prepared(FIELDS);
    await run("alter table typed drop column name, alter at type text, add column owner text not null");
    const { hint } = await judged(FIELDS);
    const statement = /ALTER TABLE .*/.exec(hint)![0];
    expect(statement).toBe(
      `ALTER TABLE "public"."typed" ADD COLUMN "name" text, ALTER COLUMN "at" TYPE date USING ..., ALTER COLUMN "owner" DROP NOT NULL`,
    );
    await run(statement.replace("USING ...", "USING at::date"));
    await prepared(FIELDS);
  });

  test("is not at fault for a schema that it never took, changed or not", async () => {
    await prepared(FIELDS);
    const odd = [field("id", TEXT), ...FIELDS.slice(1)];
    const why = "column id is integer, wanted is text";
    expect(await judged(odd)).toMatchObject({ by: "schema", why });
    // Beside a column that was changed, and of that column itself.
    await run("alter table typed alter at type text");
    expect(await judged(odd)).toMatchObject({ by: "schema" });
    expect(await judged(FIELDS)).toMatchObject({ by: "table" });
    await run("alter table typed alter at type date using at::date, alter id type boolean using true");
    expect(await judged(odd)).toMatchObject({ by: "schema" });
    await run("alter table typed drop column id");
    expect(await judged(odd)).toMatchObject({ by: "schema" });
    // It was not made anew in passing.
    expect(await judged(FIELDS)).toMatchObject({ by: "table" });
  });

  test("is at fault where it would have grown, and does not any more", async () => {
    await prepared(FIELDS);
    const wider = [field("id", int(64)), ...FIELDS.slice(1)];
    await run("alter table typed alter id type boolean using true");
    expect(await judged(wider)).toMatchObject({ by: "table" });
    expect(await judged(wider, { growth: null })).toMatchObject({ by: "schema" });
    await run("alter table typed alter id type integer using 1");
    expect((await prepared(wider))[0]?.type).toBe("bigint");
    // A view holds the column; what it was is what is wanted.
    await run("alter table typed alter id type integer; create view v as select id from typed");
    expect(await judged(wider)).toMatchObject({ by: "table" });
    expect((await prepared(FIELDS)).length).toBe(3);
    expect(await judged(wider)).toMatchObject({ by: "schema" });
  });

  test("is known as it is from the last time on that it fitted, whoever made it so", async () => {
    await run("create table typed (id integer, name varchar(5), at date)");
    const by = await judged([field("id", TEXT)]);
    expect(by).toMatchObject({ by: "schema, first" });
    await prepared(FIELDS);
    expect(await run("select name, type from twg.table_column order by name")).toBe(
      "at|date\nid|integer\nname|text",
    );
    await run("alter table typed alter id type bigint");
    await prepared(FIELDS);
    const wider = [field("id", int(64))];
    await prepared(wider);
    await run("alter table typed alter id type text");
    expect(await judged(wider)).toMatchObject({
      ...{ by: "table", why: "column id is text and was bigint, wanted is bigint" },
    });
    // What another sink knows of it is another's.
    expect(await judged(wider, { sink: "other" })).toMatchObject({ by: "schema, first" });
  });

  test("takes nulls as it did, and one that never did refuses them", async () => {
    await run("create table typed (id integer not null, name text, at date not null default now())");
    const nulls = async () => (await prepared(FIELDS)).map((t) => !t.notNull);
    expect(await nulls()).toEqual([false, true, false]);
    await run("alter table typed alter name set not null, alter id drop not null");
    for (let i = 0; i < 2; i++) expect(await nulls()).toEqual([true, true, false]);
    await run("alter table typed alter id set not null, alter id type bigint");
    for (let i = 0; i < 2; i++) expect(await nulls()).toEqual([true, true, false]);
  });

  test("and was made anew by us is a new one: nothing of the earlier is missed", async () => {
    await prepared(FIELDS);
    await run("drop table typed");
    await prepared([field("id", TEXT), FIELDS[2]!]);
    expect(await run("select name, type from twg.table_column order by name")).toBe("at|date\nid|text");
    await prepared([field("id", TEXT), field("name", int(32))]);
    expect(await judged([field("name", TEXT)])).toMatchObject({ by: "schema" });
  });

  test("and was made by another just before is known as that one had it", async () => {
    await prepared(FIELDS);
    // What goes before the creation by whoever saw no table, and comes too late with it.
    const key = { pipeline: "p", sink: "typed" };
    const late = forgetKnownColumns({ names: stateNames("twg"), key, table: TABLE });
    await run(late);
    expect(await run("select count(*) from twg.table_column")).toBe("3");
    await run("drop table typed");
    await run(late);
    expect(await run("select count(*) from twg.table_column")).toBe("0");
  });

  test("beside rejects that are no table of rejects waits for them", async () => {
    await prepared(FIELDS, { rejects: "refused" });
    await run("alter table refused rename line to text");
    expect(await judged(FIELDS, { rejects: "refused" })).toMatchObject({ by: "table" });
    await run("drop table refused");
  });

  test("is known beside a state of an earlier version, and one that several made fit at once", async () => {
    await run("drop table twg.table_column");
    const all = Array.from({ length: 6 }, (_, i) => [...FIELDS, field(`c${i}`, int(i % 2 === 0 ? 32 : 64))]);
    await Promise.all(all.map((fields) => prepared(fields)));
    expect(await run("select count(*) from twg.table_column")).toBe("9");
    await run("alter table typed drop column c5");
    expect(await judged(all[5]!)).toMatchObject({ by: "table" });
  });
});

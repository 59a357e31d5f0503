/**
 * Goal: a table is made on request and never changed; one that does not fit is refused with each difference named.
 * Method: tables of every kind that a database can hold, made by psql.
 */
import { beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { Failure } from "../../../src/core/failure/failure.ts";
import { bytes, row } from "../../core/formats/parquet/rows.ts";
import { demandPostgres, freshDatabase, lines, POSTGRES, psql, settings } from "./server.ts";
import { Sink } from "./sink.ts";

demandPostgres("tables");

describe.skipIf(POSTGRES === null)("the table of a raw sink", () => {
  let database: string;
  beforeAll(async () => {
    database = await freshDatabase();
  });
  beforeEach(() =>
    psql(
      database,
      "drop table if exists raw cascade; drop view if exists raw; drop schema if exists twg cascade",
    ),
  );

  const sink = (over = {}) => new Sink({ settings: settings(database, over) });
  const refused = async (work: Promise<unknown> = sink().prepare(false)): Promise<Failure> => {
    const e: unknown = await work.then(
      () => new Error("did not fail"),
      (e: unknown) => e,
    );
    if (!(e instanceof Failure)) throw e;
    return e;
  };
  const made = () => sink().prepare(true);
  const change = (statements: string) => psql(database, statements);

  test("is made with the metadata columns in their order, and is left as it is the next time", async () => {
    expect((await refused()).code).toBe("postgres.missing");
    await made();
    const columns = `select attname, format_type(atttypid, atttypmod), attnotnull from pg_attribute
      where attrelid = 'raw'::regclass and attnum > 0 order by attnum`;
    const shown = lines(await change(columns));
    expect(shown.length).toBe(29);
    expect(shown.slice(0, 5)).toEqual([
      "_twg_source_transport|text|t",
      "_twg_source_cluster|text|f",
      "_twg_source_topic|text|f",
      "_twg_source_partition|integer|f",
      "_twg_source_offset|bigint|f",
    ]);
    expect(shown).toContain("_twg_record_id|uuid|t");
    expect(shown).toContain("_twg_source_headers|bytea[]|f");
    await change("comment on table raw is 'mine'; alter table raw add column extra int");
    await made();
    await sink().prepare(false);
    expect(await change("select obj_description('raw'::regclass)")).toBe("mine");
  });

  test("is made once where several processes begin at the same moment", async () => {
    for (let round = 0; round < 3; round++) {
      await change("drop table if exists raw");
      await Promise.all(Array.from({ length: 8 }, () => made()));
    }
  });

  test("a table that is gone is not made anew while rows of it count as landed", async () => {
    const s = sink();
    await s.prepare(true);
    await s.land([row(1)], await s.claimed());
    await s.close();
    await change("drop table raw");
    const f = await refused(sink().prepare(true));
    expect([f.code, f.message.includes("rows of it count as landed (pipeline p, sink raw)")]).toEqual([
      "postgres.missing",
      true,
    ]);
    expect(await change("select to_regclass('raw') is null")).toBe("t");
    // Of this sink and no other.
    await change("update twg.coverage set sink = 'another'");
    await made();
  });

  test("the statement of the hint makes a table that fits", async () => {
    const f = await refused();
    const statement = /run: (CREATE TABLE .*)$/.exec(f.hint ?? "")?.[1] ?? "";
    await change(statement);
    await sink().prepare(false);
  });

  test("every difference is named at once", async () => {
    await made();
    await change(
      `alter table raw drop column _twg_source_offset, alter column _twg_source_key type text using 'x',
       alter column _twg_source_value set not null, add column own int not null`,
    );
    const f = await refused();
    expect(f.code).toBe("postgres.table_mismatch");
    expect(f.message.split(": ")[1]?.split("; ")).toEqual([
      "column _twg_source_offset bigint is missing",
      "column _twg_source_key is text, wanted is bytea",
      "column _twg_source_value is NOT NULL and must take nulls",
      "column own is NOT NULL without a default, and the sink does not fill it",
    ]);
  });

  test("columns of the user's own are fine if they fill themselves", async () => {
    await made();
    await change(
      `alter table raw add column id bigint generated always as identity, add column at timestamptz not null default now(),
       add column topic_upper text generated always as (upper(_twg_source_topic)) stored`,
    );
    const s = sink();
    await s.prepare(false);
    const authorities = await s.claimed();
    expect(await s.land([row(0), row(1)], authorities)).toMatchObject({ covered: true });
    await s.close();
    expect(await change("select id, topic_upper, at is not null from raw order by id")).toBe(
      "1|ORDERS|t\n2|ORDERS|t",
    );
  });

  test("varchar takes what text takes", async () => {
    await made();
    await change("alter table raw alter column _twg_source_topic type varchar");
    await sink().prepare(false);
    await change("alter table raw alter column _twg_source_topic type varchar(3)");
    expect((await refused()).message).toContain("is character varying(3), wanted is text");
  });

  test("unlogged tables are refused, and a partition that is one", async () => {
    await made();
    await change("alter table raw set unlogged");
    const f = await refused();
    expect([f.code, f.hint]).toEqual(["postgres.not_durable", 'Run: ALTER TABLE "public"."raw" SET LOGGED']);
    await change(
      `alter table raw rename to part; alter table part set logged;
       create table raw (like part) partition by list (_twg_source_partition);
       create unlogged table raw_1 partition of raw for values in (1)`,
    );
    expect((await refused()).message).toContain("raw_1 is unlogged");
    await change("drop table part");
  });

  test("state tables that a crash would empty are refused too", async () => {
    await made();
    const s = sink();
    await s.coverage.open();
    await s.close();
    await change("alter table twg.coverage set unlogged");
    expect((await refused(sink().coverage.open())).code).toBe("postgres.not_durable");
  });

  test("partitioned tables work, and a record without a partition is told", async () => {
    await made();
    await change(
      `alter table raw rename to part; create table raw (like part) partition by list (_twg_source_partition);
       create table raw_3 partition of raw for values in (3); drop table part`,
    );
    const s = sink();
    await s.prepare(false);
    const authorities = await s.claimed();
    await s.land([row(0, { value: bytes("a") })], authorities);
    expect(await change("select count(*) from raw_3")).toBe("1");
    await change("alter table raw detach partition raw_3");
    const f = await refused(s.land([row(1)], authorities));
    expect([f.code, f.message]).toEqual([
      "postgres.constraint",
      expect.stringContaining("no partition of relation"),
    ]);
    await s.close();
    await change("drop table raw_3");
  });

  test("what is no table is refused", async () => {
    await change("create view raw as select 1 as a");
    expect((await refused()).message).toContain("it is a view, wanted is a table");
    await change(
      "drop view raw; create table real(a int); create materialized view raw as select * from real",
    );
    expect((await refused()).message).toContain("it is a materialized view");
    await change("drop materialized view raw; drop table real");
  });

  test("a table that leaves rows out is found out by the count, and nothing is covered", async () => {
    await made();
    await change(
      `create function skip() returns trigger language plpgsql as $$ begin
         if new._twg_source_offset = 1 then return null; end if; return new; end $$;
       create trigger skipping before insert on raw for each row execute function skip()`,
    );
    const s = sink();
    const authorities = await s.claimed();
    const f = await refused(s.land([row(0), row(1), row(2)], authorities));
    expect([f.code, f.message]).toEqual(["postgres.table_mismatch", "the server took 2 of 3 rows"]);
    await s.close();
    expect(await change("select count(*) from raw")).toBe("0");
    expect(await change("select count(*) from twg.coverage")).toBe("0");
  });

  test("rights: none to insert, none to make the state's schema", async () => {
    await made();
    await psql(
      "postgres",
      "do $$ begin if not exists (select from pg_roles where rolname = 'weak') then create role weak login password 'weak'; end if; end $$",
    );
    const weak = { user: "weak", password: "weak" };
    const f = await refused(sink(weak).prepare(false));
    expect([f.code, f.hint]).toEqual([
      "postgres.denied",
      'Run: GRANT INSERT ON "public"."raw" TO the user of the url',
    ]);
    await change("grant insert on raw to weak");
    await sink(weak).prepare(false);
    expect((await refused(sink(weak).coverage.open())).code).toBe("postgres.denied");
    expect(
      (
        await refused(
          sink({ ...weak })
            .prepare(true)
            .then(() => sink(weak).coverage.open()),
        )
      ).code,
    ).toBe("postgres.denied");
  });

  test("a database in another encoding is refused", async () => {
    const latin = await freshDatabase("encoding 'LATIN1' locale 'C' template template0");
    expect((await refused(new Sink({ settings: settings(latin) }).prepare(true))).code).toBe(
      "postgres.encoding",
    );
    const ascii = await freshDatabase("encoding 'SQL_ASCII' locale 'C' template template0");
    expect((await refused(new Sink({ settings: settings(ascii) }).prepare(true))).code).toBe(
      "postgres.encoding",
    );
  });

  test("a name with capitals, dots, quotes and no ASCII is that name", async () => {
    const table = { schema: 'Odd "Schema".x', table: "Größe; drop table raw" } as never;
    await change(`create schema "Odd ""Schema"".x"`);
    const s = new Sink({ settings: settings(database), table });
    await s.prepare();
    const authorities = await s.claimed();
    await s.land([row(0)], authorities);
    await s.close();
    expect(await change(`select count(*) from "Odd ""Schema"".x"."Größe; drop table raw"`)).toBe("1");
  });
});

/**
 * Goal: a table's columns become wider where nothing is lost and it was allowed, at once or by writing the table anew, and stay
 * as they are everywhere else, with every difference told; whoever writes beside that loses no row. Method: tables made by
 * psql, widened by several at once, under locks of others, while sets for the old types are on their way; psql shows what is there.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { PgConnection } from "../../../src/adapters/postgres/client.ts";
import { prepareFields } from "../../../src/adapters/postgres/prepare.ts";
import type { TableGrowth } from "../../../src/adapters/postgres/table/grow.ts";
import { PostgresTableWriter } from "../../../src/adapters/postgres/table-writer.ts";
import { Failure } from "../../../src/core/failure/failure.ts";
import type { Authority } from "../../../src/core/ports/coverage.ts";
import type { ColumnField, ColumnType } from "../../../src/core/types/table-batch.ts";
import { batch, field, type Plain } from "./columns.ts";
import { demandPostgres, freshDatabase, lines, POSTGRES, parts, psql, settings } from "./server.ts";
import { KEY, Sink } from "./sink.ts";

demandPostgres("columns that become wider");

const int = (bits: 16 | 32 | 64, signed = true): ColumnType => ({ id: "int", bits, signed });
const decimal = (precision: number, scale: number): ColumnType => ({ id: "decimal", precision, scale });
const float = (bits: 32 | 64): ColumnType => ({ id: "float", bits });
const timestamp = (zone: string | null): ColumnType => ({ id: "timestamp", unit: "us", zone });
const TEXT: ColumnType = { id: "utf8" };
const DATE: ColumnType = { id: "date32" };
const TABLE = { schema: "public", table: "typed" };
const GROWTH: TableGrowth = { lockTimeoutMs: 5000, rewriteMaxBytes: 2 ** 30, dateToTimestamp: false };

describe.skipIf(POSTGRES === null)("a column", () => {
  let database: string;
  let sink: Sink;
  let authorities: readonly Authority[];
  let next = 0n;
  // The user's own schema, which state has, comes first elsewhere.
  const run = (statements: string) => psql(database, `set search_path = public; ${statements}`);
  beforeAll(async () => {
    database = await freshDatabase();
    sink = new Sink({ settings: settings(database) });
    authorities = await sink.claimed();
  });
  afterAll(() => sink.close());
  afterEach(() => run("drop table if exists typed cascade"));

  const place = () => ({ settings: settings(database), table: TABLE, rejects: null });
  const prepared = (
    fields: readonly ColumnField[],
    growth: TableGrowth | null = GROWTH,
    unique: string[] = [],
  ) =>
    prepareFields(
      { ...place(), stateSchema: "twg", key: { pipeline: "p", sink: "typed" }, create: true, growth, unique },
      fields,
      parts,
    );
  const refusal = async (work: Promise<unknown>): Promise<Failure> => {
    const e: unknown = await work.then(
      () => new Error("did not fail"),
      (e: unknown) => e,
    );
    if (!(e instanceof Failure)) throw e;
    return e;
  };
  const typeOf = (column = "v") =>
    run(`select format_type(atttypid, atttypmod) from pg_attribute
          where attrelid = 'typed'::regclass and attname = '${column}'`);
  const file = () => run("select pg_relation_filenode('typed')");

  /** Name, type that is there, a value, type of the schema, type and value from then on. */
  type Case = readonly [string, string, string, ColumnType, string, string];
  const REWRITTEN: readonly Case[] = [
    ["small", "smallint", "-32768", int(32), "integer", "-32768"],
    ["int", "integer", "2147483647", int(64), "bigint", "2147483647"],
    ["real", "real", "1.5", float(64), "double precision", "1.5"],
    ["behind", "numeric(10,2)", "1.50", decimal(12, 4), "numeric(12,4)", "1.5000"],
    ["both", "numeric(9,1)", "12345678.1", decimal(6, 4), "numeric(12,4)", "12345678.1000"],
  ];
  const IN_PLACE: readonly Case[] = [
    ["text", "varchar(3)", "ab ", TEXT, "text", "ab "],
    ["before", "numeric(10,2)", "-1.50", decimal(14, 2), "numeric(14,2)", "-1.50"],
  ];

  test.each([
    ["the table is written anew", REWRITTEN, false],
    ["no row is written", IN_PLACE, true],
  ] as const)("becomes wider and keeps its values: %s", async (_, cases, same) => {
    const columns = cases.map(([name, type]) => `"${name}" ${type}`).join(", ");
    const row = cases.map(([, , value]) => `'${value}'`).join(", ");
    await run(
      `create table typed (${columns}); insert into typed values (${row}), (${cases.map(() => "null").join(", ")})`,
    );
    const before = await file();
    const targets = await prepared(cases.map(([name, , , wanted]) => field(name, wanted)));
    const wider = cases.map((c) => c[4]);
    expect(targets.map((t) => t.type)).toEqual(wider);
    const shown = cases.flatMap(([name]) => [
      `pg_typeof("${name}")`,
      `format_type(a${name}.atttypid, a${name}.atttypmod)`,
      `"${name}"`,
    ]);
    const attributes = cases.map(
      ([name]) =>
        `join pg_attribute a${name} on a${name}.attrelid = 'typed'::regclass and a${name}.attname = '${name}'`,
    );
    const now = await run(
      `select ${shown.join(", ")} from typed ${attributes.join(" ")} where "${cases[0]![0]}" is not null`,
    );
    const told = cases.flatMap(([, , , , type, value]) => [type.replace(/\(.*/, ""), type, value]);
    expect(now.split("|")).toEqual(told);
    expect((await file()) === before).toBe(same);
  });

  test("stays where something might be lost, each difference by name", async () => {
    const cases: readonly (readonly [string, string, ColumnType, string])[] = [
      ["number", "integer", TEXT, "text"],
      ["digits", "numeric(4,0)", TEXT, "text"],
      ["blanks", "character(4)", TEXT, "text"],
      ["zero", "bigint", int(64, false), "numeric(20,0)"],
      ["unsaid", "date", timestamp(null), "timestamp without time zone"],
      ["floating", "integer", float(64), "double precision"],
    ];
    await run(
      `create table typed (${cases.map(([name, type]) => `${name} ${type}`).join(", ")}, instant date)`,
    );
    const fields = cases.map(([name, , type]) => field(name, type));
    const why = cases.map(([name, type, , wanted]) => `column ${name} is ${type}, wanted is ${wanted}`);
    const f = await refusal(prepared(fields));
    expect([f.code, f.message]).toEqual([
      "postgres.table_mismatch",
      `public.typed does not fit: ${why.join("; ")}`,
    ]);
    const dates = { ...GROWTH, dateToTimestamp: true };
    const instant = await refusal(prepared([field("instant", timestamp("UTC"))], dates));
    expect(instant.message).toContain("column instant is date, wanted is timestamp with time zone");
  });

  test("a wider one stays, and a narrower schema goes into it", async () => {
    await run("create table typed (v bigint, w double precision, x text, y numeric(20,4))");
    const before = await file();
    const fields = [field("v", int(32)), field("w", float(32)), field("x", TEXT), field("y", decimal(10, 2))];
    const types = (await prepared(fields)).map((t) => t.type);
    expect(types).toEqual(["bigint", "double precision", "text", "numeric(20,4)"]);
    expect(await file()).toBe(before);
  });

  test("a date becomes midnight where it was asked for", async () => {
    await run("create table typed (v date); insert into typed values ('2024-02-29'), (null)");
    await prepared([field("v", timestamp(null))], { ...GROWTH, dateToTimestamp: true });
    expect(await run("select v from typed")).toBe("2024-02-29 00:00:00");
    await run("drop table typed; create table typed (v date); insert into typed values ('5000000-01-01')");
    const f = await refusal(prepared([field("v", timestamp(null))], { ...GROWTH, dateToTimestamp: true }));
    expect([f.code, await typeOf()]).toEqual(["postgres.value_refused", "date"]);
  });

  test("a table that is too large is left, and what to run is told; what costs nothing is done by itself", async () => {
    await run(
      "create table typed (v integer, w varchar(2)); insert into typed select 1, 'a' from generate_series(1, 5000)",
    );
    const small = { ...GROWTH, rewriteMaxBytes: 8192 };
    const both = [field("v", int(64)), field("w", TEXT)];
    const f = await refusal(prepared(both, small));
    expect(f.message).toContain(
      "column v is integer, wanted is bigint; column w is character varying(2), wanted is text",
    );
    expect(f.hint).toMatch(
      /^Run: ALTER TABLE "public"\."typed" ALTER COLUMN "v" TYPE bigint, ALTER COLUMN "w" TYPE text; that writes \d{6} bytes anew under a lock, rewrite_max_bytes allows 8192$/,
    );
    await prepared([field("v", int(32)), field("w", TEXT)], { ...GROWTH, rewriteMaxBytes: 0 });
    expect([await typeOf("v"), await typeOf("w")]).toEqual(["integer", "text"]);
    await run(/Run: ([^;]*)/.exec(f.hint ?? "")![1]!);
    await prepared(both, small);
  });

  test("a table that may not grow is left", async () => {
    await run("create table typed (v integer)");
    const f = await refusal(prepared([field("v", int(64))], null));
    expect(f.hint).toBe('Run: ALTER TABLE "public"."typed" ALTER COLUMN "v" TYPE bigint');
    expect(await typeOf()).toBe("integer");
  });

  test("what hangs on the column keeps it, and says so", async () => {
    await run("create table typed (v integer); create view shown as select v from typed");
    const f = await refusal(prepared([field("v", int(64))]));
    expect([f.code, f.hint]).toEqual([
      "postgres.table_mismatch",
      'Change it by hand: ALTER TABLE "public"."typed" ALTER COLUMN "v" TYPE bigint',
    ]);
    expect(f.message).toContain("used by a view");
    await run("drop view shown");
    await prepared([field("v", int(64))]);
  });

  test("partitions become wider with their table, and count into its size", async () => {
    await run(`create table typed (k integer, v integer) partition by list (k);
      create table typed_1 partition of typed for values in (1); insert into typed select 1, 2 from generate_series(1, 5000)`);
    const fields = [field("k", int(32)), field("v", int(64))];
    expect((await refusal(prepared(fields, { ...GROWTH, rewriteMaxBytes: 8192 }))).hint).toMatch(
      /writes \d{6} bytes/,
    );
    await prepared(fields);
    expect(await run("select pg_typeof(v), count(*) from typed_1 group by 1")).toBe("bigint|5000");
    await run("drop table typed");
  });

  test("a lock of others is waited for no longer than it may be, and nothing is changed", async () => {
    await run("create table typed (v integer)");
    const other = await PgConnection.open(settings(database), parts);
    await other.script("BEGIN; LOCK TABLE public.typed IN ROW EXCLUSIVE MODE");
    const f = await refusal(
      prepared([field("v", int(64)), field("more", TEXT)], { ...GROWTH, lockTimeoutMs: 100 }),
    );
    expect([f.code, f.retry]).toEqual(["postgres.conflict", true]);
    expect(await typeOf()).toBe("integer");
    await other.script("COMMIT");
    other.close();
    await prepared([field("v", int(64)), field("more", TEXT)]);
    expect([await typeOf(), await typeOf("more")]).toEqual(["bigint", "text"]);
  });

  test("many that widen at once, to other types, come to one that holds them all", async () => {
    for (let round = 0; round < 2; round++) {
      await run("drop table if exists typed; create table typed (v smallint, d numeric(6,2))");
      const wanted = [
        [int(32), decimal(8, 2)],
        [int(64), decimal(8, 4)],
        [int(16), decimal(12, 1)],
      ] as const;
      const all = Array.from({ length: 9 }, (_, i) => wanted[i % 3]!);
      await Promise.all(
        all.map(([v, d]) => prepared([field("v", v), field("d", d), field(`c${round}`, TEXT)])),
      );
      expect([await typeOf(), await typeOf("d"), await typeOf(`c${round}`)]).toEqual([
        "bigint",
        "numeric(15,4)",
        "text",
      ]);
    }
  });

  describe("sets that were made for the types before", () => {
    const FIELDS = [field("i", int(32)), field("v", int(32)), field("f", float(32)), field("d", DATE)];
    const rows = (n: number, from = 0) =>
      batch([
        [FIELDS[0]!, Array.from({ length: n }, (_, i) => from + i) as Plain[]],
        [FIELDS[1]!, Array.from({ length: n }, (_, i) => (i % 3 === 2 ? null : -i)) as Plain[]],
        [FIELDS[2]!, Array.from({ length: n }, () => 1.5) as Plain[]],
        [FIELDS[3]!, Array.from({ length: n }, () => 20_000) as Plain[]],
      ]);
    const WIDER = [FIELDS[0]!, field("v", int(64)), field("f", float(64)), field("d", timestamp(null))];
    const widen = () => prepared(WIDER, { ...GROWTH, dateToTimestamp: true });
    let told = 0;

    async function writer(upsert: { key: string[]; order: string[] } | null = null) {
      told = 0;
      const targets = await prepared(FIELDS, GROWTH, upsert?.key ?? []);
      const state = {
        ...{ pipeline: "p", sink: "raw", stateSchema: "twg" },
        ...{ maxRejects: 10, leavesHoles: false, rowKey: null },
      };
      const how = {
        lockTimeoutMs: 5000,
        intervalMs: 1000,
        upsert: upsert === null ? null : { ...upsert, across: null },
      };
      return new PostgresTableWriter(
        { ...place(), ...state, ...how, fields: FIELDS, targets },
        { ...parts, writer: "t", widened: () => void told++ },
      );
    }
    async function sealed(w: PostgresTableWriter, n: number) {
      const from = next;
      next += BigInt(n);
      return await w.seal([{ stream: KEY, from, next }], authorities);
    }
    const shown = () =>
      run("select count(*), sum(v), sum(f), min(d), pg_typeof(min(v)) from typed").then(lines);

    test("land as they are, and those to come are asked for", async () => {
      const w = await writer();
      w.open("a");
      w.write(rows(7), () => {});
      await widen();
      expect(await sealed(w, 7)).toMatchObject({ covered: true, rows: 7 });
      // Nobody made it anew: the next one knows.
      w.open("b");
      w.write(rows(2, 7), () => {});
      expect(await sealed(w, 2)).toMatchObject({ covered: true, rows: 2 });
      await w.abort();
      expect([told, await shown()]).toEqual([1, ["9|-15|13.5|2024-10-04 00:00:00|bigint"]]);
    });

    test("that are larger than what is sent at once, too", async () => {
      const w = await writer();
      w.open("large");
      for (let i = 0; i < 4; i++) w.write(rows(20_000, i * 20_000), () => {});
      await widen();
      await w.flush();
      await w.flush();
      expect(await sealed(w, 80_000)).toMatchObject({ covered: true, rows: 80_000 });
      await w.abort();
      expect([told, (await shown())[0]?.split("|")[0]]).toEqual([1, "80000"]);
    });

    test("as upserts replace what they should", async () => {
      const w = await writer({ key: ["i"], order: ["i"] });
      w.open("first");
      w.write(rows(3), () => {});
      await sealed(w, 3);
      await run("alter table typed alter v type bigint");
      w.open("second");
      w.write(rows(5), () => {});
      expect(await sealed(w, 5)).toMatchObject({ covered: true });
      await w.abort();
      expect([told, await run("select count(*), sum(v) from typed")]).toEqual([1, "5|-8"]);
    });

    test("while rows that are refused are looked for, too", async () => {
      const w = await writer();
      await run("alter table typed add check (i <> 3); alter table twg.reject rename to away");
      w.open("a");
      const offsets = new Int32Array(Array.from({ length: 7 }, (_, i) => [Number(next) + i, 0]).flat());
      w.write(rows(7), () => {}, { stream: KEY, offsets });
      const from = next;
      const seal = () => w.seal([{ stream: KEY, from, next: from + 7n }], authorities);
      next += 7n;
      expect((await refusal(seal())).code).toBe("postgres.missing");
      await widen();
      await run("alter table twg.away rename to reject");
      expect(await seal()).toMatchObject({ covered: true, rows: 6 });
      await w.abort();
      expect([told, await run("select count(*), sum(i), pg_typeof(min(v)) from typed")]).toEqual([
        1,
        "6|18|bigint",
      ]);
      expect(await run("select count(*) from twg.reject")).toBe("1");
    });

    test("a change that loses something is told, and nothing lands", async () => {
      const w = await writer();
      w.open("a");
      w.write(rows(3), () => {});
      await run("alter table typed alter v type smallint");
      const f = await refusal(sealed(w, 3));
      await w.abort();
      expect([f.code, told, await run("select count(*) from typed")]).toEqual([
        "postgres.table_mismatch",
        0,
        "0",
      ]);
    });
  });
});

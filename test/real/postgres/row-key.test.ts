/**
 * Goal: with a row key a row is never in the table twice: not after coverage was deleted, not where somebody else wrote it,
 * not where a part of a set is there; what is there is compared, and a row that differs stops its set. Method: sets on a
 * real server beside what others did to its tables; what is there afterwards is read by psql.
 */
import { describe, expect, test } from "bun:test";
import { PgConnection } from "../../../src/adapters/postgres/client.ts";
import { prepareFields } from "../../../src/adapters/postgres/prepare.ts";
import { rowKeyOf } from "../../../src/adapters/postgres/table/row-key.ts";
import { PostgresTableWriter } from "../../../src/adapters/postgres/table-writer.ts";
import { bytes, type Row, row } from "../../core/formats/parquet/rows.ts";
import { batch, field } from "./columns.ts";
import { failed } from "./failed.ts";
import { demandPostgres, lines, POSTGRES, parts, psql, settings, until } from "./server.ts";
import { KEY, Sink, type SinkOptions } from "./sink.ts";
import { SinkOfEachTest } from "./sink-of-each-test.ts";

demandPostgres("rows once by their key");

const rows = (from: number, next: number): Row[] =>
  Array.from({ length: next - from }, (_, i) =>
    row(from + i, {
      key: bytes(`k${from + i}`),
      value: bytes("v".repeat(50)),
      headers: [[bytes("h"), null]],
    }),
  );

describe.skipIf(POSTGRES === null)("rows once by their key", () => {
  const t = new SinkOfEachTest({ lockTimeoutMs: 300, rowKey: true });
  /** As somebody does who restores an older backup of the state alone. */
  async function uncover(): Promise<void> {
    await psql(t.database, "delete from twg.coverage");
    await t.again();
  }
  const landed = () =>
    psql(
      t.database,
      "select count(*), count(distinct _twg_source_offset), min(_twg_source_offset), max(_twg_source_offset) from raw",
    );
  const covered = async () =>
    lines(await psql(t.database, "select first, next from twg.coverage order by first"));
  const indexes = async () =>
    lines(await psql(t.database, "select indexdef from pg_indexes where schemaname = 'public' order by 1"));

  test("coverage that was deleted: the same rows are there once, in the same transaction as their coverage", async () => {
    expect(await indexes()).toEqual([
      "CREATE UNIQUE INDEX raw_row_key ON public.raw USING btree (_twg_record_id)",
    ]);
    expect(await t.sink.land(rows(0, 500), t.authorities)).not.toHaveProperty("there");
    await uncover();
    expect(await covered()).toEqual([]);
    expect(await t.sink.land(rows(0, 500), t.authorities)).toMatchObject({
      covered: true,
      rows: 500,
      there: 500,
    });
    expect([await landed(), await covered()]).toEqual(["500|500|0|499", ["0|500"]]);
    // What comes next is new, and a part of it is not: looked at, though the set before it had none.
    expect(await t.sink.land(rows(500, 600), t.authorities)).not.toHaveProperty("there");
    expect(await t.sink.land(rows(600, 700), t.authorities)).not.toHaveProperty("there");
    await uncover();
    expect(await t.sink.land(rows(650, 800), t.authorities)).toMatchObject({ rows: 150, there: 50 });
    expect([await landed(), await covered()]).toEqual(["800|800|0|799", ["650|800"]]);
  });

  test("a set that is sent while it fills, of which the end is there", async () => {
    const large = (from: number, next: number) =>
      rows(from, next).map((r) => ({ ...r, value: bytes("v".repeat(700)) }));
    await t.sink.land(large(4000, 4500), t.authorities);
    await uncover();
    const some = large(0, 5000);
    t.sink.begin(some);
    await t.sink.writer.flush();
    await t.sink.writer.flush();
    expect(await t.sink.seal(some, t.authorities)).toMatchObject({ rows: 5000, there: 500 });
    expect([await landed(), await covered()]).toEqual(["5000|5000|0|4999", ["0|5000"]]);
  });

  test("a row that differs stops its set: nothing of it lands, and ours does once the other is gone", async () => {
    await t.sink.land(rows(0, 10), t.authorities);
    await psql(
      t.database,
      `update raw set _twg_source_value = 'other', _twg_source_key = null, _twg_ingest_ts = now(), _twg_pipeline = 'another'
        where _twg_source_offset = 7;
       update raw set _twg_emit_ts = now() where _twg_source_offset = 3`,
    );
    await uncover();
    t.sink.begin(rows(0, 20));
    const e = await failed(t.sink.seal(rows(0, 20), t.authorities));
    expect([e.code, e.retry]).toEqual(["postgres.row_differs", false]);
    const id = await psql(t.database, "select _twg_record_id from raw where _twg_source_offset = 7");
    expect(e.message).toBe(
      `1 of 10 rows that are there already have the key of a record and other values; the first is ${id}, in _twg_source_key, _twg_source_value`,
    );
    expect([await landed(), await covered()]).toEqual(["10|10|0|9", []]);
    await psql(t.database, `delete from raw where _twg_record_id = '${id}'`);
    expect(await t.sink.seal(rows(0, 20), t.authorities)).toMatchObject({ rows: 20, there: 9 });
    expect([await landed(), await covered()]).toEqual(["20|20|0|19", ["0|20"]]);
  });

  test("rows that the server refuses beside rows that are there", async () => {
    await t.sink.land(rows(0, 30), t.authorities);
    await psql(t.database, "alter table raw add check (_twg_source_offset not in (35, 36)) not valid");
    await uncover();
    t.sink.begin(rows(0, 40));
    expect(await t.sink.seal(rows(0, 40), t.authorities)).toMatchObject({
      ...{ rows: 38, there: 30 },
      leftOut: { codes: [["row.constraint", 2]], uncovered: [], failure: null },
    });
    expect([await landed(), await covered()]).toEqual(["38|38|0|39", ["0|40"]]);
    // Another unique index is none of ours: a row is refused for it, and not taken for one that is there.
    await psql(t.database, "create unique index on raw (_twg_source_key)");
    const same = [row(40, { key: bytes("k1") }), row(41, { key: bytes("k41") })];
    t.sink.begin(same);
    expect(await t.sink.seal(same, t.authorities)).toMatchObject({
      rows: 1,
      leftOut: { codes: [["row.constraint", 1]] },
    });
  });

  test("a row that somebody else is about to commit is waited for, and compared", async () => {
    await t.sink.land(rows(0, 5), t.authorities);
    await uncover();
    await t.again({ lockTimeoutMs: 20_000 });
    await psql(
      t.database,
      "create table public.held as select * from raw where _twg_source_offset = 2; delete from raw where _twg_source_offset = 2",
    );
    const other = await PgConnection.open(settings(t.database), parts);
    await other.script("begin; insert into raw select * from public.held");
    t.sink.begin(rows(0, 5));
    const answer = t.sink.seal(rows(0, 5), t.authorities);
    await until(
      async () => (await psql(t.database, "select count(*) from pg_locks where not granted")) !== "0",
    );
    await other.script("commit");
    other.close();
    expect(await answer).toMatchObject({ rows: 5, there: 5 });
    expect([await landed(), await covered()]).toEqual(["5|5|0|4", ["0|5"]]);
  });

  test("a trigger that drops rows is none that has them", async () => {
    await t.sink.land(rows(0, 5), t.authorities);
    await uncover();
    await psql(
      t.database,
      `create function no() returns trigger language plpgsql as $$ begin
         if new._twg_source_offset = 8 then return null; end if; return new; end $$;
       create trigger t before insert on raw for each row execute function no()`,
    );
    t.sink.begin(rows(0, 10));
    const e = await failed(t.sink.seal(rows(0, 10), t.authorities));
    expect([e.code, e.message]).toEqual(["postgres.table_mismatch", "the table neither took nor has 1 rows"]);
    expect([await landed(), await covered()]).toEqual(["5|5|0|4", []]);
  });

  test("turned on later: the index is built, unless rows are twice, the table is large or nobody may create", async () => {
    await psql(t.database, "drop index raw_row_key");
    await t.again({ rowKey: false });
    await t.sink.land(rows(0, 5), t.authorities);
    expect(await indexes()).toEqual([]);
    const refused = async (over: Partial<SinkOptions>, create = true) => {
      await t.sink.close();
      t.sink = new Sink({ settings: settings(t.database), lockTimeoutMs: 300, rowKey: true, ...over });
      return failed(t.sink.prepare(create));
    };
    const large = await refused({ maxBytes: 100 });
    expect(large.code).toBe("postgres.table_mismatch");
    expect(large.message).toContain("has no unique index of just the column _twg_record_id");
    expect(large.hint).toContain('CREATE UNIQUE INDEX CONCURRENTLY ON "public"."raw" ("_twg_record_id")');
    expect((await refused({}, false)).hint).toContain("CONCURRENTLY");
    await psql(t.database, "insert into raw select * from raw where _twg_source_offset = 1");
    const twice = await refused({});
    expect(twice.code).toBe("postgres.table_mismatch");
    expect(twice.hint).toContain("HAVING count(*) > 1");
    expect(await indexes()).toEqual([]);
    await psql(
      t.database,
      "delete from raw where ctid = (select max(ctid) from raw where _twg_source_offset = 1)",
    );
    await t.again();
    expect(await indexes()).toHaveLength(1);
    // An index of somebody's own does.
    await psql(
      t.database,
      "drop index raw_row_key; create unique index own on raw (_twg_record_id) include (_twg_source_topic)",
    );
    await t.again();
    expect(await indexes()).toHaveLength(1);
    // One that is checked at the end of a transaction, or of some rows, does not.
    await psql(
      t.database,
      "drop index own; create unique index own on raw (_twg_record_id) where _twg_source_offset > 3",
    );
    await t.again();
    expect(await indexes()).toHaveLength(2);
  });

  test("without the option: the guide's view over a table that has rows twice", async () => {
    await psql(t.database, "drop index raw_row_key");
    await t.again({ rowKey: false });
    await t.sink.land(rows(0, 20), t.authorities);
    await psql(t.database, "delete from twg.coverage");
    await t.again({ rowKey: false });
    await t.sink.land(rows(10, 30), t.authorities);
    const guide = await Bun.file(`${import.meta.dir}/../../../docs/guide.md`).text();
    const [, statement] = /### Rows once, by their key(?:.*?```sql\n){2}(.*?)```/s.exec(guide) ?? [];
    await psql(t.database, statement!.replace("FROM orders", "FROM raw"));
    expect([await landed(), await psql(t.database, "select count(*) from orders_once")]).toEqual([
      "40|30|0|29",
      "30",
    ]);
  });

  test("a partitioned table whose rows lie by something else cannot have it, and says so", async () => {
    await t.sink.close();
    await psql(
      t.database,
      `create table public.parts (like raw) partition by hash (_twg_source_partition);
       create table public.parts_0 partition of public.parts for values with (modulus 1, remainder 0)`,
    );
    const table = { schema: "public", table: "parts" };
    t.sink = new Sink({ settings: settings(t.database), rowKey: true, table });
    const e = await failed(t.sink.prepare());
    expect(e.code).toBe("postgres.table_mismatch");
    expect(e.message).toContain("cannot be built");
    await psql(
      t.database,
      "drop table public.parts; create table public.parts (like raw) partition by hash (_twg_record_id)",
    );
    await psql(
      t.database,
      "create table public.parts_0 partition of public.parts for values with (modulus 1, remainder 0)",
    );
    await t.again({ table });
    await t.sink.land(rows(0, 5), t.authorities);
    await psql(t.database, "delete from twg.coverage");
    await t.again({ table });
    expect(await t.sink.land(rows(0, 9), t.authorities)).toMatchObject({ rows: 9, there: 5 });
    expect(await psql(t.database, "select count(*) from public.parts")).toBe("9");
  });

  test("decoded rows: every type is compared, also where it became wider meanwhile", async () => {
    const rowKey = rowKeyOf("_twg_");
    const table = { schema: "public", table: "typed" };
    const fields = [
      field("i", { id: "int", bits: 32, signed: true }),
      field("j", { id: "json" }),
      field("f", { id: "float", bits: 64 }),
      field("l", { id: "list", item: field("element", { id: "utf8" }) }),
      field("_twg_record_id", { id: "fixed", bytes: 16 }),
    ];
    const how = { lockTimeoutMs: 300, rewriteMaxBytes: 2 ** 30, dateToTimestamp: false };
    const shared = {
      ...{ settings: settings(t.database), table, rejects: null, stateSchema: "twg" },
      ...{ create: true, growth: how, unique: [], key: { pipeline: "p", sink: "raw" } },
      rowKey: { key: rowKey, create: true, maxBytes: 2 ** 30, lockTimeoutMs: 300 },
    };
    const targets = await prepareFields(shared, fields, parts);
    expect(targets.map((t) => t.type)).toEqual(["integer", "jsonb", "double precision", "text[]", "bytea"]);
    const land = async (next: number, over: (i: number) => number | null = () => null) => {
      const options = { pipeline: "p", sink: "raw", maxRejects: 10, leavesHoles: true, intervalMs: 1000 };
      const writer = new PostgresTableWriter(
        { ...shared, ...options, lockTimeoutMs: 300, fields, targets, upsert: null, rowKey },
        { ...parts, writer: "t" },
      );
      const all = Array.from({ length: next }, (_, i) => i);
      writer.open(`s${next}`);
      const ids = all.map((i) => new Uint8Array(16).fill(i));
      writer.write(
        batch([
          [fields[0]!, all.map((i) => over(i) ?? i)],
          [fields[1]!, all.map((i) => `{"b": ${i}, "a": null}`)],
          [fields[2]!, all.map((i) => (i === 0 ? Number.NaN : -i / 3))],
          [fields[3]!, all.map((i) => (i === 1 ? null : ["x", null, `${i}`]))],
          [fields[4]!, ids],
        ]),
        () => expect.unreachable(),
        { stream: KEY, offsets: new Int32Array(BigInt64Array.from(all, BigInt).buffer) },
      );
      try {
        return await writer.seal([{ stream: KEY, from: 0n, next: BigInt(next) }], t.authorities);
      } finally {
        await writer.abort();
      }
    };
    await land(4);
    await uncover();
    expect(await land(6)).toMatchObject({ rows: 6, there: 4 });
    await uncover();
    await psql(t.database, "alter table typed alter column i type bigint");
    expect(await land(7)).toMatchObject({ rows: 7, there: 6 });
    await uncover();
    expect((await failed(land(7, (i) => (i === 3 ? 99 : null)))).message).toContain("1 of 7 rows");
    expect(await psql(t.database, "select count(*), count(distinct _twg_record_id), max(i) from typed")).toBe(
      "7|7|6",
    );
    // Rows from before the column, which nobody could tell from ours.
    await psql(t.database, "drop index typed_row_key; insert into typed (i) values (1)");
    expect((await failed(prepareFields(shared, fields, parts))).message).toContain(
      "has rows without _twg_record_id",
    );
  });
});

/**
 * Goal: a row that the server refuses for good is found and durable among the rejects in the transaction that covers its
 * position, the others land; an outage never makes a reject; without rejects a position stays a hole. Method: real
 * constraints, values, triggers and outages on a real server; what is in the tables afterwards is read by psql.
 */
import { beforeEach, describe, expect, test } from "bun:test";
import { PostgresTableWriter } from "../../../src/adapters/postgres/table-writer.ts";
import type { RefusedCell } from "../../../src/core/ports/table-sink.ts";
import { int64At } from "../../../src/core/records/int64-at.ts";
import { bytes, type Row, row } from "../../core/formats/parquet/rows.ts";
import { batch, field } from "./columns.ts";
import { failed } from "./failed.ts";
import { demandPostgres, lines, POSTGRES, parts, psql, server, settings } from "./server.ts";
import { KEY, Sink } from "./sink.ts";
import { SinkOfEachTest } from "./sink-of-each-test.ts";

demandPostgres("rows that a server refuses");

const ROWS = 60;
const BAD = [17, 40];
const NAMES = "_twg_source_offset";

/** The rows of BAD have a value of their own, and no key. */
const rows = (from = 0, next = ROWS, bad = BAD): Row[] =>
  Array.from({ length: next - from }, (_, i) => {
    const at = from + i;
    return bad.includes(at)
      ? row(at, { key: null, value: bytes("bad"), headers: [[bytes("h"), null]] })
      : row(at, { key: bytes(`k${at}`), value: bytes("v".repeat(10)) });
  });

describe.skipIf(POSTGRES === null)("rows that a server refuses", () => {
  const t = new SinkOfEachTest({ lockTimeoutMs: 300 });

  const lands = (some: readonly Row[]) => t.sink.sealUntilLanded(some, t.authorities);
  const rejects = async () =>
    lines(
      await psql(
        t.database,
        "select (line::json)->>'offset', (line::json)->>'code', (line::json)->>'sqlstate' from twg.reject order by 1",
      ),
    );
  const landed = () => psql(t.database, `select count(*), count(distinct ${NAMES}) from raw`);
  const covered = async () =>
    lines(await psql(t.database, "select first, next from twg.coverage order by first"));

  const NOT_BAD = "_twg_source_value <> 'bad'::bytea";
  const refusing: readonly [string, string, string, string][] = [
    ["a check", `alter table raw add check (${NOT_BAD})`, "row.constraint", "23514"],
    ["NOT NULL", "alter table raw alter column _twg_source_key set not null", "row.constraint", "23502"],
    [
      "a unique index, against rows that are there",
      `create unique index on raw (_twg_source_offset);
       insert into raw (_twg_source_transport, _twg_source_offset, _twg_record_id, _twg_ingest_ts, _twg_emit_ts, _twg_pipeline)
       select 'x', o, gen_random_uuid(), now(), now(), 'x' from unnest(array[17, 40]) o`,
      "row.constraint",
      "23505",
    ],
    [
      "a unique constraint that waits for COMMIT",
      `alter table raw add constraint late unique (_twg_source_offset) deferrable initially deferred;
       insert into raw (_twg_source_transport, _twg_source_offset, _twg_record_id, _twg_ingest_ts, _twg_emit_ts, _twg_pipeline)
       select 'x', o, gen_random_uuid(), now(), now(), 'x' from unnest(array[17, 40]) o`,
      "row.constraint",
      "23505",
    ],
    [
      "a foreign key",
      `create table parent (o bigint primary key); insert into parent select generate_series(0, 59);
       delete from parent where o in (17, 40); alter table raw add foreign key (_twg_source_offset) references parent`,
      "row.constraint",
      "23503",
    ],
    [
      "an exclusion",
      `alter table raw add exclude using gist (int8range(_twg_source_offset, _twg_source_offset + 1) with &&);
       insert into raw (_twg_source_transport, _twg_source_offset, _twg_record_id, _twg_ingest_ts, _twg_emit_ts, _twg_pipeline)
       select 'x', o, gen_random_uuid(), now(), now(), 'x' from unnest(array[17, 40]) o`,
      "row.constraint",
      "23P01",
    ],
    [
      "a trigger that raises",
      `create function no() returns trigger language plpgsql as $$ begin
         if new._twg_source_value = 'bad'::bytea then raise exception 'no such value'; end if; return new; end $$;
       create trigger t before insert on raw for each row execute function no()`,
      "row.trigger",
      "P0001",
    ],
    [
      "a value that an expression of an index cannot take",
      `create index on raw ((1 / (case when ${NOT_BAD} then 1 else 0 end)))`,
      "row.value",
      "22012",
    ],
    [
      "a text that is none",
      "alter table raw add check (convert_from(_twg_source_value || case when _twg_source_value = 'bad'::bytea then '\\xff'::bytea else ''::bytea end, 'UTF8') is not null)",
      "row.value",
      "22021",
    ],
  ];
  test.each(refusing)("%s", async (_, statements, code, sqlstate) => {
    await psql(t.database, statements);
    const before = Number(await psql(t.database, "select count(*) from raw"));
    t.sink.begin(rows());
    const answer = await lands(rows());
    expect(answer).toMatchObject({
      covered: true,
      rows: ROWS - BAD.length,
      leftOut: { codes: [[code, BAD.length]], uncovered: [], failure: null },
    });
    expect(await rejects()).toEqual(BAD.map((o) => `${o}|${code}|${sqlstate}`));
    expect(await psql(t.database, "select count(*) from raw")).toBe(String(before + ROWS - BAD.length));
    expect(await covered()).toEqual([`0|${ROWS}`]);
    expect(await psql(t.database, "select rows from twg.stream")).toBe(String(ROWS - BAD.length));
  });

  test("a row that is larger than an index takes, with its bytes in the rejects", async () => {
    await psql(t.database, "create index on raw (_twg_source_value)");
    const noise = crypto.getRandomValues(new Uint8Array(9_000));
    const some = [row(0), row(1, { value: noise, key: bytes("k") }), row(2)];
    t.sink.begin(some);
    await lands(some);
    expect(await rejects()).toEqual(["1|row.value|54000"]);
    const line = JSON.parse(await psql(t.database, "select line from twg.reject"));
    expect(line).toMatchObject({ topic: "orders", partition: 3, key_base64: "aw==", headers_base64: [] });
    expect(line.timestamp).toBe("1700000000000");
    expect(line.value_base64).toBe(noise.toBase64());
  });

  test("headers, null keys and timestamps of a refused record stay", async () => {
    await psql(t.database, `alter table raw add check (${NOT_BAD})`);
    const bad = { value: bytes("bad"), key: null };
    const some = [
      row(0),
      row(1, {
        ...bad,
        timestamp: 2n ** 63n - 1n,
        headers: [
          [bytes("a"), bytes("1")],
          [bytes(""), null],
        ],
      }),
      row(2, { ...bad, timestamp: -1n, timestampType: 0 }),
      row(3, { ...bad, timestamp: -62_135_596_800_001n }),
    ];
    t.sink.begin(some);
    await lands(some);
    const kept = lines(await psql(t.database, "select line from twg.reject order by line::json->>'offset'"));
    expect(kept.map((l) => JSON.parse(l)).map((l) => [l.key_base64, l.timestamp, l.headers_base64])).toEqual([
      [
        null,
        String(2n ** 63n - 1n),
        [
          ["YQ==", "MQ=="],
          ["", null],
        ],
      ],
      [null, "-1", []],
      [null, "-62135596800001", []],
    ]);
  });

  test("of a set that is sent while it fills", async () => {
    await psql(t.database, `alter table raw add check (${NOT_BAD})`);
    const bad = [3, 2500, 2501, 4999];
    const some = rows(0, 5000, bad).map((r) =>
      bad.includes(Number(r.offset)) ? r : { ...r, value: bytes("v".repeat(700)) },
    );
    t.sink.begin(some);
    await t.sink.writer.flush();
    await t.sink.writer.flush();
    await lands(some);
    expect(await rejects()).toEqual(bad.map((o) => `${o}|row.constraint|23514`).sort());
    expect([await landed(), await covered()]).toEqual(["4996|4996", ["0|5000"]]);
  });

  test("of an upsert", async () => {
    await psql(t.database, "drop table raw");
    await t.again({ upsert: true });
    await psql(t.database, `alter table raw add check (${NOT_BAD})`);
    const some: Row[] = rows().map((r) => ({ ...r, key: r.key ?? bytes(`k${r.offset - 1n}`) }));
    some[5] = row(5, { key: null });
    t.sink.begin(some);
    expect(await lands(some)).toMatchObject({
      rows: ROWS - 3,
      leftOut: {
        codes: [
          ["key.missing", 1],
          ["row.constraint", 2],
        ],
      },
    });
    expect(await rejects()).toEqual(["17|row.constraint|23514", "40|row.constraint|23514", "5|key.missing|"]);
    // Their keys' earlier records are there.
    expect(
      await psql(
        t.database,
        `select count(*) from raw where convert_from(_twg_source_key, 'UTF8') in ('k16', 'k39')`,
      ),
    ).toBe("2");
  });

  test("of decoded rows: where the record stood, and why", async () => {
    const table = { schema: "public", table: "typed" };
    await psql(t.database, "create table public.typed (i int check (i <> 1), v text not null)");
    const fields = [field("i", { id: "int", bits: 32, signed: true }), field("v", { id: "utf8" })];
    const targets = ["integer", "text"].map((type) => ({ type, notNull: false, maxBytes: null }));
    const writer = new PostgresTableWriter(
      {
        ...{
          table,
          fields,
          targets,
          settings: settings(t.database),
          stateSchema: "twg",
          pipeline: "p",
          sink: "raw",
        },
        ...{
          rejects: null,
          maxRejects: 10,
          leavesHoles: true,
          rowKey: null,
          lockTimeoutMs: 300,
          intervalMs: 1000,
          upsert: null,
        },
      },
      { ...parts, writer: "t" },
    );
    writer.open("typed");
    const offsets = new Int32Array(BigInt64Array.of(10n, 11n, 15n, 17n).buffer);
    const rows = batch([
      [fields[0]!, [0, 1, 2, 3]],
      [fields[1]!, ["a", "b", "c\0", null]],
    ]);
    const refuse = ({ row: at, code }: RefusedCell) =>
      writer.reject(bytes(JSON.stringify({ offset: "15", code })), 1, {
        ...{ code, stream: KEY, offset: int64At(offsets, at) },
      });
    writer.write(rows, refuse, { stream: KEY, offsets });
    expect(await writer.seal([{ stream: KEY, from: 10n, next: 20n }], t.authorities)).toMatchObject({
      rows: 1,
      leftOut: {
        codes: [
          ["value.nul", 1],
          ["row.constraint", 2],
        ],
        uncovered: [],
      },
    });
    expect(await rejects()).toEqual(["11|row.constraint|23514", "15|value.nul|", "17|row.constraint|23502"]);
    expect(
      JSON.parse(await psql(t.database, "select line from twg.reject where line like '%23514%'")),
    ).toEqual({
      ...{
        topic: "orders",
        partition: "3",
        offset: "11",
        code: "row.constraint",
        constraint: "typed_i_check",
      },
      ...{
        reason: 'new row for relation "typed" violates check constraint "typed_i_check"',
        sqlstate: "23514",
      },
    });
    expect(await psql(t.database, "select i, v from public.typed")).toBe("0|a");
    await writer.abort();
  });

  test("rows that refer to rows behind them are no victims of another's fault", async () => {
    await psql(
      t.database,
      `alter table raw add unique (_twg_source_offset);
       alter table raw add column refers bigint generated always as (case when _twg_source_offset = 1 then 50 end) stored;
       alter table raw add foreign key (refers) references raw (_twg_source_offset);
       alter table raw add check (${NOT_BAD})`,
    );
    t.sink.begin(rows());
    await lands(rows());
    expect(await rejects()).toEqual(BAD.map((o) => `${o}|row.constraint|23514`));
  });

  test("where a whole set is refused, or more than is allowed, the table is at fault: nothing moves", async () => {
    await psql(t.database, "alter table raw add check (_twg_source_offset < 0)");
    t.sink.begin(rows());
    const all = await failed(t.sink.seal(rows(), t.authorities));
    expect([all.code, all.retry]).toEqual(["postgres.constraint", false]);
    expect(all.message).toContain("all 60 rows of a set are refused");
    await t.again({ maxRejects: 3 });
    await psql(t.database, "alter table raw drop constraint raw__twg_source_offset_check");
    await psql(t.database, "alter table raw add check (_twg_source_offset % 10 <> 1)");
    t.sink.begin(rows());
    const many = await failed(t.sink.seal(rows(), t.authorities));
    expect(many.message).toContain("over 3 of 60 rows of a set are refused");
    expect([await landed(), await covered(), await rejects()]).toEqual(["0|0", [], []]);
    // A column whose type was changed is said of the table at once, of however few rows.
    await t.again({});
    await psql(t.database, "alter table raw alter column _twg_source_partition type bigint");
    t.sink.begin(rows(0, 2));
    expect((await failed(t.sink.seal(rows(0, 2), t.authorities))).code).toBe("postgres.table_mismatch");
    expect(await rejects()).toEqual([]);
  });

  test("numbers that ran out are no fault of rows, however few came", async () => {
    await psql(
      t.database,
      "alter table raw add column id smallint generated always as identity (maxvalue 3)",
    );
    t.sink.begin(rows(0, 6, []));
    const f = await failed(t.sink.seal(rows(0, 6, []), t.authorities));
    expect([f.code, await landed(), await covered(), await rejects()]).toEqual([
      "postgres.refused",
      "0|0",
      [],
      [],
    ]);
    await psql(t.database, "alter table raw alter column id set maxvalue 1000");
    await lands(rows(0, 6, []));
    expect([await landed(), await covered(), await rejects()]).toEqual(["6|6", ["0|6"], []]);
  });

  describe("an outage while rows are looked for makes no reject", () => {
    /** Each ends with the statements that mend it. */
    const outages: readonly [string, string, string, string][] = [
      [
        "a right that is taken away",
        "revoke insert on raw from NAME",
        "postgres.denied",
        "grant insert on raw to NAME",
      ],
      [
        "a table that is renamed",
        "alter table raw rename to away",
        "postgres.missing",
        "alter table away rename to raw",
      ],
      [
        "a database that is read only",
        "alter database NAME set default_transaction_read_only = on; select pg_terminate_backend(pid) from pg_stat_activity where datname = 'NAME' and pid <> pg_backend_pid()",
        "postgres.read_only",
        "alter database NAME reset default_transaction_read_only",
      ],
      [
        "a full disk, as the server says it",
        `create function full_() returns trigger language plpgsql as $$ begin raise exception 'no space left' using errcode = '53100'; end $$;
         create trigger full_ before insert on raw for each row when (new._twg_source_offset = 30) execute function full_()`,
        "postgres.full",
        "drop trigger full_ on raw",
      ],
      [
        "a serialization failure",
        `create function late_() returns trigger language plpgsql as $$ begin raise exception 'later' using errcode = '40001'; end $$;
         create trigger late_ before insert on raw for each row when (new._twg_source_offset = 30) execute function late_()`,
        "postgres.conflict",
        "drop trigger late_ on raw",
      ],
    ];
    test.each(outages)("%s", async (_, out, code, mend) => {
      const fill = (s: string) =>
        s
          .replaceAll("on raw from NAME", "on raw from w_r")
          .replaceAll("to NAME", "to w_r")
          .replaceAll("NAME", t.database);
      await psql(t.database, `alter table raw add check (${NOT_BAD})`);
      if (code === "postgres.denied") {
        await psql(
          t.database,
          `do $$ begin if not exists (select from pg_roles where rolname = 'w_r') then create role w_r login password 'w_r'; end if; end $$;
           grant create on database ${t.database} to w_r; grant usage on schema public to w_r; grant all on raw to w_r; drop schema twg cascade`,
        );
        await t.sink.close();
        t.sink = new Sink({ settings: settings(t.database, { user: "w_r", password: "w_r" }) });
        t.authorities = await t.sink.claimed();
      }
      await psql(t.database, fill(out));
      t.sink.begin(rows());
      const f = await failed(t.sink.seal(rows(), t.authorities));
      expect([f.code, f.retry || f.kind === "environment"]).toEqual([code as never, true]);
      expect(await covered()).toEqual([]);
      await psql(mend.startsWith("alter database") ? "postgres" : t.database, fill(mend));
      await lands(rows());
      expect(await rejects()).toEqual(BAD.map((o) => `${o}|row.constraint|23514`));
      expect([await landed(), await covered()]).toEqual(["58|58", ["0|60"]]);
    });

    test("sessions that are killed all the time", async () => {
      await psql(t.database, `alter table raw add check (${NOT_BAD})`);
      const kill = `select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = '${t.database}' and pid <> pg_backend_pid() and query like '%twg_rows%'`;
      let stop = false;
      const killer = (async () => {
        let killed = 0;
        while (!stop && killed < 20) killed += Number(await psql("postgres", kill));
        return killed;
      })();
      for (let i = 0; i < 5; i++) {
        const some = rows(i * ROWS, (i + 1) * ROWS, [i * ROWS + 7]);
        t.sink.begin(some);
        await lands(some);
      }
      stop = true;
      await killer;
      expect(await rejects()).toEqual([7, 67, 127, 187, 247].map((o) => `${o}|row.constraint|23514`).sort());
      expect([await landed(), await covered()]).toEqual(["295|295", ["0|300"]]);
    });

    test("a lock on the table", async () => {
      await psql(t.database, `alter table raw add check (${NOT_BAD})`);
      const { host, port, user, password } = server();
      const { database } = t;
      const holder = new Bun.SQL({ adapter: "postgres", host, port, user, password, database, max: 1 });
      const session = await holder.reserve();
      await session.unsafe("begin; lock table raw in access exclusive mode");
      t.sink.begin(rows());
      expect((await failed(t.sink.seal(rows(), t.authorities))).code).toBe("postgres.conflict");
      await session.unsafe("rollback");
      session.release();
      await holder.close();
      await lands(rows());
      expect(await rejects()).toEqual(BAD.map((o) => `${o}|row.constraint|23514`));
    });
  });

  describe("rejects that are away", () => {
    beforeEach(async () => {
      await psql(t.database, `alter table raw add check (${NOT_BAD}); alter table twg.reject rename to away`);
    });

    test("a primary sink waits with everything", async () => {
      t.sink.begin(rows());
      expect((await failed(t.sink.seal(rows(), t.authorities))).code).toBe("postgres.missing");
      expect([await landed(), await covered()]).toEqual(["0|0", []]);
      await psql(t.database, "alter table twg.away rename to reject");
      await lands(rows());
      expect([await landed(), await covered(), (await rejects()).length]).toEqual(["58|58", ["0|60"], 2]);
    });

    test("another one lands the rest, and each position stays a hole of one until they are back", async () => {
      await t.again({ leavesHoles: true });
      await psql(t.database, "drop table if exists twg.reject");
      t.sink.begin(rows());
      const answer = await t.sink.seal(rows(), t.authorities);
      const hole = (o: number) => ({ from: BigInt(o), next: BigInt(o + 1) });
      expect(answer).toMatchObject({
        covered: true,
        rows: 58,
        leftOut: { uncovered: BAD.map(hole), failure: { code: "postgres.missing" } },
      });
      expect([await landed(), await covered()]).toEqual(["58|58", ["0|17", "18|40", "41|60"]]);
      await psql(t.database, "alter table twg.away rename to reject");
      for (const o of BAD) {
        t.sink.begin(rows(o, o + 1));
        await t.sink.seal(rows(o, o + 1), t.authorities);
      }
      expect(await rejects()).toEqual(BAD.map((o) => `${o}|row.constraint|23514`));
      expect([await landed(), await covered()]).toEqual(["58|58", ["0|60"]]);
    });
  });
});

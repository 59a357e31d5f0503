/**
 * Goal: of each key the latest record stands in the table, whatever the order in which records land, and what cannot be
 * upserted is in the rejects with all its bytes. Method: sets of real partitions land in orders in which recovery,
 * redelivery and new partitions bring them; the expected row is derived from positions in the test, psql shows the table.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { asFailure } from "../../../src/core/failure/failure.ts";
import type { Authority } from "../../../src/core/ports/coverage.ts";
import { type StreamId, streamKey } from "../../../src/core/records/stream.ts";
import { bytes, type Row, row, STREAM } from "../../core/formats/parquet/rows.ts";
import { SeededChance } from "../../sim/chance.ts";
import { demandPostgres, freshDatabase, lines, POSTGRES, psql, settings } from "./server.ts";
import { Sink, type SinkOptions } from "./sink.ts";

demandPostgres("upserts of records");

describe.skipIf(POSTGRES === null)("an upsert", () => {
  let database: string;
  let sink: Sink;
  const authorities = new Map<string, readonly Authority[]>();

  async function begin(over: Partial<SinkOptions> = {}): Promise<void> {
    sink = new Sink({ settings: settings(database), upsert: true, ...over });
    await sink.prepare();
    await sink.coverage.open();
    authorities.clear();
  }
  beforeEach(async () => {
    database = await freshDatabase();
    await begin();
  });
  afterEach(() => sink.close());

  const partition = (n: number, incarnation = 0): StreamId => ({ ...STREAM, partition: n, incarnation });
  async function land(rows: readonly Row[], stream: StreamId = partition(0)) {
    const key = streamKey(stream);
    if (!authorities.has(key)) authorities.set(key, await sink.claim(stream));
    return sink.land(rows, authorities.get(key)!, stream);
  }
  /** Records of one key each: offset, key, value (null: a tombstone), timestamp. */
  const record = (offset: number, key: string, value: string | null, ts = offset): Row =>
    row(offset, {
      key: bytes(key),
      value: value === null ? null : bytes(value),
      timestamp: BigInt(ts),
      timestampType: 1,
    });
  const shown = () =>
    psql(
      database,
      `select convert_from(_twg_source_key, 'UTF8') k, coalesce(convert_from(_twg_source_value, 'UTF8'), '<gone>'),
              _twg_source_partition, _twg_source_offset from raw order by k`,
    ).then(lines);
  /** What a recovery finds: a range that is not covered. */
  const uncover = () => psql(database, "delete from twg.coverage");

  test("several versions of a key in one set: the last one stands", async () => {
    await land([record(0, "a", "a0"), record(1, "b", "b1"), record(2, "a", "a2"), record(3, "a", "a3")]);
    expect(await shown()).toEqual(["a|a3|0|3", "b|b1|0|1"]);
  });

  test("older records that land after newer ones change nothing, tombstones included", async () => {
    await land([record(10, "a", "a10"), record(11, "b", null), record(12, "c", "c12")]);
    await land([
      record(0, "a", "a0", 99),
      record(1, "b", "b1", 99),
      record(2, "c", null, 99),
      record(3, "d", "d3"),
    ]);
    expect(await shown()).toEqual(["a|a10|0|10", "b|<gone>|0|11", "c|c12|0|12", "d|d3|0|3"]);
    await land([record(13, "b", "back"), record(14, "a", null)]);
    expect(await shown()).toEqual(["a|<gone>|0|14", "b|back|0|13", "c|c12|0|12", "d|d3|0|3"]);
  });

  test("a redelivered set is refused as covered, and one that coverage forgot changes nothing", async () => {
    const some = [record(0, "a", "a0"), record(1, "a", "a1")];
    await land(some);
    await land([record(2, "a", "a2")]);
    expect(await land(some)).toMatchObject({ refused: "overlap" });
    await uncover();
    expect(await land(some)).toMatchObject({ covered: true });
    expect(await shown()).toEqual(["a|a2|0|2"]);
  });

  test("between partitions the later timestamp stands, then the higher partition, in whatever order they land", async () => {
    // The key moves from partition 0 to 5, where offsets begin anew.
    const old = [record(900, "a", "old", 1000), record(901, "b", "old", 1001)];
    const moved = [record(0, "a", "moved", 2000), record(1, "b", "same time", 1001)];
    const want = ["a|moved|5|0", "b|same time|5|1"];
    await land(old, partition(0));
    await land(moved, partition(5));
    expect(await shown()).toEqual(want);
    await psql(database, "truncate raw");
    await uncover();
    await land(moved, partition(5));
    await land(old, partition(0));
    expect(await shown()).toEqual(want);
  });

  test("records of a topic that was made anew come after all before, though its offsets begin anew", async () => {
    await land([record(500, "a", "before", 9000)], partition(0, 0));
    await land([record(3, "a", "anew", 10)], partition(2, 1));
    expect(await shown()).toEqual(["a|anew|2|3"]);
    await uncover();
    await land([record(501, "a", "late", 9999)], partition(0, 0));
    expect(await shown()).toEqual(["a|anew|2|3"]);
  });

  test("any order of landing gives the same table", async () => {
    const chance = new SeededChance(7);
    const sets = Array.from({ length: 12 }, (_, s) =>
      Array.from({ length: 40 }, (_, i) => {
        const offset = s * 40 + i;
        return record(offset, `k${chance.int(25)}`, chance.int(5) === 0 ? null : `v${offset}`);
      }),
    );
    const results = new Set<string>();
    for (let round = 0; round < 4; round++) {
      await psql(database, "truncate raw");
      await uncover();
      const order = sets.map((set) => ({ set, by: chance.next() })).sort((x, y) => x.by - y.by);
      for (const { set } of order) await land(set);
      results.add((await shown()).join("\n"));
    }
    const latest = new Map(sets.flat().map((r) => [Buffer.from(r.key!).toString(), r]));
    expect([...results]).toHaveLength(1);
    expect((await shown()).map((l) => Number(l.split("|")[3]))).toEqual(
      [...latest].sort(([x], [y]) => (x < y ? -1 : 1)).map(([, r]) => Number(r.offset)),
    );
  });

  test("records without a key, or with one that no index takes, go to the rejects with all bytes", async () => {
    const long = bytes("k".repeat(2401));
    const headers: Row["headers"] = [[bytes("h"), bytes("x")]];
    await land([
      record(0, "a", "a0"),
      row(1, { key: null, value: bytes("no key"), headers }),
      row(2, { key: long, value: null }),
      record(3, "", "an empty key is one"),
      row(4, { key: bytes("k".repeat(2400)), value: bytes("fits") }),
    ]);
    expect(await psql(database, "select count(*) from raw")).toBe("3");
    const found = lines(await psql(database, "select line from twg.reject")).map((l) => JSON.parse(l));
    expect(found.sort((a, b) => a.offset - b.offset)).toMatchObject([
      {
        topic: STREAM.topic,
        partition: 0,
        offset: "1",
        code: "key.missing",
        key_base64: null,
        value_base64: btoa("no key"),
        headers_base64: [[btoa("h"), btoa("x")]],
      },
      { offset: "2", code: "key.too_long", key_base64: btoa("k".repeat(2401)), value_base64: null },
    ]);
    // They are accounted for: nothing of them is fetched again.
    expect(await psql(database, "select first, next from twg.coverage")).toBe("0|5");
  });

  test("two lanes that upsert the same keys at the same time both land", async () => {
    const other = new Sink({ settings: settings(database), upsert: true, shared: true, life: "alive" });
    await sink.close();
    await begin({ shared: true, life: "alive" });
    await other.coverage.open();
    const rows = (from: number, value: string) =>
      Array.from({ length: 2000 }, (_, i) => record(from + i, `k${(i * 7919) % 2000}`, value, from));
    const theirs = await other.claim(partition(1));
    const [a, b] = await Promise.all([
      land(rows(0, "a"), partition(0)),
      other.land(rows(5000, "b"), theirs, partition(1)),
    ]);
    expect([a, b]).toMatchObject([{ covered: true }, { covered: true }]);
    expect(
      await psql(database, "select convert_from(_twg_source_value, 'UTF8'), count(*) from raw group by 1"),
    ).toBe("b|2000");
    await other.close();
  });

  test("sessions that are killed while rows are copied, merged and committed cost nothing", async () => {
    const kill = `select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = '${database}' and pid <> pg_backend_pid()`;
    authorities.set(streamKey(partition(0)), await sink.claim(partition(0)));
    let stop = false;
    const killer = (async () => {
      let killed = 0;
      while (!stop) killed += Number(await psql("postgres", kill));
      return killed;
    })();
    for (let s = 0; s < 6; s++) {
      const some = Array.from({ length: 1000 }, (_, i) => record(s * 1000 + i, `k${i % 300}`, `v${s}`));
      const [first] = some;
      sink.begin(
        [row(Number(first!.offset), { key: null, value: bytes("no key") }), ...some.slice(1)],
        partition(0),
      );
      for (;;) {
        try {
          await sink.seal(some, authorities.get(streamKey(partition(0)))!, partition(0));
          break;
        } catch (e) {
          if (!asFailure(e).retry) throw e;
        }
      }
    }
    stop = true;
    expect(await killer).toBeGreaterThan(0);
    const state =
      "select count(*), min(_twg_source_offset), max(convert_from(_twg_source_value, 'UTF8')) from raw";
    expect(await psql(database, state)).toBe("300|5700|v5");
    expect(await psql(database, "select count(*), count(distinct line) from twg.reject")).toBe("6|6");
    expect(await psql(database, "select first, next from twg.coverage")).toBe("0|6000");
  });

  test("a partitioned table whose unique index holds the key", async () => {
    await psql(
      database,
      `create table public.part (like raw including all) partition by hash (_twg_source_key);
       create table public.part_0 partition of public.part for values with (modulus 2, remainder 0);
       create table public.part_1 partition of public.part for values with (modulus 2, remainder 1)`,
    );
    await sink.close();
    await begin({ table: { schema: "public", table: "part" } });
    await land([record(5, "a", "a5"), record(6, "b", "b6"), record(7, "c", "c7")]);
    await land([record(0, "a", "a0")]);
    await land([record(8, "b", "b8")]);
    const values = "select convert_from(_twg_source_value, 'UTF8') from public.part order by 1";
    expect(lines(await psql(database, values))).toEqual(["a5", "b8", "c7"]);
    await land(Array.from({ length: 20 }, (_, i) => record(20 + i, `k${i}`, "z")));
    // Both partitions have some.
    expect(await psql(database, "select count(distinct tableoid) from public.part")).toBe("2");
  });

  test("a table without the index, or without the rights, is refused at the start", async () => {
    await psql(database, "alter table raw drop constraint raw_pkey");
    const refusal = (s: Sink) => s.prepare(false).catch((e: unknown) => e);
    expect(await refusal(sink)).toMatchObject({
      code: "postgres.table_mismatch",
      message: expect.stringContaining(
        "no unique index of just the columns _twg_source_topic, _twg_source_key",
      ),
    });
    // Neither one of more columns nor one of a part of the rows will do.
    await psql(
      database,
      `create unique index on raw (_twg_source_topic, _twg_source_key, _twg_source_partition);
       create unique index on raw (_twg_source_topic, _twg_source_key) where _twg_source_partition = 0`,
    );
    expect(await refusal(sink)).toMatchObject({ code: "postgres.table_mismatch" });
    await psql(
      database,
      `create unique index on raw (_twg_source_key, _twg_source_topic);
       drop role if exists upsert_weak; create role upsert_weak login password 'weak';
       grant insert on raw to upsert_weak; revoke temporary on database ${database} from public`,
    );
    await sink.prepare(false);
    const weak = new Sink({
      settings: settings(database, { user: "upsert_weak", password: "weak" }),
      upsert: true,
    });
    const denied = await refusal(weak);
    expect(denied).toMatchObject({
      code: "postgres.denied",
      message: expect.stringContaining("SELECT, UPDATE, TEMPORARY"),
    });
    await psql(database, "drop owned by upsert_weak; drop role upsert_weak");
  });
});

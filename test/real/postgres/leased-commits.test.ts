/**
 * Goal: commits under leases of different holders, and live ingest's, go on beside each other, and nothing is lost, doubled
 * or claimed before it is there; what could meet waits. Method: a transaction is held within its COMMIT, by a
 * deferred trigger of the table that waits for a lock of the test, while others commit, grant, claim and settle.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { PgConnection } from "../../../src/adapters/postgres/client.ts";
import { readState } from "../../../src/adapters/postgres/state/streams.ts";
import { stateNames } from "../../../src/adapters/postgres/state/tables.ts";
import { recoveryInstance } from "../../../src/core/coverage/windows.ts";
import type { Authority, Range } from "../../../src/core/ports/coverage.ts";
import { type StreamId, type StreamKey, streamKey } from "../../../src/core/records/stream.ts";
import { batchOf, type Row, row, STREAM } from "../../core/formats/parquet/rows.ts";
import { TroubledProxy } from "./proxy.ts";
import {
  demandPostgres,
  freshDatabase,
  lines,
  POSTGRES,
  parts,
  psql,
  server,
  settings,
  until,
} from "./server.ts";
import { KEY, Sink, type SinkOptions } from "./sink.ts";

demandPostgres("commits under leases");

const rows = (from: number, next: number): Row[] =>
  Array.from({ length: next - from }, (_, i) => row(from + i));
const numbers = (ranges: readonly Range[] = []) => ranges.map((r) => [Number(r.from), Number(r.next)]);

describe.skipIf(POSTGRES === null)("commits under leases in PostgreSQL", () => {
  let database: string;
  const cleanups: (() => Promise<unknown>)[] = [];

  beforeEach(async () => {
    database = await freshDatabase();
    await made({}).prepare();
    await psql(
      database,
      `create function held() returns trigger language plpgsql as
         $$ begin perform pg_advisory_xact_lock(new._twg_source_offset); return null; end $$;
       create constraint trigger held after insert on raw deferrable initially deferred
         for each row execute function held()`,
    );
  });
  afterEach(async () => {
    for (const c of cleanups.splice(0).reverse()) await c();
  });

  function made(over: Partial<SinkOptions>): Sink {
    const sink = new Sink({ settings: settings(database), life: "alive", lockTimeoutMs: 20_000, ...over });
    cleanups.push(() => sink.close());
    return sink;
  }

  /** A recovery process with a window of the stream. */
  async function recovering(name: string, from: number, next: number, over: Partial<SinkOptions> = {}) {
    const sink = made({ instance: recoveryInstance(name), ...over });
    await sink.coverage.open();
    return { sink, authorities: await leased(sink, from, next) };
  }

  async function leased(sink: Sink, from: number, next: number): Promise<readonly Authority[]> {
    const wanted = [{ stream: KEY, from: BigInt(from), next: BigInt(next) }];
    return (await sink.coverage.leaseWindows(wanted)).map((w) => w.authority);
  }

  /** A process that reads the source; below the head it has let go. */
  async function ingesting(head: number) {
    const sink = made({ instance: "live" });
    const authorities = await sink.claimed();
    await sink.coverage.heartbeat(new Map([[KEY, BigInt(head)]]));
    return { sink, authorities };
  }

  /** Who commits a row of this offset stays within its COMMIT until the function is called. */
  async function held(offset: number): Promise<() => Promise<void>> {
    const connection = await PgConnection.open(settings(database), parts);
    cleanups.push(async () => connection.close());
    await connection.query(`SELECT pg_advisory_lock(${offset})`);
    return async () => void (await connection.query(`SELECT pg_advisory_unlock(${offset})`));
  }

  const waiters = async (query: string) =>
    Number(
      await psql(
        database,
        `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query ${query}`,
      ),
    );
  const inCommit = () => until(async () => (await waiters("= 'COMMIT'")) === 1);
  const waiting = () => until(async () => (await waiters("<> 'COMMIT'")) === 1);
  const there = () => psql(database, "select count(*), count(distinct _twg_source_offset) from raw");
  const ranges = async () =>
    lines(await psql(database, "select first, next from twg.coverage order by first"));
  const LANDED = { covered: true };

  test("two holders commit spans that touch at the same time; the ranges are joined by the next grant", async () => {
    const a = await recovering("a", 0, 10);
    const b = await recovering("b", 10, 20);
    const release = await held(5);
    const landing = a.sink.land(rows(0, 10), a.authorities);
    await inCommit();
    expect(await b.sink.land(rows(10, 20), b.authorities)).toMatchObject(LANDED);
    // What is not committed is not covered.
    expect(numbers(await b.sink.coverage.covered(KEY))).toEqual([[10, 20]]);
    await release();
    expect(await landing).toMatchObject(LANDED);
    expect([await there(), numbers(await b.sink.coverage.covered(KEY))]).toEqual(["20|20", [[0, 20]]]);
    expect(await ranges()).toEqual(["0|10", "10|20"]);
    // What lies in windows is left as it is.
    await b.sink.coverage.releaseWindows();
    const c = await recovering("c", 0, 30);
    expect(await ranges()).toEqual(["0|10", "10|20"]);
    await a.sink.coverage.releaseWindows();
    c.authorities = await leased(c.sink, 0, 30);
    expect(await ranges()).toEqual(["0|20"]);
    expect(await c.sink.land(rows(20, 30), c.authorities)).toMatchObject(LANDED);
    const live = made({ instance: "live" });
    await live.coverage.open();
    const [claim] = await live.coverage.claim([KEY], null);
    expect([numbers(claim?.covered), await ranges()]).toEqual([[[0, 30]], ["0|30"]]);
  });

  test("within a window ranges are joined as they come, in whatever order", async () => {
    const { sink, authorities } = await recovering("a", 0, 10);
    for (const [from, next] of [
      [8, 10],
      [0, 5],
      [5, 8],
    ] as const)
      expect(await sink.land(rows(from, next), authorities)).toMatchObject(LANDED);
    expect(await ranges()).toEqual(["0|10"]);
  });

  describe.each(["recovery", "live ingest"])(
    "live ingest commits beside recovery, while %s is held",
    (who) => {
      /** Both, the one within its COMMIT while the other commits. */
      async function both(recovery: Landing, ingest: Landing): Promise<void> {
        const [first, second] = who === "recovery" ? [recovery, ingest] : [ingest, recovery];
        const release = await held(first.from);
        const landing = land(first);
        await inCommit();
        expect(await land(second)).toMatchObject(LANDED);
        await release();
        expect(await landing).toMatchObject(LANDED);
      }
      interface Landing {
        readonly by: { readonly sink: Sink; readonly authorities: readonly Authority[] };
        readonly from: number;
      }
      const land = ({ by, from }: Landing) => by.sink.land(rows(from, from + 10), by.authorities);

      test("a range of recovery is joined by recovery alone, until it gives its window back", async () => {
        const live = await ingesting(20);
        const a = await recovering("a", 0, 20);
        expect(await land({ by: a, from: 10 })).toMatchObject(LANDED);
        await both({ by: a, from: 0 }, { by: live, from: 20 });
        expect([await there(), numbers(await live.sink.coverage.covered(KEY))]).toEqual(["30|30", [[0, 30]]]);
        expect(await ranges()).toEqual(["0|20", "20|30"]);
        await a.sink.coverage.releaseWindows();
        expect(await land({ by: live, from: 30 })).toMatchObject(LANDED);
        expect(await ranges()).toEqual(["0|20", "20|40"]);
      });

      test("a range of live ingest is joined by live ingest alone", async () => {
        const live = await ingesting(20);
        const a = await recovering("a", 0, 20);
        expect(await land({ by: live, from: 20 })).toMatchObject(LANDED);
        await both({ by: a, from: 10 }, { by: live, from: 30 });
        expect([await there(), numbers(await live.sink.coverage.covered(KEY))]).toEqual([
          "30|30",
          [[10, 40]],
        ]);
        expect(await ranges()).toEqual(["10|20", "20|40"]);
      });
    },
  );

  test("live ingest's commit waits for live ingest's", async () => {
    const live = await ingesting(0);
    const release = await held(5);
    const landing = live.sink.land(rows(0, 10), live.authorities);
    await inCommit();
    const other = made({ instance: "zombie" });
    const second = other.land(rows(5, 15), live.authorities);
    await waiting();
    await release();
    expect(await landing).toMatchObject(LANDED);
    expect(await second).toMatchObject({ refused: "overlap" });
    expect([await there(), await ranges()]).toEqual(["10|10", ["0|10"]]);
  });

  test("a grant waits for live ingest's commit, and sees what it covered", async () => {
    const live = await ingesting(20);
    const a = made({ instance: recoveryInstance("a") });
    await a.coverage.open();
    const release = await held(5);
    const landing = live.sink.land(rows(0, 10), live.authorities);
    await inCommit();
    const granting = a.coverage.leaseWindows([{ stream: KEY, from: 0n, next: 20n }]);
    await waiting();
    await release();
    expect(await landing).toMatchObject(LANDED);
    expect(numbers((await granting).map((w) => w.range))).toEqual([[10, 20]]);
  });

  test("a grant takes nothing of a window in which a commit is under way, and waits for nobody", async () => {
    const a = await recovering("a", 0, 20);
    expect(await a.sink.land(rows(10, 20), a.authorities)).toMatchObject(LANDED);
    const release = await held(5);
    const landing = a.sink.land(rows(0, 10), a.authorities);
    await inCommit();
    const b = await recovering("b", 0, 30);
    // It touches a range that the commit joins with its own.
    expect(await b.sink.land(rows(20, 30), b.authorities)).toMatchObject(LANDED);
    const c = await recovering("c", 0, 40);
    expect(await c.sink.land(rows(30, 40), c.authorities)).toMatchObject(LANDED);
    await release();
    expect(await landing).toMatchObject(LANDED);
    expect([await there(), numbers(await c.sink.coverage.covered(KEY))]).toEqual(["40|40", [[0, 40]]]);
    expect(await ranges()).toEqual(["0|20", "20|30", "30|40"]);
  });

  test("a claim waits for commits under leases, and sees what they covered", async () => {
    const a = await recovering("a", 0, 20);
    const release = await held(15);
    const landing = a.sink.land(rows(10, 20), a.authorities);
    await inCommit();
    const live = made({ instance: "live" });
    await live.coverage.open();
    const claiming = live.coverage.claim([KEY], null);
    await waiting();
    await release();
    expect(await landing).toMatchObject(LANDED);
    expect(numbers((await claiming)[0]?.covered)).toEqual([[10, 20]]);
  });

  test("a claim that waits comes before commits that come later", async () => {
    const a = await recovering("a", 0, 10);
    const b = await recovering("b", 10, 20);
    const live = made({ instance: "live" });
    await live.coverage.open();
    const release = await held(5);
    const landing = a.sink.land(rows(0, 10), a.authorities);
    await inCommit();
    const claiming = live.coverage.claim([KEY], null);
    await waiting();
    let landed = false;
    const later = b.sink.land(rows(10, 20), b.authorities).finally(() => {
      landed = true;
    });
    await until(async () => landed || (await waiters("<> 'COMMIT'")) === 2);
    await release();
    expect(await landing).toMatchObject(LANDED);
    expect(numbers((await claiming)[0]?.covered)).toEqual([[0, 10]]);
    expect(await later).toMatchObject(LANDED);
  });

  test("a COMMIT whose answer is lost while the server is at it: the set waits for its end, and is there once", async () => {
    const { host, port } = server();
    const proxy = await TroubledProxy.before(host, port);
    cleanups.push(async () => proxy.close());
    const over = { settings: settings(database, { hosts: [{ host: "127.0.0.1", port: proxy.port }] }) };
    const { sink, authorities } = await recovering("a", 0, 10, over);
    const release = await held(5);
    const set = rows(0, 10);
    sink.begin(set);
    await sink.writer.flush();
    proxy.troubles.push({ kind: "cut_behind", text: "COMMIT\0" });
    await expect(sink.seal(set, authorities)).rejects.toMatchObject({ code: "postgres.disconnected" });
    await inCommit();
    const again = sink.seal(set, authorities);
    await waiting();
    await release();
    expect(await again).toMatchObject(LANDED);
    expect([proxy.happened, await there(), await ranges()]).toEqual([1, "10|10", ["0|10"]]);
  });

  test("two commits under one lease: the second waits, and is refused", async () => {
    const a = await recovering("a", 0, 20);
    const release = await held(5);
    const landing = a.sink.land(rows(0, 10), a.authorities);
    await inCommit();
    const second = made({ instance: "other" }).land(rows(5, 15), a.authorities);
    await waiting();
    await release();
    expect(await landing).toMatchObject(LANDED);
    expect(await second).toMatchObject({ refused: "overlap" });
    expect([await there(), await ranges()]).toEqual(["10|10", ["0|10"]]);
  });

  test("a window that is given back while its holder commits: the end waits, and nothing lands under it later", async () => {
    const a = await recovering("a", 0, 20);
    const release = await held(5);
    const landing = a.sink.land(rows(0, 10), a.authorities);
    await inCommit();
    const returning = a.sink.coverage.releaseWindows();
    await waiting();
    await release();
    await returning;
    expect(await landing).toMatchObject(LANDED);
    expect(await a.sink.land(rows(10, 20), a.authorities)).toMatchObject({ refused: "fenced" });
    expect([await there(), await ranges()]).toEqual(["10|10", ["0|10"]]);
  });

  test("what recovery brought is counted beside what live ingest did, whatever becomes of whoever brought it", async () => {
    const counted = async () => {
      const connection = await PgConnection.open(settings(database), parts);
      const state = await readState(connection, stateNames("twg"), { pipeline: "p", sink: "raw" });
      connection.close();
      return state.segments[0]?.rows;
    };
    const live = await ingesting(50);
    await live.sink.land(rows(50, 53), live.authorities);
    const [a, b] = [await recovering("a", 0, 10), await recovering("b", 10, 30)];
    await a.sink.land(rows(0, 4), a.authorities);
    await a.sink.land(rows(4, 10), a.authorities);
    await b.sink.land(rows(10, 30), b.authorities);
    expect(await counted()).toBe(33);
    await a.sink.coverage.close();
    expect(await counted()).toBe(33);
    await live.sink.coverage.close();
    // Every other one is known to be dead by this one.
    const next = await recovering("next", 30, 40, { life: "dead" });
    expect(lines(await psql(database, "select '<' || writer || '>', rows from twg.receipt"))).toEqual([
      "< recovered>|30",
    ]);
    await next.sink.land(rows(30, 40), next.authorities);
    expect(await counted()).toBe(43);
  });

  test("many holders and live ingest on the same streams: nobody waits for ever, all is there once", async () => {
    const streams: readonly StreamId[] = [0, 1, 2].map((partition) => ({ ...STREAM, partition }));
    const keys = streams.map(streamKey);
    const [size, windows] = [10, 24];
    const backlog = size * windows;
    let sets = 0;
    const land = async (
      { writer, instance }: Sink,
      from: number,
      next: number,
      authorities: readonly Authority[],
    ) => {
      writer.open(`${instance}-${sets++}`);
      const batches = streams.map((s) => batchOf(rows(from, next), s));
      for (const b of batches) writer.write(b);
      const spans = batches.map((b) => b.span);
      expect(await writer.seal(spans, authorities)).toMatchObject({ covered: true, rows: 3 * (next - from) });
    };
    const live = made({ instance: "live" });
    await live.coverage.open();
    const heads = (at: number) => new Map<StreamKey, bigint>(keys.map((k) => [k, BigInt(at)]));
    const claim = async () => (await live.coverage.claim(keys, null)).map((c) => c.authority);
    let taken = 0;
    const recovery = async (name: string) => {
      const sink = made({ instance: recoveryInstance(name) });
      await sink.coverage.open();
      while (taken < windows) {
        const from = size * taken++;
        const wanted = keys.map((stream) => ({ stream, from: BigInt(from), next: BigInt(from + size) }));
        const authorities = (await sink.coverage.leaseWindows(wanted)).map((w) => w.authority);
        // The lower half last, so that it has something to join.
        await land(sink, from + 5, from + size, authorities);
        await land(sink, from, from + 5, authorities);
        if (taken % 2 === 0) await sink.coverage.releaseWindows();
      }
    };
    let authorities = await claim();
    await live.coverage.heartbeat(heads(backlog));
    const ingest = async () => {
      for (let i = 0; i < 30; i++) {
        if (i % 10 === 9) authorities = await claim();
        await land(live, backlog + 5 * i, backlog + 5 * (i + 1), authorities);
        await live.coverage.heartbeat(heads(backlog + 5 * (i + 1)));
      }
    };
    await Promise.all([ingest(), ...["a", "b", "c", "d", "e", "f"].map(recovery)]);
    await claim();
    const all = backlog + 150;
    expect(await psql(database, "select stream, first, next from twg.coverage order by 1")).toBe(
      keys.map((k) => `${k}|0|${all}`).join("\n"),
    );
    expect(
      await psql(
        database,
        "select count(*), count(distinct (_twg_source_partition, _twg_source_offset)) from raw",
      ),
    ).toBe(`${3 * all}|${3 * all}`);
  });
});

/**
 * Goal: coverage in tables does what coverage of any tier does: one owner, rising generations, ranges and losses that are
 * never forgotten, state of an earlier version read as it was. Method: several owners on a real server; the state of
 * version 1 is written by hand (test/golden/state/postgres-v1.sql).
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { PgConnection } from "../../../src/adapters/postgres/client.ts";
import { readState } from "../../../src/adapters/postgres/state/streams.ts";
import { stateNames } from "../../../src/adapters/postgres/state/tables.ts";
import { Failure } from "../../../src/core/failure/failure.ts";
import type { Range } from "../../../src/core/ports/coverage.ts";
import { row } from "../../core/formats/parquet/rows.ts";
import { demandPostgres, freshDatabase, lines, POSTGRES, parts, psql, settings } from "./server.ts";
import { KEY, Sink, type SinkOptions } from "./sink.ts";

demandPostgres("coverage in tables");

describe.skipIf(POSTGRES === null)("coverage in PostgreSQL", () => {
  let database: string;
  const open: Sink[] = [];
  beforeEach(async () => {
    database = await freshDatabase();
  });
  afterEach(() => Promise.all(open.splice(0).map((s) => s.close())));

  function sink(over: Partial<SinkOptions> = {}): Sink {
    const made = new Sink({ settings: settings(database), ...over });
    open.push(made);
    return made;
  }
  const code = (work: Promise<unknown>): Promise<string> =>
    work.then(
      () => "none",
      (e: unknown) => (e instanceof Failure ? e.code : String(e)),
    );

  test("a living owner is not displaced, a dead one is, one of unknown fate is given the lease", async () => {
    const first = sink();
    await first.coverage.open();
    expect(await code(sink({ life: "alive" }).coverage.open())).toBe("coverage.owned");
    // It says nothing for the whole lease: it has lost it.
    const later = sink({ life: "unknown" });
    await later.coverage.open();
    expect(await code(first.coverage.heartbeat())).toBe("coverage.fenced");
    // One that gives signs of life keeps it.
    const beating = setInterval(() => void later.coverage.heartbeat(), 50);
    expect(await code(sink({ life: "unknown" }).coverage.open())).toBe("coverage.owned");
    clearInterval(beating);
  });

  test("an owner that leaves makes room at once", async () => {
    const first = sink();
    await first.coverage.open();
    await first.coverage.claim([KEY], null);
    await first.coverage.close();
    expect(await psql(database, "select count(*) from twg.owner")).toBe("0");
    await sink({ life: "alive" }).coverage.open();
  });

  test("what is counted by a lease outlives whoever counted, killed or gone in good order", async () => {
    const counted = async (life: "dead" | "alive") => {
      const s = sink({ life });
      await s.coverage.open();
      return { s, lease: await s.coverage.lease("files") };
    };
    const first = await counted("alive");
    expect(first.lease).toMatchObject({ lease: 1 });
    // Killed: the next one takes it out.
    const second = await counted("dead");
    expect(second.lease).toMatchObject({ lease: 2 });
    await second.s.coverage.close();
    expect((await counted("alive")).lease).toMatchObject({ lease: 3 });
  });

  test("two that enter at the same moment: one of them has it", async () => {
    await sink().coverage.open();
    const [a, b] = [sink(), sink()];
    await Promise.allSettled([a.coverage.open(), b.coverage.open()]);
    expect(await psql(database, "select count(*) from twg.owner")).toBe("1");
    const alive = await Promise.all([code(a.coverage.heartbeat()), code(b.coverage.heartbeat())]);
    expect(alive.sort()).toEqual(["coverage.fenced", "none"]);
  });

  test("members of a group enter beside each other, and the generations of the streams decide who writes", async () => {
    const member = () => sink({ shared: true, life: "alive" });
    const [a, b] = [member(), member()];
    await a.prepare();
    await a.coverage.open();
    await b.coverage.open();
    const before = (await a.coverage.claim([KEY], 1)).map((c) => c.authority);
    await a.land([row(0)], before);
    // The partition moves to the other member.
    const after = (await b.coverage.claim([KEY], 2)).map((c) => c.authority);
    expect(await a.land([row(1)], before)).toMatchObject({ refused: "fenced" });
    expect(await b.land([row(1)], after)).toMatchObject({ covered: true });
    expect(await code(a.coverage.claim([KEY], 1))).toBe("coverage.epoch_behind");
    await Promise.all([a.coverage.heartbeat(), b.coverage.heartbeat()]);
    // One that died leaves its row to whoever enters next; those that live keep theirs and their receipts.
    const later = sink({ shared: true, life: "dead" });
    await later.coverage.open();
    expect(await psql(database, "select count(*) from twg.owner")).toBe("1");
    expect(await psql(database, "select count(*) from twg.receipt")).toBe("0");
    expect(await psql(database, "select first, next from twg.coverage")).toBe("0|2");
  });

  test("generations rise with every claim, and an older group epoch raises none", async () => {
    const s = sink();
    await s.coverage.open();
    const generation = async (epoch: number | null) =>
      (await s.coverage.claim([KEY, "kafka/c1/orders/0/9"], epoch)).map((c) =>
        c.authority.kind === "generation" ? c.authority.generation : -1,
      );
    expect(await generation(null)).toEqual([1, 1]);
    expect(await generation(5)).toEqual([2, 2]);
    expect(await code(s.coverage.claim([KEY], 4))).toBe("coverage.epoch_behind");
    expect(await generation(5)).toEqual([3, 3]);
  });

  test("losses are united by reason, the first origin stays, topics are remembered, leases rise", async () => {
    const s = sink();
    await s.coverage.open();
    const lost = (from: bigint, next: bigint, reason: "retention" | "accepted_gap") =>
      s.coverage.recordLost([{ stream: KEY, from, next, reason }]);
    await lost(0n, 5n, "retention");
    await lost(5n, 9n, "retention");
    await lost(20n, 22n, "accepted_gap");
    await lost(0n, 5n, "retention");
    expect(lines(await psql(database, "select first, next, reason from twg.lost order by 1"))).toEqual([
      "0|9|retention",
      "20|22|accepted_gap",
    ]);
    await s.coverage.rememberOrigins([{ stream: KEY, position: 9n, staleCommit: 3n }]);
    await s.coverage.rememberOrigins([{ stream: KEY, position: 50n, staleCommit: null }]);
    const [claim] = await s.coverage.claim([KEY], null);
    expect(claim).toMatchObject({
      origin: 9n,
      staleCommit: 3n,
      covered: [],
      lost: [
        { from: 0n, next: 9n },
        { from: 20n, next: 22n },
      ],
    });
    expect(await s.coverage.topic("kafka/c1/orders")).toBeNull();
    await s.coverage.rememberTopic("kafka/c1/orders", { topicId: "a", incarnation: 0 });
    await s.coverage.rememberTopic("kafka/c1/orders", { topicId: "b", incarnation: 1 });
    const late = { topicId: "b", incarnation: 0 };
    expect(await s.coverage.rememberTopic("kafka/c1/orders", late)).toEqual({ topicId: "b", incarnation: 1 });
    expect(await s.coverage.topic("kafka/c1/orders")).toEqual({ topicId: "b", incarnation: 1 });
    expect([await s.coverage.lease("w"), await s.coverage.lease("w")]).toMatchObject([
      { lease: 1 },
      { lease: 2 },
    ]);
  });

  test("ranges come in the order of their numbers, whatever their digits", async () => {
    const s = sink();
    await s.prepare();
    const authorities = await s.claimed();
    for (const at of [722n, 1265n, 99n]) {
      await s.land([row(at)], authorities);
      await s.coverage.recordLost([{ stream: KEY, from: at + 2n, next: at + 4n, reason: "retention" }]);
    }
    const from = (ranges: readonly Range[]) => ranges.map((r) => Number(r.from));
    expect(from(await s.coverage.covered(KEY))).toEqual([99, 722, 1265]);
    const [claim] = await s.coverage.claim([KEY], null);
    expect([from(claim!.covered), from(claim!.lost)]).toEqual([
      [99, 722, 1265],
      [101, 724, 1267],
    ]);
  });

  test("state of version 1 is read, continued and shown as it was", async () => {
    const golden = await Bun.file(new URL("../../golden/state/postgres-v1.sql", import.meta.url)).text();
    const s = sink();
    // The table first, since state whose table is gone is refused.
    await s.prepare();
    await psql(database, golden);
    await s.prepare();
    await s.coverage.open();
    const [claim] = await s.coverage.claim([KEY], null);
    expect(claim).toEqual({
      stream: KEY,
      authority: { kind: "generation", stream: KEY, generation: 5 },
      covered: [
        { from: 2n, next: 20n },
        { from: 25n, next: 37n },
      ],
      lost: [{ from: 20n, next: 22n }],
      origin: 2n,
      staleCommit: 1n,
    });
    expect(await s.coverage.topic("kafka/c1/orders")).toEqual({ topicId: "abc", incarnation: 0 });
    expect(await s.land([row(22), row(23), row(24)], [claim!.authority])).toMatchObject({ covered: true });
    const connection = await PgConnection.open(settings(database), parts);
    const state = await readState(connection, stateNames("twg"), { pipeline: "p", sink: "raw" });
    connection.close();
    expect(state.streams.get(KEY)?.covered).toEqual([
      { from: 2n, next: 20n },
      { from: 22n, next: 37n },
    ]);
    expect(state.segments[0]?.rows).toBe(33);
    // Another sink in the same tables is another's.
    expect(await psql(database, "select first, next from twg.coverage where sink = 'other'")).toBe("0|1");
  });

  test("tables that are made now have the shape of version 1, and what came since is added to those of before", async () => {
    const shape = `select table_name, column_name, data_type, is_nullable from information_schema.columns
      where table_schema = 'twg' order by 1, ordinal_position`;
    await sink().coverage.open();
    const made = await psql(database, shape);
    const other = await freshDatabase();
    await psql(other, await Bun.file(new URL("../../golden/state/postgres-v1.sql", import.meta.url)).text());
    const before = await psql(other, shape);
    const since = lines(made).filter((l) => !/^(raw_index|table_column)\|/.test(l));
    expect(since).toEqual(lines(before));
    await sink({ settings: settings(other) }).coverage.open();
    expect(await psql(other, shape)).toBe(made);
  });

  test("state of a later version, and a format that was tampered with", async () => {
    await sink().coverage.open();
    await psql(database, "update twg.format set version = 2");
    expect(await code(sink().coverage.open())).toBe("coverage.newer_version");
    await psql(database, "delete from twg.format");
    expect(await code(sink().coverage.open())).toBe("coverage.corrupt");
  });

  test("an outage is waited out and told; a close ends the wait", async () => {
    const s = sink();
    await s.coverage.open();
    const kill = `select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = '${database}' and pid <> pg_backend_pid()`;
    await psql("postgres", `alter database ${database} allow_connections false`);
    await psql("postgres", kill);
    const claiming = s.coverage.claim([KEY], null);
    await Bun.sleep(50);
    await psql("postgres", `alter database ${database} allow_connections true`);
    expect((await claiming)[0]?.stream).toBe(KEY);
    await psql("postgres", `alter database ${database} allow_connections false`);
    await psql("postgres", kill);
    const waiting = code(s.coverage.claim([KEY], null));
    void s.coverage.close();
    expect(await waiting).toBe("internal.cancelled");
    await psql("postgres", `alter database ${database} allow_connections true`);
  });
});

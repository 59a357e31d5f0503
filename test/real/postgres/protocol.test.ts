/**
 * Goal: rows, receipt and coverage are one, whatever happens to the COMMIT and whoever else writes. Method: a proxy that
 * loses answers and cuts connections at chosen bytes, and a second owner; psql counts what is there.
 */
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { Failure } from "../../../src/core/failure/failure.ts";
import { bytes, type Row, row } from "../../core/formats/parquet/rows.ts";
import { failed } from "./failed.ts";
import { TroubledProxy } from "./proxy.ts";
import { demandPostgres, freshDatabase, lines, POSTGRES, psql, server, settings, until } from "./server.ts";
import { KEY, Sink, type SinkOptions } from "./sink.ts";

demandPostgres("commits whose answer is lost, and fenced owners");

const rows = (from: number, next: number): Row[] =>
  Array.from({ length: next - from }, (_, i) => row(from + i, { value: bytes(`v${from + i}`) }));

describe.skipIf(POSTGRES === null)("a transaction", () => {
  let database: string;
  const open: (Sink | TroubledProxy)[] = [];
  afterAll(() => Promise.all(open.map((o) => o.close())));

  beforeEach(async () => {
    await Promise.all(open.splice(0).map((o) => o.close()));
    database = await freshDatabase();
  });

  function sink(over: Partial<SinkOptions> = {}): Sink {
    const made = new Sink({ settings: settings(database), ...over });
    open.push(made);
    return made;
  }

  async function through(): Promise<{ proxy: TroubledProxy; over: Partial<SinkOptions> }> {
    const proxy = await TroubledProxy.before(server().host, server().port);
    open.push(proxy);
    return {
      proxy,
      over: { settings: settings(database, { hosts: [{ host: "127.0.0.1", port: proxy.port }] }) },
    };
  }

  const count = () => psql(database, "select count(*), count(distinct _twg_source_offset) from raw");
  const covered = async () =>
    lines(await psql(database, "select stream, first, next from twg.coverage order by 1, 2"));

  test("commits rows, ranges that touch as one, sizes and the newest receipt", async () => {
    const s = sink();
    await s.prepare();
    const authorities = await s.claimed();
    await s.land(rows(0, 10), authorities);
    await s.land(rows(20, 30), authorities);
    expect(await covered()).toEqual([`${KEY}|0|10`, `${KEY}|20|30`]);
    await s.land(rows(10, 20), authorities);
    expect(await covered()).toEqual([`${KEY}|0|30`]);
    expect(await psql(database, "select set_id, rows from twg.receipt")).toBe(`${s.instance}-2|10`);
    expect(await psql(database, "select rows, bytes > 1000 from twg.stream")).toBe("30|t");
    expect(await count()).toBe("30|30");
  });

  test("a span without rows is covered all the same", async () => {
    const s = sink();
    await s.prepare();
    const authorities = await s.claimed();
    s.writer.open("empty");
    const span = { stream: KEY, from: 5n, next: 9n };
    expect(await s.writer.seal([span], authorities)).toMatchObject({ covered: true, rows: 0 });
    expect(await covered()).toEqual([`${KEY}|5|9`]);
  });

  test("an answer to COMMIT that is lost after the server committed is settled by the receipt", async () => {
    const { proxy, over } = await through();
    const s = sink(over);
    await s.prepare();
    const authorities = await s.claimed();
    s.begin(rows(0, 1000));
    proxy.troubles.push({ kind: "lose_answer", text: "COMMIT\0" });
    const f = await failed(s.seal(rows(0, 1000), authorities));
    expect([f.code, f.retry, proxy.happened]).toEqual(["postgres.disconnected", true, 1]);
    // The server may be a moment behind; the settling waits for it by the row lock.
    expect(await s.seal(rows(0, 1000), authorities)).toMatchObject({ covered: true, rows: 1000 });
    expect(await count()).toBe("1000|1000");
    expect(await covered()).toEqual([`${KEY}|0|1000`]);
    await s.land(rows(1000, 1010), authorities);
    expect(await count()).toBe("1010|1010");
  });

  test("a COMMIT that never arrived is found out, and the same rows are sent again", async () => {
    const { proxy, over } = await through();
    const s = sink(over);
    await s.prepare();
    const authorities = await s.claimed();
    s.begin(rows(0, 1000));
    proxy.troubles.push({ kind: "cut_before", text: "COMMIT\0" });
    expect((await failed(s.seal(rows(0, 1000), authorities))).retry).toBe(true);
    expect(await count()).toBe("0|0");
    expect(await s.seal(rows(0, 1000), authorities)).toMatchObject({ covered: true, rows: 1000 });
    expect(await count()).toBe("1000|1000");
  });

  test("a COMMIT without an answer while the connection stands: given up in time, then settled", async () => {
    const { proxy, over } = await through();
    const s = sink({ settings: { ...over.settings!, answerTimeoutMs: 1000 } });
    await s.prepare();
    const authorities = await s.claimed();
    s.begin(rows(0, 10));
    proxy.troubles.push({ kind: "silence_after", text: "COMMIT\0" });
    const f = await failed(s.seal(rows(0, 10), authorities));
    expect(f.message).toContain("no answer to COMMIT");
    expect(await s.seal(rows(0, 10), authorities)).toMatchObject({ covered: true, rows: 10 });
    expect(await count()).toBe("10|10");
  });

  // The end of the session comes together with the answer to the COPY, so it is known before the next statement is sent:
  // the coverage must not go out on another connection, without the rows.
  test("a session that ends between the rows and the commit takes both with it", async () => {
    const { proxy, over } = await through();
    const s = sink(over);
    await s.prepare();
    const authorities = await s.claimed();
    s.begin(rows(0, 10));
    proxy.troubles.push({ kind: "terminated_after", text: "COPY 10\0" });
    const f = await failed(s.seal(rows(0, 10), authorities));
    expect([f.retry, proxy.happened]).toEqual([true, 1]);
    expect([await count(), await covered()]).toEqual(["0|0", []]);
    expect(await s.seal(rows(0, 10), authorities)).toMatchObject({ covered: true, rows: 10 });
    expect([await count(), await covered()]).toEqual(["10|10", [`${KEY}|0|10`]]);
  });

  test("a connection that is cut at any byte of the COPY costs nothing but the same bytes once more", async () => {
    const { proxy, over } = await through();
    const s = sink(over);
    await s.prepare();
    const authorities = await s.claimed();
    for (const [i, cut] of [2_000, 60_000, 250_000, 800_000].entries()) {
      const some = rows(i * 5000, (i + 1) * 5000);
      s.begin(some);
      proxy.troubles.push({ kind: "cut_after_bytes", bytes: cut });
      // A new connection, so that its bytes are counted from its start.
      await psql(
        "postgres",
        `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${database}' and query like '%COMMIT%'`,
      );
      for (let tries = 0; ; tries++) {
        try {
          await s.writer.flush();
          expect(await s.seal(some, authorities)).toMatchObject({ rows: 5000 });
          break;
        } catch (e) {
          if (!(e instanceof Failure) || !e.retry || tries > 5) throw e;
        }
      }
    }
    expect(proxy.happened).toBe(4);
    expect(await count()).toBe("20000|20000");
    expect(await covered()).toEqual([`${KEY}|0|20000`]);
  });

  test("an owner whose stream was claimed by another is refused, and leaves no row", async () => {
    const first = sink();
    await first.prepare();
    const stale = await first.claimed();
    first.begin(rows(0, 10));
    await first.writer.flush();
    const second = sink();
    const fresh = await second.claimed();
    expect(await first.seal(rows(0, 10), stale)).toMatchObject({ refused: "fenced" });
    expect(await count()).toBe("0|0");
    expect(await second.land(rows(0, 10), fresh)).toMatchObject({ covered: true });
    expect(await count()).toBe("10|10");
    const f = await failed(first.coverage.heartbeat());
    expect(f.code).toBe("coverage.fenced");
    expect(first.coverage.fenced).toBe(f);
  });

  test("a claim waits for the commit that is under way, and finds what it covered", async () => {
    // Its transaction stands still between its lock and its COMMIT, as that of a process that was stopped there.
    const first = sink({
      hook: (point) => {
        if (point === "before_commit") inside();
      },
    });
    await first.prepare();
    const authorities = await first.claimed();
    let inside: () => void = () => {};
    const locked = new Promise<void>((resolve) => {
      inside = resolve;
    });
    const second = sink();
    first.begin(rows(0, 10));
    const sealed = first.seal(rows(0, 10), authorities);
    await locked;
    await second.coverage.open();
    const claim = (await second.coverage.claim([KEY], null))[0];
    // Whichever came first: either it waited and sees the range, or it came first and the other was refused.
    const result = await sealed;
    if ("refused" in result) expect([claim?.covered, await count()]).toEqual([[], "0|0"]);
    else expect([claim?.covered, await count()]).toEqual([[{ from: 0n, next: 10n }], "10|10"]);
  });

  test("positions that are covered already are refused as a whole", async () => {
    const s = sink();
    await s.prepare();
    const authorities = await s.claimed();
    await s.land(rows(0, 10), authorities);
    expect(await s.land(rows(9, 12), authorities)).toMatchObject({ refused: "overlap" });
    expect(await count()).toBe("10|10");
    expect(await covered()).toEqual([`${KEY}|0|10`]);
  });

  test("nobody covers a stream that was never claimed", async () => {
    const s = sink();
    await s.prepare();
    await s.coverage.open();
    expect(await s.land(rows(0, 3), [])).toMatchObject({ refused: "fenced" });
    expect(await count()).toBe("0|0");
  });

  test("a commit is on disk when it is told, whatever the role's default is", async () => {
    await psql(database, `alter database ${database} set synchronous_commit = off`);
    const s = sink();
    await s.prepare();
    const authorities = await s.claimed();
    await psql(
      database,
      `create table seen(setting text); create function note() returns trigger language plpgsql as
       $$ begin insert into seen values (current_setting('synchronous_commit')); return null; end $$;
       create trigger t after insert on raw for each statement execute function note()`,
    );
    await s.land(rows(0, 3), authorities);
    expect(await psql(database, "select setting from seen")).toBe("on");
  });

  test("two writers of different streams commit side by side", async () => {
    const s = sink();
    await s.prepare();
    await s.coverage.open();
    const streams = [0, 1].map((partition) => ({
      transport: "kafka" as const,
      cluster: "c1",
      topic: "orders",
      incarnation: 0,
      partition,
    }));
    const other = sink({ instance: "other" });
    const [a, b] = [await s.claim(streams[0]!), await s.claim(streams[1]!)];
    const results = await Promise.all([
      s.land(rows(0, 500), a, streams[0]!),
      other.land(rows(0, 500), b, streams[1]!),
    ]);
    expect(results).toMatchObject([{ covered: true }, { covered: true }]);
    expect(await psql(database, "select count(*) from raw")).toBe("1000");
    await until(async () => (await covered()).length === 2);
  });
});

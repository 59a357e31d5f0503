/**
 * Goal: windows of recovery in tables keep what every coverage promises of them. Method: the contract, with several
 * processes on a real server; only the clock by which silence is judged is ours.
 */
import { describe, expect, test } from "bun:test";
import { PgConnection } from "../../../src/adapters/postgres/client.ts";
import { PostgresCoverage } from "../../../src/adapters/postgres/coverage.ts";
import { lockSink } from "../../../src/adapters/postgres/state/owners.ts";
import { recoveryInstance } from "../../../src/core/coverage/windows.ts";
import type { Life } from "../../../src/core/ports/host-identity.ts";
import { windowContract } from "../../contract/window-contract.ts";
import { row } from "../../core/formats/parquet/rows.ts";
import { until } from "../../e2e/until.ts";
import { demandPostgres, freshDatabase, POSTGRES, parts, psql, settings } from "./server.ts";
import { KEY, Sink } from "./sink.ts";

const LEASE_MS = 15_000;

demandPostgres("windows in tables");

describe.skipIf(POSTGRES === null)("windows in PostgreSQL", () => {
  windowContract("tables", KEY, async () => {
    const database = await freshDatabase();
    const lives = new Map<string, Life>();
    const open: (() => Promise<void>)[] = [];
    let passed = 0;
    const clock = { ...parts.clock, monotonic: () => parts.clock.monotonic() + passed };
    await new Sink({ settings: settings(database) }).prepare();
    return {
      life: (instance, life) => void lives.set(instance, life),
      run: (work) => work,
      pass: async () => {
        passed += LEASE_MS + 1;
      },
      close: async () => {
        for (const close of open) await close();
      },
      process: (instance) => {
        const host = {
          self: { hostname: "h", pid: 1, bootId: "b", pidNamespace: "n", startTime: instance },
          isAlive: (other: { readonly startTime: string }) => lives.get(other.startTime) ?? "unknown",
        };
        const place = { settings: settings(database), stateSchema: "twg", pipeline: "p", sink: "raw" };
        const coverage = new PostgresCoverage(
          { ...place, instance, leaseMs: LEASE_MS, lockTimeoutMs: 5_000 },
          { ...parts, clock, host },
        );
        const writer = new Sink({ settings: settings(database), instance });
        open.push(
          () => coverage.close(),
          () => writer.writer.abort(),
        );
        return {
          coverage,
          land: async ({ from, next }, authorities) => {
            const rows = Array.from({ length: Number(next - from) }, (_, i) => row(from + BigInt(i)));
            const landed = await writer.land(rows, authorities);
            if (!("refused" in landed)) return "landed";
            return landed.refused === "overlap" ? "overlap" : "fenced";
          },
        };
      },
    };
  });

  test("a window whose holder was taken out by an older version, which leaves it there, is free", async () => {
    const database = await freshDatabase();
    const [gone, instance] = [recoveryInstance("gone"), recoveryInstance("here")];
    const sink = new Sink({ settings: settings(database), instance });
    await sink.prepare();
    await sink.coverage.open();
    await psql(database, `insert into twg.lease values ('p', 'raw', '${gone} 0-40 ${KEY}', 1, '${gone}')`);
    const [window] = await sink.coverage.leaseWindows([{ stream: KEY, from: 0n, next: 10n }]);
    expect(window?.range).toEqual({ from: 0n, next: 10n });
    const rows = Array.from({ length: 10 }, (_, i) => row(BigInt(i)));
    expect(await sink.land(rows, [window!.authority])).toMatchObject({ covered: true, rows: 10 });
    await sink.close();
  });

  test("receipts of whoever left, or was taken out, are removed; those of others stay", async () => {
    const database = await freshDatabase();
    const receipts = async () =>
      (await psql(database, "select writer from twg.receipt order by 1")).split("\n").filter((w) => w !== "");
    const wrote = async (writer: string) =>
      psql(database, `insert into twg.receipt values ('p', 'raw', '${writer}', 's', 1, 1)`);
    const sinks = ["live", recoveryInstance("here"), recoveryInstance("gone")].map(
      (instance) => new Sink({ settings: settings(database), instance, life: "alive" }),
    );
    const [live, here] = [sinks[0]!, sinks[1]!];
    await live.prepare();
    for (const s of sinks) await s.coverage.open();
    for (const writer of ["live.0", "here.0", "here.1", "gone.0"]) await wrote(writer);
    await here.coverage.close();
    expect(await receipts()).toEqual(["gone.0", "live.0"]);
    await live.coverage.close();
    expect(await receipts()).toEqual(["gone.0"]);
    // What every other one knows to be dead is taken out by the next that enters.
    const next = new Sink({ settings: settings(database), instance: recoveryInstance("next") });
    await next.coverage.open();
    expect(await receipts()).toEqual([]);
    for (const s of [...sinks, next]) await s.close();
  });

  test("a span that another holds is refused without a lock and without a transaction", async () => {
    const database = await freshDatabase();
    const sinks = [recoveryInstance("a"), recoveryInstance("b")].map(
      (instance) => new Sink({ settings: settings(database), instance, life: "alive" }),
    );
    const [a, b] = [sinks[0]!, sinks[1]!];
    await a.prepare();
    for (const s of sinks) await s.coverage.open();
    const wanted = [{ stream: KEY, from: 0n, next: 10n }];
    expect(await a.coverage.leaseWindows(wanted)).toHaveLength(1);
    const other = await PgConnection.open(settings(database), parts);
    await other.script("BEGIN");
    await lockSink(other, { pipeline: "p", sink: "raw" });
    expect(await b.coverage.leaseWindows(wanted)).toEqual([]);
    await other.script("ROLLBACK");
    other.close();
    for (const s of sinks) await s.close();
  });

  test("a lease and whoever has the sink's lock never wait for each other", async () => {
    const database = await freshDatabase();
    const instance = recoveryInstance("here");
    const sink = new Sink({ settings: settings(database), instance });
    await sink.prepare();
    await sink.coverage.open();
    const other = await PgConnection.open(settings(database), parts);
    await other.script("BEGIN");
    await lockSink(other, { pipeline: "p", sink: "raw" });
    const leasing = sink.coverage.leaseWindows([{ stream: KEY, from: 0n, next: 10n }]);
    const waiting = `select count(*) from pg_locks where locktype = 'advisory' and not granted
      and database = (select oid from pg_database where datname = current_database())`;
    await until("the lease waits", async () => (await psql(database, waiting)).trim() === "1");
    // As whoever enters does with owners that are gone: were the row taken already, the server would end one of the two.
    await other.query("DELETE FROM twg.owner WHERE instance = $1", instance);
    await other.script("ROLLBACK");
    expect((await leasing)[0]?.range).toEqual({ from: 0n, next: 10n });
    other.close();
    await sink.close();
  });
});

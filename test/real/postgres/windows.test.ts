/**
 * Goal: windows of recovery in tables keep what every coverage promises of them. Method: the contract, with several
 * processes on a real server; only the clock by which silence is judged is ours.
 */
import { describe, expect, test } from "bun:test";
import { PostgresCoverage } from "../../../src/adapters/postgres/coverage.ts";
import { recoveryInstance } from "../../../src/core/coverage/windows.ts";
import type { Life } from "../../../src/core/ports/host-identity.ts";
import { windowContract } from "../../contract/window-contract.ts";
import { row } from "../../core/formats/parquet/rows.ts";
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
});

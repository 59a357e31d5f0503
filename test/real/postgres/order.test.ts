/**
 * Goal: in PostgreSQL too rows, coverage and the source come in this order, whoever looks from outside. Method: the contract of order; at each
 * point of the lane's transaction psql, another session, says what is there.
 */
import { describe } from "bun:test";
import { PostgresCoverage } from "../../../src/adapters/postgres/coverage.ts";
import { prepareFields } from "../../../src/adapters/postgres/prepare.ts";
import { PostgresTableWriter } from "../../../src/adapters/postgres/table-writer.ts";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import { normalRanges, type Ranges } from "../../../src/core/coverage/ranges.ts";
import { recoveryInstance } from "../../../src/core/coverage/windows.ts";
import { CoveredCommitter } from "../../../src/core/delivery/covered-committer.ts";
import { tableFields } from "../../../src/core/pipeline/row-table.ts";
import type { Authority, Range } from "../../../src/core/ports/coverage.ts";
import type { TableSink } from "../../../src/core/ports/table-sink.ts";
import type { Span } from "../../../src/core/records/stream.ts";
import { tableOf } from "../../contract/batch-job.ts";
import { type CursorBench, type CursorSeen, cursorContract, heard } from "../../contract/cursor-contract.ts";
import { fillWindows, type OrderBench, orderContract, type Seen } from "../../contract/order-contract.ts";
import { row } from "../../core/formats/parquet/rows.ts";
import { demandPostgres, freshDatabase, lines, POSTGRES, parts, psqlNow, settings } from "./server.ts";
import { KEY, Sink } from "./sink.ts";

demandPostgres("the order of rows, coverage and the source in tables");

function look(database: string): Seen {
  const text = psqlNow(
    database,
    `select 'row', _twg_source_offset, 0 from raw union all select 'range', first, next from twg.coverage order by 1, 2`,
  );
  const found = (kind: string) =>
    lines(text).flatMap((line) => {
      const [of, from = "", next = ""] = line.split("|");
      return of === kind ? [{ from: BigInt(from), next: BigInt(next) }] : [];
    });
  return { rows: found("row").map((r) => r.from), covered: normalRanges(found("range")) };
}

async function benchOf(): Promise<OrderBench> {
  const database = await freshDatabase();
  return {
    look: () => look(database),
    close: async () => {},
    land: async (landing) => {
      const { ranges, leased, swap, moment, acknowledged } = landing;
      let open: Range = ranges[0]!;
      const swapped = (point: string): void => {
        const { from, next } = open;
        if (point === "before_commit" && swap === "acknowledge_first") void acknowledged(open);
        if (point === "before_commit" && swap === "cover_first")
          psqlNow(database, `insert into twg.coverage values ('p', 'raw', '${KEY}', ${from}, ${next})`);
        if (point === "before_commit" && swap === "rows_first")
          psqlNow(database, `insert into raw (_twg_source_offset) values (${from})`);
      };
      const sink = new Sink({
        ...{ settings: settings(database), instance: leased ? recoveryInstance("r") : "live" },
        hook: (point) => {
          swapped(point);
          void moment(point);
        },
      });
      await sink.prepare();
      if (swap === "rows_first") loosen(database);
      const sets = async (of: readonly Range[], authority: Authority) => {
        for (const range of of) {
          open = range;
          const rows = Array.from({ length: Number(range.next - range.from) }, (_, i) =>
            row(range.from + BigInt(i)),
          );
          const landed = await sink.land(rows, [authority]);
          if ("refused" in landed) throw new Error(landed.detail);
          await acknowledged(range);
        }
      };
      if (leased) await fillWindows(landing, KEY, sink.coverage, systemClock, sets);
      else {
        const [authority] = await sink.claimed();
        await sets(ranges, authority!);
      }
      await sink.close();
    },
  };
}

/** So that a row needs no more than its position. */
function loosen(database: string): void {
  const columns = lines(
    psqlNow(
      database,
      "select attname from pg_attribute where attrelid = 'raw'::regclass and attnum > 0 and attnotnull",
    ),
  );
  for (const c of columns) psqlNow(database, `alter table raw alter column ${c} drop not null`);
}

/** Lanes of a batch job write rows of files in typed columns, and what they refuse, in one transaction with the cursor. */
async function cursorBench(): Promise<CursorBench> {
  const database = await freshDatabase();
  const state = { stateSchema: "twg", pipeline: "p", sink: "raw", lockTimeoutMs: 5000 };
  const place = { settings: settings(database), table: { schema: "public", table: "job" }, rejects: null };
  return {
    look: () => lookAtJob(database),
    close: async () => {},
    run: (work) => work,
    sink: async (plan, { swap, moment, landed }) => {
      const fields = tableFields(tableOf(plan));
      const prepared = { ...place, stateSchema: "twg", key: { pipeline: "p", sink: "raw" } };
      const targets = await prepareFields({ ...prepared, create: true, unique: [] }, fields, parts);
      const host = { self: HOST, isAlive: () => "dead" as const };
      const coverage = new PostgresCoverage(
        { ...state, settings: place.settings, instance: "job", leaseMs: 300, shared: false },
        { ...parts, host },
      );
      const tableSink = (lane: number): TableSink => {
        let open: readonly Span[] = [];
        const hook = (point: string) => {
          if (point === "before_commit" && swap === "acknowledge_first") landed(open);
          if (point === "before_commit" && swap === "cover_first")
            for (const { stream, from, next } of open)
              psqlNow(
                database,
                `insert into twg.coverage values ('p', 'raw', '${stream}', ${from}, ${next}) on conflict do nothing`,
              );
          void moment(point);
        };
        const writer = new PostgresTableWriter(
          {
            ...place,
            ...state,
            fields,
            targets,
            intervalMs: 1e6,
            maxRejects: 10,
            leavesHoles: false,
            rowKey: null,
            upsert: null,
          },
          { ...parts, writer: `job-${lane}`, hook },
        );
        return new Proxy(writer, {
          get: (of, name) => {
            const value: unknown = Reflect.get(of, name, of);
            if (typeof value !== "function") return value;
            return (...args: unknown[]) => {
              if (name === "seal") open = args[0] as readonly Span[];
              return value.apply(of, args);
            };
          },
        });
      };
      const observer = { emit: () => {} };
      return {
        ...{ clock: systemClock, coverage, refusing: true, tableSink },
        committer: (listener) =>
          new CoveredCommitter({
            ...{ sink: "raw", clock: systemClock, observer },
            listener: heard(listener, { swap, moment, landed }),
          }),
      };
    },
  };
}

function lookAtJob(database: string): CursorSeen {
  const text = psqlNow(
    database,
    `select 'row', id::text, 0, 0 from job union all select 'refused', line::json ->> 'row', 0, 0 from twg.reject
     union all select 'range', stream, first, next from twg.coverage order by 1, 2, 3`,
  );
  const found = lines(text).map((line) => line.split("|"));
  const numbers = (kind: string) => found.filter(([of]) => of === kind).map(([, n]) => Number(n));
  const covered = new Map<string, Ranges>();
  for (const [of, stream = "", from = "", next = ""] of found)
    if (of === "range")
      covered.set(
        stream,
        normalRanges([...(covered.get(stream) ?? []), { from: BigInt(from), next: BigInt(next) }]),
      );
  return { rows: numbers("row"), refused: numbers("refused"), covered };
}

const HOST = { hostname: "h", pid: 1, bootId: "b", pidNamespace: "n", startTime: "job" };

describe.skipIf(POSTGRES === null)("in PostgreSQL", () => {
  orderContract("tables", benchOf, true);
  cursorContract("tables", cursorBench, true);
});

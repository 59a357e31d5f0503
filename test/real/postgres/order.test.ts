/**
 * Goal: in PostgreSQL too rows, coverage and the source come in this order, whoever looks from outside. Method: the contract of order; at each
 * point of the lane's transaction psql, another session, says what is there.
 */
import { describe } from "bun:test";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import { normalRanges } from "../../../src/core/coverage/ranges.ts";
import { recoveryInstance } from "../../../src/core/coverage/windows.ts";
import type { Authority, Range } from "../../../src/core/ports/coverage.ts";
import { fillWindows, type OrderBench, orderContract, type Seen } from "../../contract/order-contract.ts";
import { row } from "../../core/formats/parquet/rows.ts";
import { demandPostgres, freshDatabase, lines, POSTGRES, psqlNow, settings } from "./server.ts";
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

describe.skipIf(POSTGRES === null)("in PostgreSQL", () => orderContract("tables", benchOf, true));

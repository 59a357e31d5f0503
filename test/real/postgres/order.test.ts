/**
 * Goal: in PostgreSQL too rows, coverage and the source come in this order, whoever looks from outside. Method: the contract of order; at each
 * point of the lane's transaction psql, another session, says what is there.
 */
import { describe } from "bun:test";
import { normalRanges } from "../../../src/core/coverage/ranges.ts";
import { recoveryInstance } from "../../../src/core/coverage/windows.ts";
import type { Range } from "../../../src/core/ports/coverage.ts";
import { type OrderBench, orderContract, type Seen } from "../../contract/order-contract.ts";
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
    land: async ({ ranges, leased, swap, moment, acknowledged }) => {
      let open: Range = ranges[0]!;
      const instance = leased ? recoveryInstance("r") : "live";
      const sink = new Sink({
        ...{ settings: settings(database), instance },
        hook: (point) => {
          if (point === "before_commit" && swap === "acknowledge_first") void acknowledged(open);
          if (point === "before_commit" && swap === "cover_first")
            psqlNow(
              database,
              `insert into twg.coverage values ('p', 'raw', '${KEY}', ${open.from}, ${open.next}) on conflict do nothing`,
            );
          void moment(point);
        },
      });
      await sink.prepare();
      await sink.coverage.open();
      const whole = { stream: KEY, from: ranges[0]!.from, next: ranges.at(-1)!.next };
      const [right] = leased
        ? await sink.coverage.leaseWindows([whole])
        : await sink.coverage.claim([KEY], null);
      for (const range of ranges) {
        open = range;
        const rows = Array.from({ length: Number(range.next - range.from) }, (_, i) =>
          row(range.from + BigInt(i)),
        );
        await sink.land(rows, [right!.authority]);
        await acknowledged(range);
      }
      await sink.close();
    },
  };
}

describe.skipIf(POSTGRES === null)("in PostgreSQL", () => orderContract("tables", benchOf));

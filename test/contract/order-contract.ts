/**
 * A position never leads, seen from outside: at every durable write of a sink, before it and behind it, what others see is looked at.
 * What the source was told is covered, what is covered is there, and nothing is there twice; under a claim of live ingest and under a lease. Every
 * backend of coverage runs this. A backend whose order is swapped on purpose must be found out, else nothing is looked at.
 */
import { describe, expect, test } from "bun:test";
import { containsRange, normalRanges, type Ranges } from "../../src/core/coverage/ranges.ts";
import type { Range } from "../../src/core/ports/coverage.ts";

/** What others see now. */
export interface Seen {
  /** Positions of rows that can be read, as often as they are there. */
  readonly rows: readonly bigint[];
  readonly covered: Ranges;
}

/** cover_first: coverage is written before the rows can be read. acknowledge_first: the source is told before coverage is written. */
export const SWAPS = ["cover_first", "acknowledge_first"] as const;
export type Swap = (typeof SWAPS)[number];

export interface Landing {
  readonly ranges: readonly Range[];
  /** Under the lease of a window, else under a claim. */
  readonly leased: boolean;
  readonly swap: Swap | null;
  /** To be called wherever something has become durable, or is about to. */
  readonly moment: (what: string) => void | Promise<void>;
  /** The source may be told. */
  readonly acknowledged: (range: Range) => void | Promise<void>;
}

export interface OrderBench {
  look(): Seen | Promise<Seen>;
  /** Lands each of the ranges as a set. */
  land(landing: Landing): Promise<void>;
  close(): Promise<void>;
}

const RANGES = [
  { from: 0n, next: 3n },
  { from: 3n, next: 4n },
  { from: 6n, next: 9n },
];

interface Watched {
  readonly complaints: readonly string[];
  readonly moments: number;
  readonly seen: Seen;
  readonly told: Ranges;
}

async function watch(bench: OrderBench, leased: boolean, swap: Swap | null): Promise<Watched> {
  const complaints: string[] = [];
  let told: Ranges = [];
  let moments = 0;
  let last: Seen = { rows: [], covered: [] };
  const judge = (what: string, { rows, covered }: Seen): void => {
    moments++;
    last = { rows, covered };
    const there = new Set(rows);
    if (there.size < rows.length) complaints.push(`${what}: a row is there twice`);
    for (const { from, next } of covered)
      for (let p = from; p < next; p++)
        if (!there.has(p)) complaints.push(`${what}: ${p} is covered and not there`);
    for (const r of told)
      if (!containsRange(covered, r))
        complaints.push(`${what}: the source was told of [${r.from}, ${r.next}), which is not covered`);
  };
  const moment = (what: string): void | Promise<void> => {
    const seen = bench.look();
    return seen instanceof Promise ? seen.then((s) => judge(what, s)) : judge(what, seen);
  };
  const acknowledged = (range: Range): void | Promise<void> => {
    told = normalRanges([...told, range]);
    return moment("the source was told");
  };
  await bench.land({ ranges: RANGES, leased, swap, moment, acknowledged });
  return { complaints, moments, seen: last, told };
}

export function orderContract(name: string, make: () => Promise<OrderBench>): void {
  describe(`order over ${name}`, () => {
    for (const leased of [false, true]) {
      const under = leased ? "under a lease" : "under a claim";
      test(`rows, then coverage, then the source, ${under}`, async () => {
        const bench = await make();
        const { complaints, moments, seen, told } = await watch(bench, leased, null);
        expect(complaints).toEqual([]);
        // Of each set at least: it is about to be there, and it is.
        expect(moments).toBeGreaterThanOrEqual(2 * RANGES.length);
        const all = normalRanges(RANGES);
        expect([seen.rows.toSorted(), seen.covered, told]).toEqual([
          RANGES.flatMap(({ from, next }) =>
            Array.from({ length: Number(next - from) }, (_, i) => from + BigInt(i)),
          ),
          all,
          all,
        ]);
        await bench.close();
      }, 60_000);

      test.each(SWAPS.map((s) => [s]))(
        `what is swapped is found: %s, ${under}`,
        async (swap) => {
          const bench = await make();
          const { complaints } = await watch(bench, leased, swap);
          const expected = swap === "cover_first" ? /is covered and not there/ : /the source was told of/;
          expect(complaints.join("\n")).toMatch(expected);
          await bench.close();
        },
        60_000,
      );
    }
  });
}

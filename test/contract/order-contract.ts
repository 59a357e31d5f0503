/**
 * A position never leads, seen from outside: at every durable write of a sink, before it and behind it, what others see is looked at.
 * What the source was told is covered, what is covered is there, and nothing is there twice; under a claim of live ingest and in the windows
 * that recovery leases, which are given back once all that landed in them has been told. Where rows and coverage are one transaction neither
 * is there without the other. Every backend of coverage runs this. A backend whose order is swapped on purpose must be found out, else nothing is
 * looked at.
 */
import { describe, expect, test } from "bun:test";
import {
  containsRange,
  intersectRanges,
  normalRanges,
  type Ranges,
  subtractRanges,
} from "../../src/core/coverage/ranges.ts";
import { Failure } from "../../src/core/failure/failure.ts";
import type { Authority, Range, WindowCoverage } from "../../src/core/ports/coverage.ts";
import { Filler } from "../../src/core/recovery/filler.ts";
import type { Clock } from "../../src/core/time/clock.ts";

/** What others see now. */
export interface Seen {
  /** Positions of rows that can be read, as often as they are there. */
  readonly rows: readonly bigint[];
  readonly covered: Ranges;
}

/**
 * cover_first: coverage is written before the rows can be read. acknowledge_first: the source is told before coverage is written.
 * rows_first: rows can be read before they are covered, where both are one transaction. give_back_first: a window ends before what
 * lands in it has landed.
 */
export type Swap = "cover_first" | "acknowledge_first" | "rows_first" | "give_back_first";

const FOUND: Readonly<Record<Swap, RegExp>> = {
  cover_first: /is covered and not there/,
  acknowledge_first: /the source was told of/,
  rows_first: /is there and not covered/,
  give_back_first: /windows were given back before/,
};

export interface Landing {
  readonly ranges: readonly Range[];
  /** Under the lease of a window, else under a claim. */
  readonly leased: boolean;
  readonly swap: Swap | null;
  /** To be called wherever something has become durable, or is about to. */
  readonly moment: (what: string) => void | Promise<void>;
  /** The source may be told. */
  readonly acknowledged: (range: Range) => void | Promise<void>;
  /** The windows are about to be given back. */
  readonly givesBack: () => void;
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
  readonly backs: number;
  readonly seen: Seen;
  readonly told: Ranges;
  /** Of landing. */
  readonly failure: unknown;
}

interface Asked {
  readonly leased: boolean;
  /** Rows and coverage are one transaction. */
  readonly atomic: boolean;
  readonly swap: Swap | null;
}

async function watch(bench: OrderBench, { leased, atomic, swap }: Asked): Promise<Watched> {
  const complaints: string[] = [];
  let told: Ranges = [];
  let moments = 0;
  let backs = 0;
  let last: Seen = { rows: [], covered: [] };
  const judge = (what: string, { rows, covered }: Seen): void => {
    moments++;
    last = { rows, covered };
    const there = new Set(rows);
    if (there.size < rows.length) complaints.push(`${what}: a row is there twice`);
    for (const { from, next } of covered)
      for (let p = from; p < next; p++)
        if (!there.has(p)) complaints.push(`${what}: ${p} is covered and not there`);
    if (atomic)
      for (const p of there)
        if (!containsRange(covered, { from: p, next: p + 1n }))
          complaints.push(`${what}: ${p} is there and not covered`);
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
  const givesBack = (): void => {
    backs++;
    for (const { from, next } of subtractRanges(normalRanges(RANGES), told))
      complaints.push(`windows were given back before [${from}, ${next}) was told`);
  };
  const failure = await bench
    .land({ ranges: RANGES, leased, swap, moment, acknowledged, givesBack })
    .then(() => null)
    .catch((e: unknown) => e);
  return { complaints, moments, backs, seen: last, told, failure };
}

/** `atomic`: rows and coverage are one transaction. */
export function orderContract(name: string, make: () => Promise<OrderBench>, atomic = false): void {
  describe(`order over ${name}`, () => {
    for (const leased of [false, true]) {
      const under = leased ? "in a window" : "under a claim";
      test(`rows, then coverage, then the source, ${under}`, async () => {
        const bench = await make();
        const { complaints, moments, backs, seen, told, failure } = await watch(bench, {
          ...{ leased, atomic, swap: null },
        });
        expect([failure, complaints]).toEqual([null, []]);
        // Of each set at least: it is about to be there, and it is.
        expect(moments).toBeGreaterThanOrEqual(2 * RANGES.length);
        expect(backs > 0).toBe(leased);
        const all = normalRanges(RANGES);
        expect([seen.rows.toSorted(), seen.covered, told]).toEqual([
          RANGES.flatMap(({ from, next }) =>
            Array.from({ length: Number(next - from) }, (_, i) => from + BigInt(i)),
          ),
          all,
          all,
        ]);
        await bench.close();
      }, 120_000);

      // Elsewhere there is no window, or no transaction, to be swapped.
      const apply = (s: Swap) => (s === "give_back_first" ? leased : s !== "rows_first" || atomic);
      test.each((Object.keys(FOUND) as Swap[]).filter(apply).map((s) => [s]))(
        `what is swapped is found: %s, ${under}`,
        async (swap) => {
          const bench = await make();
          const { complaints } = await watch(bench, { leased, atomic, swap });
          expect(complaints.join("\n")).toMatch(FOUND[swap]);
          await bench.close();
        },
        120_000,
      );
    }
  });
}

/** Who lands each of the ranges as a set, and resolves once all of that has been told. */
type LandSets = (ranges: readonly Range[], authority: Authority) => Promise<void>;

/**
 * Recovery as it is, over the coverage of a sink that lacks the ranges: it leases the window, has what it lacks landed, and gives it back. It closes
 * the coverage.
 */
export async function fillWindows(
  landing: Landing,
  stream: string,
  coverage: WindowCoverage,
  clock: Clock,
  sets: LandSets,
): Promise<void> {
  const { ranges, swap, givesBack } = landing;
  let entered = false;
  const lacks = async () => {
    const has = entered ? await coverage.covered(stream) : [];
    const left = subtractRanges(normalRanges(ranges), normalRanges(has));
    return left.length === 0 ? new Map() : new Map([["raw", new Map([[stream, left]])]]);
  };
  const spans = ranges.map((r) => ({ stream, ...r }));
  const index = [{ id: "set", targets: [], spans, rows: 1, bytes: 1 }];
  const late: Promise<void>[] = [];
  const watched = new Proxy(coverage, {
    get: (of, name) => {
      const value: unknown = Reflect.get(of, name, of);
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => {
        if (name === "releaseWindows") givesBack();
        entered ||= name === "open";
        return value.apply(of, args);
      };
    },
  });
  const filler = new Filler(
    [{ name: "raw", after: [], coverage: watched }],
    { windowBytes: 1_000, heartbeatMs: 1_000, retryMs: 50, patienceMs: 1_000 },
    {
      clock,
      look: async () => ({ lacks: await lacks(), index, away: new Map() }),
      run: async ({ sinks, wanted }) => {
        const [claim] = await sinks[0]!.coverage.claim([stream], null);
        const mine = ranges.filter((r) => intersectRanges([r], wanted.get(stream) ?? []).length > 0);
        const landed = sets(mine, claim!.authority);
        if (swap !== "give_back_first") return landed;
        late.push(landed.catch(() => {}));
        // Once: what is left behind would be begun again and again.
        filler.stop();
      },
    },
  );
  const filled = await filler.run();
  await Promise.all(late);
  const failure = filled.failure ?? filled.failed.get("raw") ?? null;
  if (failure !== null) throw failure;
  if ([...filled.left.values()].some((n) => n > 0n)) throw new Failure("internal.bug", "something is left");
}

/**
 * Where a stream goes on: the table of rule 6 case by case, then every small world there is, judged by what the rule
 * promises (nothing that we answer for is stepped over unless it is covered or recorded as lost).
 */
import { describe, expect, test } from "bun:test";
import { planStart, type StartInput, type StartPlan } from "../../../src/core/delivery/start.ts";
import { Failure } from "../../../src/core/failure/failure.ts";
import type { Range } from "../../../src/core/ports/coverage.ts";

const r = (...pairs: [number, number][]): Range[] =>
  pairs.map(([f, n]) => ({ from: BigInt(f), next: BigInt(n) }));

const input = (over: Partial<StartInput> = {}): StartInput => ({
  stream: "kafka/c/t/0/3",
  place: "t/3",
  committed: null,
  covered: [],
  lost: [],
  origin: null,
  start: "earliest",
  earliest: 0n,
  latest: 1000n,
  acceptGap: false,
  retention: "fail",
  ...over,
});

function refused(over: Partial<StartInput>): Failure {
  try {
    planStart(input(over));
  } catch (e) {
    if (e instanceof Failure) return e;
    throw e;
  }
  throw new Error("was not refused");
}

describe("the table", () => {
  const cases: [name: string, over: Partial<StartInput>, plan: Partial<StartPlan>][] = [
    ["neither: earliest", { earliest: 7n }, { position: 7n, why: "configured" }],
    ["neither: latest", { start: "latest" }, { position: 1000n, why: "configured" }],
    ["neither: a position", { start: 400n }, { position: 400n, why: "configured" }],
    [
      "neither, but an origin: where it once began, whatever the start says now",
      { start: "latest", origin: 40n },
      { position: 40n, why: "covered" },
    ],
    [
      "coverage alone: the first hole",
      { covered: r([10, 20]), start: "latest" },
      { position: 20n, why: "covered" },
    ],
    [
      "coverage with a hole: the hole, and what is behind it is skipped",
      { covered: r([10, 20], [30, 40]) },
      { position: 20n, why: "covered", skip: r([30, 40]), passed: [] },
    ],
    [
      "coverage that begins above the origin: what was read and never landed is read again",
      { covered: r([30, 40]), origin: 10n },
      { position: 10n, why: "covered", skip: r([30, 40]) },
    ],
    ["coverage below a later origin: coverage", { covered: r([5, 9]), origin: 30n }, { position: 9n }],
    ["losses count as known", { lost: r([0, 5]), covered: r([5, 8]) }, { position: 8n, why: "covered" }],
    [
      "commit at coverage's end",
      { committed: 20n, covered: r([10, 20]) },
      { position: 20n, why: "committed", passed: [] },
    ],
    [
      "commit behind coverage: on at the first hole, the rest counted",
      { committed: 12n, covered: r([10, 20], [25, 30]) },
      { position: 20n, why: "committed", passed: r([12, 20]), skip: r([25, 30]) },
    ],
    [
      "commit below all coverage",
      { committed: 5n, covered: r([10, 20]) },
      { position: 5n, skip: r([10, 20]) },
    ],
    [
      "commit at the very start, nothing covered",
      { committed: 0n },
      { position: 0n, why: "committed", newLost: [] },
    ],
    [
      "a commit that lies below what the broker still has, nothing covered",
      { committed: 3n, earliest: 3n },
      { position: 3n, why: "committed" },
    ],
    [
      "commit beyond coverage, accepted: the gap is recorded",
      { committed: 30n, covered: r([10, 20]), acceptGap: true },
      {
        position: 30n,
        why: "accepted_gap",
        newLost: [{ stream: "kafka/c/t/0/3", from: 20n, next: 30n, reason: "accepted_gap" }],
      },
    ],
    [
      "commit without any coverage, accepted: all that the broker has below it is recorded",
      { committed: 30n, earliest: 4n, acceptGap: true },
      { position: 30n, newLost: [{ stream: "kafka/c/t/0/3", from: 4n, next: 30n, reason: "accepted_gap" }] },
    ],
    [
      "an accepted gap is not asked about again",
      { committed: 30n, covered: r([10, 20]), lost: r([20, 30]) },
      { position: 30n, why: "committed", newLost: [] },
    ],
    [
      "retention passed the position, skipped: recorded, and on at what is there",
      { covered: r([0, 10], [12, 15]), earliest: 20n, retention: "skip" },
      {
        position: 20n,
        newLost: [
          { stream: "kafka/c/t/0/3", from: 10n, next: 12n, reason: "retention" },
          { stream: "kafka/c/t/0/3", from: 15n, next: 20n, reason: "retention" },
        ],
      },
    ],
    [
      "retention passed the position and what follows is covered",
      { covered: r([0, 10], [20, 25]), earliest: 20n, retention: "skip" },
      { position: 25n, skip: [] },
    ],
    ["everything covered to the end of the log", { covered: r([0, 1000]) }, { position: 1000n }],
  ];
  test.each(cases)("%s", (_name, over, plan) => {
    expect(planStart(input(over))).toMatchObject(plan);
  });
});

describe("refused, with the place and what to do", () => {
  test("a commit beyond coverage: the gap, and the position to reset the group to", () => {
    const f = refused({ committed: 40n, covered: r([0, 10], [12, 14], [16, 18], [20, 22]) });
    expect([f.code, f.at]).toEqual(["delivery.commit_beyond_coverage", "t/3"]);
    expect(f.message).toContain("committed 40");
    expect(f.message).toContain("[10, 12), [14, 16), [18, 20) and 1 more ranges");
    expect(f.hint).toContain("Reset the group to 10");
  });

  test("a commit with nothing covered at all", () => {
    expect(refused({ committed: 40n, earliest: 5n }).message).toContain("[5, 40)");
  });

  test("records that retention removed", () => {
    const f = refused({ covered: r([0, 10]), earliest: 25n });
    expect([f.code, f.at]).toEqual(["delivery.retention_gap", "t/3"]);
    expect(f.message).toContain("[10, 25)");
  });

  test("a log that became shorter than what was read", () => {
    const f = refused({ covered: r([0, 50]), latest: 40n });
    expect([f.code, f.message]).toEqual([
      "delivery.position_beyond_log",
      "would go on at 50, but the log ends at 40",
    ]);
    expect(refused({ committed: 60n, covered: r([0, 60]), latest: 40n }).code).toBe(
      "delivery.position_beyond_log",
    );
  });
});

/** Sets of positions 0 to N - 1 as bits. */
const N = 5;
const has = (bits: number, p: number): boolean => ((bits >> p) & 1) === 1;

function rangesOf(bits: number): Range[] {
  const out: Range[] = [];
  for (let p = 0; p < N; p++) {
    if (!has(bits, p)) continue;
    const last = out.at(-1);
    if (last?.next === BigInt(p)) out[out.length - 1] = { from: last.from, next: BigInt(p + 1) };
    else out.push({ from: BigInt(p), next: BigInt(p + 1) });
  }
  return out;
}

function bitsOf(ranges: readonly Range[]): number {
  let bits = 0;
  for (const x of ranges) for (let p = Number(x.from); p < Number(x.next); p++) bits |= 1 << p;
  return bits;
}

interface SmallWorld {
  readonly covered: number;
  readonly lost: number;
  readonly committed: number | null;
  readonly origin: number | null;
  readonly earliest: number;
  readonly latest: number;
  readonly acceptGap: boolean;
  readonly skip: boolean;
}

function* smallWorlds(): Generator<SmallWorld> {
  const places = Array.from({ length: N + 1 }, (_, i) => i);
  for (let covered = 0; covered < 1 << N; covered++)
    for (const lost of [0, 1, 0b110 & ~covered])
      for (const committed of [null, ...places])
        for (const origin of [null, 0, 2])
          for (const [earliest, latest] of [
            [0, N],
            [2, N],
            [0, 3],
            [3, 3],
            [N, N],
          ] as const)
            for (const policy of [0, 1, 2, 3]) {
              const acceptGap = (policy & 1) === 1;
              yield {
                covered,
                lost: lost & ~covered,
                committed,
                origin,
                earliest,
                latest,
                acceptGap,
                skip: policy > 1,
              };
            }
}

/** What is wrong with an answer for this world; null if nothing. */
function judge(w: SmallWorld, plan: StartPlan | Failure): string | null {
  const known = w.covered | w.lost;
  const places = Array.from({ length: N }, (_, p) => p);
  const begun = [...places.filter((p) => has(known, p)), ...(w.origin === null ? [] : [w.origin])];
  // From here on we answer for every position.
  const floor =
    begun.length > 0 ? Math.min(...begun) : w.committed === null ? null : Math.min(w.earliest, w.committed);
  const missing = (to: number) =>
    places.filter((p) => floor !== null && p >= floor && p < to && !has(known, p));
  if (plan instanceof Failure) return judgeRefusal(w, plan, missing);
  const position = Number(plan.position);
  const newLost = bitsOf(plan.newLost);
  const accounted = known | newLost;
  if (floor !== null) {
    const from = w.committed === null ? floor : Math.min(floor, w.committed);
    const stepped = places.find((p) => p >= from && p < position && !has(accounted, p));
    if (stepped !== undefined) return `steps over ${stepped}`;
  }
  if (has(accounted, position)) return "would read what is accounted for";
  if (position < w.earliest || position > w.latest) return "begins outside of the log";
  if ((newLost & known) !== 0) return "records as lost what is known";
  if (newLost !== 0 && !w.acceptGap && !w.skip) return "gives up records that nobody allowed to";
  if ((bitsOf(plan.skip) & ~accounted) !== 0) return "skips what is not accounted for";
  if ((bitsOf(plan.passed) & ~w.covered) !== 0) return "counts as passed what is not covered";
  const unskipped = places.find((p) => p > position && has(accounted, p) && !has(bitsOf(plan.skip), p));
  return unskipped === undefined ? null : `would write ${unskipped} again`;
}

function judgeRefusal(w: SmallWorld, f: Failure, missing: (to: number) => number[]): string | null {
  switch (f.code) {
    case "delivery.commit_beyond_coverage":
      return w.committed === null || w.acceptGap || missing(w.committed).length === 0
        ? "refused without a gap"
        : null;
    case "delivery.retention_gap":
      return w.skip || w.earliest === 0 ? "refused although nothing was removed, or it may be skipped" : null;
    case "delivery.position_beyond_log":
      return w.latest === N ? "refused although the log is whole" : null;
    default:
      return `refused with ${f.code}`;
  }
}

test("in every small world nothing that we answer for is stepped over, and nothing is read twice", () => {
  let worlds = 0;
  const wrong: string[] = [];
  for (const w of smallWorlds()) {
    worlds++;
    let plan: StartPlan | Failure;
    try {
      plan = planStart(
        input({
          covered: rangesOf(w.covered),
          lost: rangesOf(w.lost),
          committed: w.committed === null ? null : BigInt(w.committed),
          origin: w.origin === null ? null : BigInt(w.origin),
          earliest: BigInt(w.earliest),
          latest: BigInt(w.latest),
          acceptGap: w.acceptGap,
          retention: w.skip ? "skip" : "fail",
        }),
      );
    } catch (e) {
      if (!(e instanceof Failure)) throw e;
      plan = e;
    }
    const complaint = judge(w, plan);
    if (complaint !== null) wrong.push(`${complaint}: ${JSON.stringify(w)}`);
  }
  expect(wrong.slice(0, 5)).toEqual([]);
  expect(worlds).toBe(32 * 3 * 7 * 3 * 5 * 4);
});

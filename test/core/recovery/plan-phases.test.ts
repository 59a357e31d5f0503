/**
 * Goal: what is filled together has one plan and reaches over the end of no epoch, and nothing is left out. Method: epochs and gaps
 * written by hand; made at random, every position is asked which plan it has by the definition.
 */
import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { normalRanges } from "../../../src/core/coverage/ranges.ts";
import { type PlanPiece, planPhases, plansOf } from "../../../src/core/recovery/plan-phases.ts";

const S = "kafka/c/orders/0/0";
const T = "kafka/c/orders/0/1";
const range = (from: number, next: number) => ({ from: BigInt(from), next: BigInt(next) });
const pieces = (...all: readonly (readonly [number, string | null])[]): PlanPiece[] =>
  all.map(([from, plan]) => ({ from: BigInt(from), plan }));

describe("phases", () => {
  test("without epochs there is one, of the plan of now", () => {
    const lacks = new Map([["typed", new Map([[S, normalRanges([range(0, 10), range(20, 30)])]])]]);
    expect(planPhases(lacks, new Map())).toEqual([{ plan: null, lacks }]);
    const sinks = new Map([["typed", new Map([[S, pieces([5, null])]])]]);
    expect(planPhases(lacks, sinks)).toEqual([{ plan: null, lacks }]);
  });

  test("a plan that comes back is a phase of its own; sinks and streams of one plan go together", () => {
    const lacks = new Map([
      ["typed", new Map([[S, normalRanges([range(0, 50)])]])],
      [
        "late",
        new Map([
          [S, normalRanges([range(0, 20)])],
          [T, normalRanges([range(3, 4)])],
        ]),
      ],
    ]);
    const sinks = new Map([
      ["typed", new Map([[S, pieces([0, "a"], [10, "b"], [20, "a"], [30, null])]])],
      ["late", new Map([[T, pieces([0, "b"])]])],
    ]);
    const of = (sink: string, stream: string, from: number, next: number) =>
      [sink, new Map([[stream, [range(from, next)]]])] as const;
    expect(planPhases(lacks, sinks)).toEqual([
      { plan: "a", lacks: new Map([of("typed", S, 0, 10)]) },
      { plan: "b", lacks: new Map([of("typed", S, 10, 20), of("late", T, 3, 4)]) },
      { plan: "a", lacks: new Map([of("typed", S, 20, 30)]) },
      { plan: null, lacks: new Map([of("typed", S, 30, 50), of("late", S, 0, 20)]) },
    ]);
  });

  test("each position that is lacking is in one, of its plan, and no window would reach over another plan", () => {
    const plan = fc.constantFrom(null, "a", "b");
    const epochs = fc.uniqueArray(fc.tuple(fc.nat(40), plan), { selector: ([from]) => from });
    const gaps = fc.array(fc.tuple(fc.nat(40), fc.nat(9)));
    fc.assert(
      fc.property(epochs, gaps, (at, lacking) => {
        const own = pieces(...at.toSorted(([a], [b]) => a - b));
        const planAt = (p: bigint) => own.findLast((e) => e.from <= p)?.plan ?? null;
        const ranges = normalRanges(lacking.map(([from, n]) => range(from, from + n)));
        const lacks = new Map([["typed", new Map([[S, ranges]])]]);
        const phases = planPhases(lacks, new Map([["typed", new Map([[S, own]])]]));
        const seen: bigint[] = [];
        for (const { plan: of, lacks: part } of phases) {
          const mine = part.get("typed")!.get(S)!;
          for (let p = mine[0]!.from; p < mine.at(-1)!.next; p++) expect(planAt(p)).toBe(of);
          for (const r of mine) for (let p = r.from; p < r.next; p++) seen.push(p);
        }
        const all = ranges.flatMap((r) =>
          Array.from({ length: Number(r.next - r.from) }, (_, i) => r.from + BigInt(i)),
        );
        expect(seen.toSorted((a, b) => Number(a - b))).toEqual(all);
      }),
    );
  });
});

test("the plans of ranges, each once", () => {
  const of = plansOf(normalRanges([range(5, 25), range(40, 50)]), pieces([10, "a"], [20, null], [30, "a"]));
  expect(of).toEqual([
    { plan: null, ranges: [range(5, 10), range(20, 25)] },
    { plan: "a", ranges: [range(10, 20), range(40, 50)] },
  ]);
});

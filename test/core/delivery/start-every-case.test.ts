/**
 * Goal: the start rule keeps its promises in every case, not in those that somebody thought of.
 * Method: all coverages of six positions with losses, commits, origins, logs and policies; what must hold is told
 * position by position, apart from how the rule computes it.
 */
import { expect, test } from "bun:test";
import { normalRanges, type Ranges } from "../../../src/core/coverage/ranges.ts";
import { planStart, type StartInput, type StartPlan } from "../../../src/core/delivery/start.ts";
import { Failure } from "../../../src/core/failure/failure.ts";

const POSITIONS = [0, 1, 2, 3, 4, 5];

function setOf(ranges: Ranges): Set<number> {
  return new Set(POSITIONS.filter((p) => ranges.some((r) => Number(r.from) <= p && p < Number(r.next))));
}

function rangesOf(mask: number): Ranges {
  const each = POSITIONS.filter((p) => ((mask >> p) & 1) === 1);
  return normalRanges(each.map((p) => ({ from: BigInt(p), next: BigInt(p + 1) })));
}

/** What is true of an input, before any plan. */
interface Facts {
  readonly known: ReadonlySet<number>;
  /** Positions that the commit claims although nothing accounts for them. */
  readonly hidden: readonly number[];
  /** Positions that should still be read and that the log no longer has. */
  readonly gone: readonly number[];
  /** Where reading would go on by itself. */
  readonly wanted: number;
}

function factsOf(input: StartInput): Facts {
  const known = new Set([...setOf(input.covered), ...setOf(input.lost)]);
  const [start, end] = [Number(input.earliest), Number(input.latest)];
  const begun = Math.min(...known, input.origin == null ? Number.POSITIVE_INFINITY : Number(input.origin));
  const first = Number.isFinite(begun) ? begun : null;
  const committed = input.committed === null ? null : Number(input.committed);
  const hidden = POSITIONS.filter(
    (p) => committed !== null && p < committed && p >= (first ?? start) && !known.has(p),
  );
  const wanted = committed ?? first ?? (input.start === "latest" ? end : start);
  const gone = POSITIONS.filter((p) => p >= wanted && p < start && !known.has(p));
  return { known, hidden, gone, wanted };
}

/** The code that must come, null if a plan must. */
function refusalOf(input: StartInput, f: Facts): string | null {
  if (f.hidden.length > 0 && !input.acceptGap) return "delivery.commit_beyond_coverage";
  if (f.gone.length > 0 && input.retention === "fail") return "delivery.retention_gap";
  const settled = new Set([...f.known, ...f.hidden, ...f.gone]);
  let at = f.wanted;
  while (settled.has(at)) at++;
  return at > Number(input.latest) ? "delivery.position_beyond_log" : null;
}

const PROMISES: Record<string, (plan: StartPlan, input: StartInput, f: Facts) => boolean> = {
  "nothing is left out": (plan, _, f) => {
    const settled = new Set([...f.known, ...setOf(plan.newLost)]);
    return POSITIONS.every((p) => p < f.wanted || p >= Number(plan.position) || settled.has(p));
  },
  "it begins within the log": (plan, input) =>
    plan.position >= input.earliest && plan.position <= input.latest,
  "it begins where there is something to do": (plan, _, f) => !f.known.has(Number(plan.position)),
  "exactly what is settled above is skipped": (plan, _, f) => {
    const skip = setOf(plan.skip);
    const above = POSITIONS.filter((p) => p > Number(plan.position));
    return above.every((p) => skip.has(p) === f.known.has(p)) && skip.size <= above.length;
  },
  "exactly what the commit hides is given up as accepted": (plan, _, f) =>
    same(setOf(plan.newLost.filter((l) => l.reason === "accepted_gap")), f.hidden),
  "exactly what is gone is given up as such": (plan, _, f) =>
    same(setOf(plan.newLost.filter((l) => l.reason === "retention")), f.gone),
  "what was passed over is told": (plan, input) => {
    const { committed } = input;
    const passed = [...setOf(input.covered)].filter(
      (p) => committed !== null && p >= Number(committed) && p < Number(plan.position),
    );
    return same(setOf(plan.passed), passed);
  },
};

function same(a: ReadonlySet<number>, b: readonly number[]): boolean {
  return a.size === b.length && b.every((p) => a.has(p));
}

function complaint(input: StartInput): string | null {
  const facts = factsOf(input);
  const refusal = refusalOf(input, facts);
  try {
    const plan = planStart(input);
    if (refusal !== null) return `not refused with ${refusal}`;
    return Object.keys(PROMISES).find((name) => !PROMISES[name]?.(plan, input, facts)) ?? null;
  } catch (e) {
    if (!(e instanceof Failure)) throw e;
    return e.code === refusal ? null : `refused with ${e.code} instead of ${refusal}`;
  }
}

/** All combinations, one value of each list. */
function product<T extends Record<string, readonly unknown[]>>(lists: T): { [K in keyof T]: T[K][number] }[] {
  return Object.entries(lists).reduce<Record<string, unknown>[]>(
    (all, [name, values]) => all.flatMap((one) => values.map((v) => ({ ...one, [name]: v }))),
    [{}],
  ) as { [K in keyof T]: T[K][number] }[];
}

test("every small case keeps the promises", () => {
  const cases = product({
    covered: Array.from({ length: 64 }, (_, mask) => mask),
    lost: [0, 0b000100, 0b010010, 0b100001],
    committed: [null, 0n, 1n, 3n, 6n],
    origin: [null, 0n, 2n],
    log: [
      [0n, 6n],
      [2n, 6n],
      [4n, 4n],
      [3n, 5n],
    ] as const,
    start: ["earliest", "latest"] as const,
    acceptGap: [false, true],
    retention: ["fail", "skip"] as const,
  }).filter((c) => (c.covered & c.lost) === 0);
  // 64 + 32 + 16 + 16 disjoint pairs of covered and lost, times 5 x 3 x 4 x 2 x 2 x 2.
  expect(cases.length).toBe(61_440);
  const complaints: string[] = [];
  for (const { log, covered, lost, ...rest } of cases) {
    const [earliest, latest] = log;
    const input: StartInput = {
      ...rest,
      stream: "s",
      place: "p",
      covered: rangesOf(covered),
      lost: rangesOf(lost),
      earliest,
      latest,
    };
    const wrong = complaint(input);
    if (wrong === null) continue;
    const shown = JSON.stringify(input, (_, v: unknown) => (typeof v === "bigint" ? Number(v) : v));
    complaints.push(`${wrong}: ${shown}`);
  }
  expect(complaints.slice(0, 3)).toEqual([]);
});

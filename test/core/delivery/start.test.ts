/**
 * Goal: where a stream goes on (rule 6 of the design, section 5) is right for every mix of commit, coverage and log.
 * Method: named cases whose answers are written by hand. Every small case is in start-every-case.test.ts.
 */
import { describe, expect, test } from "bun:test";
import type { Ranges } from "../../../src/core/coverage/ranges.ts";
import { planStart, type StartInput, type StartPlan } from "../../../src/core/delivery/start.ts";
import { Failure } from "../../../src/core/failure/failure.ts";

const ranges = (...pairs: [number, number][]): Ranges =>
  pairs.map(([from, next]) => ({ from: BigInt(from), next: BigInt(next) }));

const BASE: StartInput = {
  stream: "kafka/c/orders/0/3",
  place: "orders/3",
  committed: null,
  covered: [],
  lost: [],
  origin: null,
  start: "earliest",
  earliest: 0n,
  latest: 1000n,
  acceptGap: false,
  retention: "fail",
};

function failureOf(input: StartInput): Failure {
  try {
    planStart(input);
  } catch (e) {
    if (e instanceof Failure) return e;
    throw e;
  }
  throw new Error("did not fail");
}

const lostOf = (p: StartPlan) => p.newLost.map((l) => [Number(l.from), Number(l.next), l.reason]);

describe("neither commit nor coverage: the configured start", () => {
  test.each([
    ["earliest", 100n],
    ["latest", 1000n],
    [500n, 500n],
  ] as const)("%p", (start, position) => {
    const plan = planStart({ ...BASE, start, earliest: 100n });
    expect(plan).toEqual({ position, why: "configured", skip: [], passed: [], newLost: [] });
  });

  test("an origin recorded by a run that died before it landed anything comes before a later 'latest'", () => {
    const plan = planStart({ ...BASE, start: "latest", origin: 400n });
    expect([plan.position, plan.why]).toEqual([400n, "covered"]);
  });

  test("a start before the log's begin is a gap by the policy", () => {
    expect(failureOf({ ...BASE, start: 50n, earliest: 100n }).code).toBe("delivery.retention_gap");
    const plan = planStart({ ...BASE, start: 50n, earliest: 100n, retention: "skip" });
    expect([plan.position, lostOf(plan)]).toEqual([100n, [[50, 100, "retention"]]]);
  });
});

describe("coverage without commit", () => {
  test("the first hole is where reading goes on; what is covered above it is skipped", () => {
    const plan = planStart({ ...BASE, covered: ranges([100, 200], [300, 400]) });
    expect(plan).toEqual({
      position: 200n,
      why: "covered",
      skip: ranges([300, 400]),
      passed: [],
      newLost: [],
    });
  });

  test("what was read before the first covered set but never landed is read again", () => {
    const plan = planStart({ ...BASE, origin: 50n, covered: ranges([100, 200]) });
    expect([plan.position, plan.skip]).toEqual([50n, ranges([100, 200])]);
  });

  test("lost ranges count as settled: nothing waits for them", () => {
    expect(planStart({ ...BASE, covered: ranges([0, 10]), lost: ranges([10, 20]) }).position).toBe(20n);
  });
});

describe("commit and coverage", () => {
  test("commit equal to coverage: there", () => {
    const plan = planStart({ ...BASE, committed: 200n, covered: ranges([0, 200]) });
    expect(plan).toEqual({ position: 200n, why: "committed", skip: [], passed: [], newLost: [] });
  });

  test("commit behind coverage: covered records are passed over and told", () => {
    const plan = planStart({
      ...BASE,
      committed: 50n,
      covered: ranges([0, 200], [300, 400]),
      lost: ranges([200, 210]),
    });
    expect(plan.position).toBe(210n);
    expect(plan.passed).toEqual(ranges([50, 200]));
    expect(plan.skip).toEqual(ranges([300, 400]));
  });

  test("commit beyond coverage: refused, and the message names what is missing and what to do", () => {
    const f = failureOf({ ...BASE, committed: 250n, covered: ranges([0, 100], [120, 200]) });
    expect([f.code, f.kind, f.at]).toEqual(["delivery.commit_beyond_coverage", "runtime", "orders/3"]);
    expect(f.message).toContain("[100, 120), [200, 250)");
    expect(f.hint).toContain("--accept-gap");
    expect(f.hint).toContain("100");
  });

  test("commit beyond coverage, accepted: recorded as lost, reading goes on at the commit", () => {
    const plan = planStart({
      ...BASE,
      committed: 250n,
      covered: ranges([0, 100], [120, 200]),
      acceptGap: true,
    });
    expect([plan.position, plan.why]).toEqual([250n, "accepted_gap"]);
    expect(lostOf(plan)).toEqual([
      [100, 120, "accepted_gap"],
      [200, 250, "accepted_gap"],
    ]);
  });

  test("a commit without any coverage (removed, or another consumer's group) is beyond it", () => {
    expect(failureOf({ ...BASE, committed: 250n, earliest: 10n }).message).toContain("[10, 250)");
  });

  test("a commit at the begin of the log without coverage leaves nothing out", () => {
    expect(planStart({ ...BASE, committed: 10n, earliest: 10n }).position).toBe(10n);
  });

  test("many missing ranges keep the message a line", () => {
    const covered = ranges([0, 1], [2, 3], [4, 5], [6, 7], [8, 9]);
    expect(failureOf({ ...BASE, committed: 10n, covered }).message).toContain("[5, 6) and 2 more ranges");
  });

  test("a commit set back by hand below all coverage is obeyed", () => {
    const plan = planStart({ ...BASE, committed: 20n, covered: ranges([100, 200]) });
    expect([plan.position, plan.skip]).toEqual([20n, ranges([100, 200])]);
  });
});

describe("what the log still has", () => {
  test("retention passed the position: refused with the range, or recorded as lost up to where reading can go on", () => {
    const input = {
      ...BASE,
      committed: 100n,
      covered: ranges([0, 100], [120, 130], [150, 160]),
      earliest: 155n,
    };
    const f = failureOf(input);
    expect([f.code, f.at]).toEqual(["delivery.retention_gap", "orders/3"]);
    expect(f.message).toContain("[100, 120), [130, 150)");
    const plan = planStart({ ...input, retention: "skip" });
    expect([plan.position, lostOf(plan)]).toEqual([
      160n,
      [
        [100, 120, "retention"],
        [130, 150, "retention"],
      ],
    ]);
  });

  test("retention passed covered records only: no gap", () => {
    expect(planStart({ ...BASE, committed: 50n, covered: ranges([0, 100]), earliest: 90n }).position).toBe(
      100n,
    );
  });

  test("a log that ends before the position is another log", () => {
    const f = failureOf({ ...BASE, committed: 200n, covered: ranges([0, 200]), latest: 150n });
    expect(f.code).toBe("delivery.position_beyond_log");
    expect(f.message).toContain("200");
    expect(f.message).toContain("150");
  });
});

/** The committer of sinks that commit by themselves: what it tells, in order, and what it refuses to believe. */
import { expect, test } from "bun:test";
import { CoveredCommitter } from "../../../src/core/delivery/covered-committer.ts";
import type { TwgEvent } from "../../../src/core/observe/events.ts";
import type { SealedSet } from "../../../src/core/ports/lane.ts";
import { SimTime } from "../../sim/clock.ts";

const span = { stream: "kafka/c/t/0/0", from: 3n, next: 9n };
const set: SealedSet = {
  id: "a",
  lane: 0,
  epoch: 0,
  targets: [],
  spans: [span],
  covered: true,
  rows: 6,
  bytes: 60,
  openedAt: 0,
  sealMs: 4,
  reason: "interval",
};

function committer() {
  const told: unknown[] = [];
  const unexpected = () => {
    throw new Error("not expected");
  };
  const made = new CoveredCommitter({
    sink: "raw",
    clock: new SimTime().clock(null),
    observer: { emit: (e: TwgEvent) => void told.push(e.e) },
    listener: {
      committed: (id, spans) => void told.push([id, spans]),
      refused: unexpected,
      failed: unexpected,
      trouble: unexpected,
    },
  });
  return { made, told };
}

test("a set that is covered is committed on the spot, and nothing is ever under way", async () => {
  const { made, told } = committer();
  made.submit(set);
  await made.idle();
  expect(told).toEqual(["set.covered", ["a", [span]]]);
});

test("a set that is not covered must never be taken for one that is", () => {
  const { made, told } = committer();
  expect(() => made.submit({ ...set, covered: false })).toThrow("sealed and not covered");
  expect(told).toEqual([]);
});

test("a void set needs nothing, and after the end nothing is told", () => {
  const { made, told } = committer();
  made.discard();
  made.close();
  made.submit(set);
  expect(told).toEqual([]);
});

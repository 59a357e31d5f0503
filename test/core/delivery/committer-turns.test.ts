/**
 * Goal: no set falls between two rounds of the committer, whichever turn of the job queue it comes in.
 * Method: a set is submitted n turns after the one before it was told as committed, for every n that matters.
 */
import { expect, test } from "bun:test";
import { Committer } from "../../../src/core/delivery/committer.ts";
import { SimTime } from "../../sim/clock.ts";
import { FakeCoverage, FakeObjects, span } from "../pipeline/fakes.ts";

function world() {
  const time = new SimTime();
  const journal: string[] = [];
  const coverage = new FakeCoverage(journal);
  const committed: string[] = [];
  let told: () => void = () => {};
  const committer = new Committer({
    sink: "raw",
    coverage,
    objects: new FakeObjects(journal),
    clock: time.clock(null),
    observer: { emit: () => {} },
    listener: {
      committed: (id) => {
        committed.push(id);
        told();
      },
      refused: () => {},
      failed: (f) => {
        throw f;
      },
      trouble: () => {},
    },
  });
  const submit = (id: string, from: number) => {
    const spans = [span(0, from, from + 1)];
    const rest = { lane: 0, epoch: 0, rows: 1, bytes: 1, reason: "bytes", openedAt: 0, sealMs: 0 } as const;
    committer.submit({ id, targets: [], covered: false, spans, ...rest }, []);
  };
  return {
    time,
    committer,
    committed,
    submit,
    whenTold: () =>
      new Promise<void>((resolve) => {
        told = resolve;
      }),
  };
}

test("a set that comes in the turn in which a round ends is taken by the next", async () => {
  for (let turns = 0; turns < 12; turns++) {
    const { committer, committed, submit, whenTold } = world();
    const told = whenTold();
    submit("first", 0);
    await told;
    for (let i = 0; i < turns; i++) await Promise.resolve();
    submit("second", 1);
    await committer.idle();
    expect([turns, ...committed]).toEqual([turns, "first", "second"]);
  }
});

test("a closed committer takes nothing more, and is idle", async () => {
  const { committer, committed, submit } = world();
  committer.close();
  submit("late", 0);
  await committer.idle();
  expect(committed).toEqual([]);
});

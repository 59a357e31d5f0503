/**
 * Goal: a stream that cannot begin holds up no other, it is tried again and told, and nothing goes on after the end. Method: a
 * `begin` whose answers the test gives, on a clock that it moves.
 */
import { expect, test } from "bun:test";
import { Failure } from "../../../src/core/failure/failure.ts";
import { BegunStreams } from "../../../src/core/pipeline/begun-streams.ts";
import { ManualClock } from "../../brokers/kafka/manual-clock.ts";

const DENIED = new Failure("coverage.too_large", "denied");
const placed = (stream: number) => ({
  ...{ stream, key: `s${stream}`, lane: 0, position: 0n, skip: [], generation: 1 },
});
type Answer = ReadonlyMap<string, Failure> | Failure;
const ALL: Answer = new Map();

async function settle(): Promise<void> {
  for (let i = 0; i < 50; i++) await Promise.resolve();
}

/** `seen`: what was asked to begin, what was told, and that more have. */
function beginning() {
  const clock = new ManualClock();
  const seen: string[] = [];
  const asked: ((answer: Answer) => Promise<void>)[] = [];
  const begun = new BegunStreams(
    (streams) => {
      seen.push(streams.map((s) => s.key).join());
      const { promise, resolve, reject } = Promise.withResolvers<ReadonlyMap<string, Failure>>();
      asked.push((answer) => {
        if (answer instanceof Failure) reject(answer);
        else resolve(answer);
        return settle();
      });
      return promise;
    },
    { clock, says: (f) => void seen.push(f?.message ?? "well"), moved: () => void seen.push("moved") },
  );
  const answer = (of: Answer) => asked.shift()!(of);
  const retried = () => {
    clock.advance(2_000);
    return settle();
  };
  return { begun, seen, answer, retried, timers: () => clock.waiting };
}

test("those that can begin do; the others are told and tried again, and new ones do not wait for them", async () => {
  const { begun, seen, answer, retried } = beginning();
  begun.add([placed(0), placed(1)]);
  await answer(new Map([["s1", DENIED]]));
  expect([begun.has(0), begun.has(1)]).toEqual([true, false]);
  begun.add([placed(2)]);
  await answer(new Map([["s1", DENIED]]));
  expect([begun.has(1), begun.has(2)]).toEqual([false, true]);
  await retried();
  await answer(ALL);
  expect(begun.has(1)).toBe(true);
  expect(seen).toEqual([
    ...["s0,s1", "moved", "denied", "s1,s2", "moved", "denied"],
    ...["s1", "moved", "well"],
  ]);
});

test("what failed of streams that went elsewhere is over", async () => {
  const { begun, seen, answer, retried } = beginning();
  begun.add([placed(0)]);
  await answer(DENIED);
  begun.forget([0]);
  await retried();
  expect(seen).toEqual(["s0", "denied", "well"]);
});

test("after the end nothing is told, and no timer is left", async () => {
  const { begun, seen, answer, timers } = beginning();
  begun.add([placed(0)]);
  begun.close();
  await answer(DENIED);
  begun.add([placed(1)]);
  expect([seen, timers()]).toEqual([["s0"], 0]);
});

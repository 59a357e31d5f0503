/**
 * Goal: positions are told once an interval, never two commits at a time, and `flush` ends only when everything that was
 * done before it was told or could not be. Method: simulated time, a broker that answers when the test says so.
 */
import { expect, test } from "bun:test";
import { ConsumerCommits } from "../../../src/adapters/kafka/consumer-commits.ts";
import { SimTime } from "../../sim/clock.ts";

function bench(intervalMs: number) {
  const time = new SimTime();
  const told: string[] = [];
  const answers: PromiseWithResolvers<void>[] = [];
  const commits = new ConsumerCommits({
    clock: time.clock(null),
    commit: (marks) => {
      told.push(marks.map(({ stream, next }) => `${stream}:${next}`).join(" "));
      const answer = Promise.withResolvers<void>();
      answers.push(answer);
      return answer.promise;
    },
    intervalMs,
  });
  const pass = (ms: number) => time.runUntil(() => false, time.nowMs + ms);
  return { commits, told, answers, pass };
}

test("the first at once, the others together when the interval is over, one at a time", async () => {
  const { commits, told, answers, pass } = bench(1_000);
  expect(commits.done(0, 5n)).toBeNull();
  expect(told).toEqual(["0:5"]);
  commits.done(0, 9n);
  commits.done(1, 3n);
  commits.done(0, 12n);
  await pass(5_000);
  expect(told).toEqual(["0:5"]);
  answers[0]!.resolve();
  await pass(1);
  expect(told).toEqual(["0:5", "0:12 1:3"]);
  answers[1]!.resolve();
  commits.done(1, 4n);
  await pass(900);
  expect(told.length).toBe(2);
  await pass(200);
  expect(told[2]).toBe("1:4");
});

test("a flush waits for what is under way and for what was done meanwhile", async () => {
  const { commits, told, answers, pass } = bench(1_000);
  commits.done(0, 5n);
  commits.done(0, 7n);
  let flushed = false;
  const flush = commits.flush().then(() => {
    flushed = true;
  });
  await pass(1);
  expect(told).toEqual(["0:5"]);
  answers[0]!.resolve();
  await pass(1);
  expect(told).toEqual(["0:5", "0:7"]);
  expect(flushed).toBe(false);
  answers[1]!.resolve();
  await flush;
});

test("what could not be told is told again, unless a later position is, and a flush does not wait for ever", async () => {
  const { commits, told, answers, pass } = bench(100);
  commits.done(0, 5n);
  commits.done(1, 2n);
  commits.done(0, 6n);
  answers[0]!.reject(new Error("no"));
  await pass(1);
  expect(told.length).toBe(1);
  await pass(200);
  expect(told[1]).toBe("1:2 0:6");
  const flush = commits.flush();
  answers[1]!.reject(new Error("no"));
  await pass(1);
  expect(told[2]).toBe("1:2 0:6");
  answers[2]!.reject(new Error("no"));
  await flush;
});

test("of streams that were lost nothing is told, and nothing by itself after the stop", async () => {
  const { commits, told, answers, pass } = bench(100);
  commits.done(0, 1n);
  answers[0]!.resolve();
  await pass(1);
  commits.done(0, 2n);
  commits.done(1, 2n);
  commits.forget([0]);
  await pass(200);
  expect(told).toEqual(["0:1", "1:2"]);
  answers[1]!.resolve();
  await pass(1);
  commits.done(1, 3n);
  answers[2]!.resolve();
  await pass(1);
  commits.done(1, 4n);
  commits.stop();
  commits.done(1, 5n);
  await pass(1_000);
  expect(told).toEqual(["0:1", "1:2", "1:3"]);
});

test("an interval of 0 tells each and lets its caller wait", async () => {
  const { commits, told, answers, pass } = bench(0);
  let waited = false;
  const done = commits.done(0, 5n)!.then(() => {
    waited = true;
  });
  await pass(1_000);
  expect([told, waited]).toEqual([["0:5"], false]);
  answers[0]!.resolve();
  await done;
  const failed = commits.done(0, 6n);
  await pass(1);
  answers[1]!.reject(new Error("no"));
  await failed;
  await pass(1_000);
  expect(told).toEqual(["0:5", "0:6"]);
});

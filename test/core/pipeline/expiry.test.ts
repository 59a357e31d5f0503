/**
 * Goal: raw that is about to go while a sink lacks it is told, by the age of what is there and of what was before. Method: landings by
 * hand under a clock by hand; ages as a store would tell them.
 */
import { expect, test } from "bun:test";
import type { Ranges } from "../../../src/core/coverage/ranges.ts";
import { GapBook } from "../../../src/core/delivery/gap-book.ts";
import type { TwgEvent } from "../../../src/core/observe/events.ts";
import { Expiry } from "../../../src/core/pipeline/expiry.ts";
import { SimTime } from "../../sim/clock.ts";

const RETENTION_MS = 1_000;
const range = (from: number, next: number) => ({ from: BigInt(from), next: BigInt(next) });

function world(ages: Record<string, number | null>) {
  const time = new SimTime();
  const clock = time.clock(null);
  const book = new GapBook();
  const told: TwgEvent[] = [];
  const asked: string[] = [];
  const ageOf = async (stream: string, position: bigint) => {
    asked.push(`${stream}@${position}`);
    return ages[`${stream}@${position}`] ?? null;
  };
  const expiry = new Expiry({ retentionMs: RETENTION_MS, ageOf }, book, clock, { emit: (e) => told.push(e) });
  const look = (has: Ranges) =>
    expiry.look(
      "s",
      book.of(() => has, clock.monotonic()),
    );
  const pass = (ms: number) => {
    time.nowMs += ms;
  };
  return { book, told, asked, look, pass, clock };
}

test("what came while we looked: once a quarter of its time is left, and no more when it is filled", () => {
  const { book, told, look, pass, clock } = world({});
  book.begin("a", clock.monotonic());
  pass(100);
  book.landed([{ stream: "a", ...range(0, 10) }], clock.monotonic());
  pass(740);
  expect(look([])).toBe(false);
  pass(10);
  expect(look([range(0, 4)])).toBe(true);
  expect(told).toEqual([{ e: "sink.gap_expiring", sink: "s", leftMs: 250, positions: 6n }]);
  pass(5_000);
  look([]);
  expect(told.at(-1)).toMatchObject({ leftMs: 0 });
  expect(look([range(0, 10)])).toBe(false);
});

test("what was there before is as old as its file, which is asked for once", async () => {
  const { book, asked, look, clock } = world({ "a@0": 800, "a@5": 100 });
  book.begin("a", clock.monotonic());
  book.had("a", [range(0, 10)]);
  expect(look([range(0, 5)])).toBe(false);
  await Promise.resolve();
  // The younger part does not tell how old the rest is.
  expect(look([range(0, 5)])).toBe(false);
  expect(look([])).toBe(false);
  await Promise.resolve();
  expect(look([])).toBe(true);
  expect(asked).toEqual(["a@5", "a@0"]);
});

test("of many streams one is asked for at a time, each in its turn, also behind one of which nothing is said", async () => {
  const clock = new SimTime().clock(null);
  const book = new GapBook();
  const streams = ["a", "b", "c"];
  for (const s of streams) {
    book.begin(s, clock.monotonic());
    book.had(s, [range(0, 10)]);
  }
  const asked: string[] = [];
  let answer = Promise.withResolvers<number | null>();
  const ageOf = (stream: string) => {
    asked.push(stream);
    return answer.promise;
  };
  const expiry = new Expiry({ retentionMs: RETENTION_MS, ageOf }, book, clock, { emit: () => {} });
  const look = () =>
    expiry.look(
      "s",
      book.of(() => [], clock.monotonic()),
    );
  for (const s of [...streams, "a"]) {
    look();
    look();
    expect(asked.at(-1)).toBe(s);
    const { reject } = answer;
    answer = Promise.withResolvers();
    reject(new Error("not now"));
    await Promise.resolve();
  }
  expect(asked).toEqual(["a", "b", "c", "a"]);
});

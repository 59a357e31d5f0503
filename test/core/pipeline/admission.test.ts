/** What a lane may fetch: the tightest of the byte budget and the rate limits, under a simulated clock. */
import { beforeEach, expect, test } from "bun:test";
import { Budget } from "../../../src/core/delivery/budget.ts";
import { rateLimit } from "../../../src/core/delivery/rate-limit.ts";
import { SizeEstimate } from "../../../src/core/delivery/size-estimate.ts";
import { Admission } from "../../../src/core/pipeline/admission.ts";
import { SimTime } from "../../sim/clock.ts";

let time: SimTime;
beforeEach(() => {
  time = new SimTime();
});

function admission(options: { recordsPerSecond?: number; bytesPerSecond?: number } = {}): Admission {
  const clock = time.clock(null);
  const budget = new Budget({ maxBytes: 1000, owners: [0, 1], grainBytes: 10 });
  return new Admission(clock, budget, rateLimit(clock, options), new SizeEstimate(100));
}

const settle = (ms: number) => time.runUntil(() => false, time.nowMs + ms);

test("without a limit the budget decides: what is free, less what is reserved for others", () => {
  const a = admission();
  // 1000 bytes, a reserve of 250 for each of the two lanes.
  expect(a.room(0)).toBe(750);
  a.delivered(0, 600, { records: 1, bytes: 600 });
  expect([a.room(0), a.inFlight]).toEqual([150, 600]);
  a.consumed(0, 600, 3, 600);
  expect([a.room(0), a.inFlight]).toEqual([750, 0]);
});

test("a rate in records is turned into bytes by what a record weighs", () => {
  expect(admission({ recordsPerSecond: 2 }).room(0)).toBe(200);
  expect(admission({ bytesPerSecond: 50 }).room(0)).toBe(50);
});

test("what came is charged; in debt there is no room until time has paid it back", async () => {
  const a = admission({ bytesPerSecond: 100 });
  a.delivered(0, 500, { records: 1, bytes: 500 });
  a.consumed(0, 500, 5, 500);
  expect(a.room(0)).toBe(0);
  let woken = -1;
  a.whenRoom(0, () => {
    woken = time.nowMs;
  });
  await settle(10_000);
  // 100 were there, 500 were spent: 400 at 100 a second.
  expect(woken).toBeGreaterThanOrEqual(4000);
  expect(woken).toBeLessThanOrEqual(4010);
  expect(a.room(0)).toBeGreaterThan(0);
});

test("what came is charged before a lane has read it, by what it seems to hold; then by what it held", () => {
  const a = admission({ recordsPerSecond: 20 });
  a.delivered(0, 100, { records: 12, bytes: 100 });
  a.delivered(0, 100, { records: 9, bytes: 100 });
  expect(a.room(0)).toBe(0);
  // Most of the first one's positions were empty.
  a.consumed(0, 100, 2, 200);
  expect(a.room(0)).toBeGreaterThan(0);
  a.consumed(0, 100, 30, 3000);
  expect(a.room(0)).toBe(0);
});

test("who waits for what seemed to have come is woken when it turns out to be little, or the lane died", async () => {
  const a = admission({ recordsPerSecond: 10 });
  const woken: number[] = [];
  const wait = () => a.whenRoom(0, () => woken.push(time.nowMs));
  // A compacted topic: a million positions with two records.
  a.delivered(0, 100, { records: 1_000_000, bytes: 100 });
  wait();
  await settle(1000);
  expect(woken).toEqual([]);
  const read = time.nowMs;
  a.consumed(0, 100, 2, 100);
  await settle(1000);
  expect(woken).toEqual([expect.any(Number)]);
  expect(woken[0]! - read).toBeLessThan(100);
  a.delivered(0, 100, { records: 1_000_000, bytes: 100 });
  wait();
  await settle(1000);
  expect(woken.length).toBe(1);
  a.laneDied(0);
  await settle(1000);
  expect(woken.length).toBe(2);
});

test("what a lane that died had not read is not charged: it comes again", () => {
  const a = admission({ recordsPerSecond: 2 });
  a.delivered(0, 100, { records: 3, bytes: 100 });
  expect(a.room(0)).toBe(0);
  a.laneDied(0);
  expect(a.room(0)).toBe(200);
});

test("a lane that waits for the budget is woken when bytes come back, once", async () => {
  const a = admission();
  a.delivered(0, 1000, { records: 1, bytes: 1000 });
  let woken = 0;
  a.whenRoom(0, () => {
    woken++;
  });
  await settle(100);
  expect(woken).toBe(0);
  a.consumed(0, 1000, 1, 1000);
  await settle(1);
  a.delivered(0, 1000, { records: 1, bytes: 1000 });
  a.consumed(0, 1000, 1, 1000);
  await settle(100);
  expect(woken).toBe(1);
});

test("bytes of a lane that died are free", () => {
  const a = admission();
  a.delivered(0, 400, { records: 1, bytes: 400 });
  a.delivered(1, 100, { records: 1, bytes: 100 });
  a.laneDied(0);
  expect(a.inFlight).toBe(100);
});

test("closed, nobody is woken any more", async () => {
  const a = admission({ bytesPerSecond: 1 });
  a.consumed(0, 0, 1, 100);
  let woken = false;
  a.whenRoom(0, () => {
    woken = true;
  });
  await settle(1);
  a.close();
  await settle(1_000_000);
  expect(woken).toBe(false);
});

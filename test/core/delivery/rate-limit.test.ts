// Goal: the long-run rate is exact, bursts are bounded, limits compose. Method: a clock that moves when told;
// expected levels are worked out by hand.
import { expect, test } from "bun:test";
import fc from "fast-check";
import { allOf, RateGate, rateLimit, TokenBucket } from "../../../src/core/delivery/rate-limit.ts";
import { ManualClock } from "../../brokers/kafka/manual-clock.ts";

test("a bucket is full at the start, goes into debt, and is paid back by time", () => {
  const clock = new ManualClock();
  const b = new TokenBucket(clock, 100);
  expect(b.level).toBe(100);
  b.spend(300);
  expect(b.level).toBe(-200);
  // 200 tokens at 100 a second.
  expect(b.waitMs()).toBe(2000);
  clock.advance(1999);
  expect(b.waitMs()).toBe(1);
  clock.advance(2);
  expect(b.waitMs()).toBe(0);
});

test("a bucket never holds more than its depth", () => {
  const clock = new ManualClock();
  const b = new TokenBucket(clock, 100, 10);
  clock.advance(3_600_000);
  expect(b.level).toBe(10);
});

test("an exactly empty bucket waits, so nobody spins on it", () => {
  const b = new TokenBucket(new ManualClock(), 100);
  b.spend(100);
  expect(b.level).toBe(0);
  expect(b.waitMs()).toBe(1);
});

test("rates that are no rates are refused", () => {
  const clock = new ManualClock();
  for (const rate of [0, -1, Number.NaN, Infinity])
    expect(() => new TokenBucket(clock, rate)).toThrow("above zero");
});

test("a limit in records is turned into bytes by what a record weighs", () => {
  const clock = new ManualClock();
  const limit = rateLimit(clock, { recordsPerSecond: 10 });
  expect(limit.room(250)).toBe(2500);
  limit.spend(10, 999_999);
  expect(limit.room(250)).toBe(0);
  clock.advance(500);
  expect(limit.room(250)).toBe(1250);
});

test("of a limit in records and one in bytes the tighter one decides", () => {
  const clock = new ManualClock();
  const limit = rateLimit(clock, { recordsPerSecond: 10, bytesPerSecond: 1000 });
  expect(limit.room(250)).toBe(1000);
  expect(limit.room(50)).toBe(500);
  limit.spend(20, 1000);
  // Records: -10 at 10/s. Bytes: 0 at 1000/s.
  expect(limit.waitMs()).toBe(1000);
});

test("no limit has room without end", () => {
  const limit = rateLimit(new ManualClock(), {});
  limit.spend(1e9, 1e12);
  expect(limit.room(1)).toBe(Infinity);
  expect(limit.waitMs()).toBe(0);
});

test("composed limits are all charged and the tightest decides", () => {
  const clock = new ManualClock();
  const one = rateLimit(clock, { bytesPerSecond: 100 });
  const other = rateLimit(clock, { bytesPerSecond: 1000 });
  const both = allOf([one, other]);
  expect(both.room(1)).toBe(100);
  both.spend(1, 200);
  expect(one.waitMs()).toBe(1000);
  expect(other.room(1)).toBe(800);
  expect(both.waitMs()).toBe(1000);
  expect(allOf([]).room(1)).toBe(Infinity);
});

test("a gate wakes its waiters one after the other, as far as the limit allows, with one timer", () => {
  const clock = new ManualClock();
  const limit = rateLimit(clock, { bytesPerSecond: 1000 });
  const gate = new RateGate(clock, limit);
  limit.spend(0, 2000);
  const woken: string[] = [];
  const waiter = (name: string) => () => {
    woken.push(`${name} at ${clock.monotonic()}`);
    limit.spend(0, 500);
  };
  gate.whenOpen(waiter("a"));
  gate.whenOpen(waiter("b"));
  expect(clock.waiting).toBe(1);
  clock.advance(10_000);
  // -1000 is paid after 1 s; a token more needs the next millisecond. Then 500 - 1 more milliseconds to pay a's.
  expect(woken).toEqual(["a at 1001", "b at 1501"]);
  expect(clock.waiting).toBe(0);
});

test("an open gate wakes, but not from within the call, and a closed one never", () => {
  const clock = new ManualClock();
  const gate = new RateGate(clock, rateLimit(clock, {}));
  let woken = 0;
  gate.whenOpen(() => woken++);
  expect(woken).toBe(0);
  clock.advance(0);
  expect(woken).toBe(1);
  gate.whenOpen(() => woken++);
  gate.close();
  clock.advance(1000);
  expect(woken).toBe(1);
  expect(clock.waiting).toBe(0);
});

test("a wake that throws does not stop the gate", () => {
  const clock = new ManualClock();
  const gate = new RateGate(clock, rateLimit(clock, {}));
  let woken = 0;
  gate.whenOpen(() => {
    throw new Error("mine");
  });
  gate.whenOpen(() => woken++);
  expect(() => clock.advance(0)).toThrow("mine");
  clock.advance(0);
  expect(woken).toBe(1);
});

test("property: over any time, no more passes than depth + rate x time + one item", () => {
  const item = fc.record({ wait: fc.nat(500), size: fc.integer({ min: 1, max: 3000 }) });
  fc.assert(
    fc.property(fc.array(item, { maxLength: 100 }), (items) => {
      const clock = new ManualClock();
      const limit = rateLimit(clock, { bytesPerSecond: 1000 });
      let passed = 0;
      for (const i of items) {
        clock.advance(i.wait);
        if (limit.room(1) === 0) continue;
        limit.spend(1, i.size);
        passed += i.size;
        expect(passed).toBeLessThanOrEqual(1000 + clock.monotonic() + i.size);
      }
    }),
  );
});

/** Goal: recovery reads as fast as is configured, moderately beside live ingest, and not while that falls behind. Method: its limit, on a clock that the test moves. */
import { expect, test } from "bun:test";
import { RECOVERY_BESIDE_BYTES_PER_S } from "../../../src/core/config/sections.ts";
import type { RateLimit } from "../../../src/core/delivery/rate-limit.ts";
import type { TwgEvent } from "../../../src/core/observe/events.ts";
import { recoveryLimit } from "../../../src/core/recovery/recovery-limit.ts";
import { Yielding } from "../../../src/core/recovery/yielding.ts";
import { ManualClock } from "../../brokers/kafka/manual-clock.ts";

/** Bytes that are read within a minute in sets of `set` bytes. */
function readIn(clock: ManualClock, limit: RateLimit, set: number): number {
  let read = 0;
  for (let ms = 0; ms < 60_000; ms += 10) {
    for (let sets = 0; sets < 1_000 && limit.room(100) > 0; sets++) {
      limit.spend(set / 100, set);
      read += set;
    }
    clock.advance(10);
  }
  return read;
}

test("as configured, in bytes or in records", () => {
  const clock = new ManualClock();
  const live = { isLive: () => false, waits: null };
  const bytes = recoveryLimit({ max_bytes_per_s: 1_000 }, clock, live);
  const records = recoveryLimit({ max_records_per_s: 10 }, clock, live);
  // A second's worth at the start, and a set more than there is room for.
  for (const limit of [bytes, records]) expect(readIn(clock, limit, 5_000)).toBeWithin(60_000, 66_001);
});

test("without a limit moderately while somebody writes live, and freely else", () => {
  const clock = new ManualClock();
  const state = { live: false };
  const limit = recoveryLimit({}, clock, { isLive: () => state.live, waits: null });
  limit.spend(1, 1e12);
  expect([limit.room(100), limit.waitMs()]).toEqual([Number.POSITIVE_INFINITY, 0]);
  state.live = true;
  const minute = 60 * RECOVERY_BESIDE_BYTES_PER_S;
  expect(readIn(clock, limit, RECOVERY_BESIDE_BYTES_PER_S / 4)).toBeWithin(minute, 1.05 * minute);
  state.live = false;
  expect(limit.room(100)).toBe(Number.POSITIVE_INFINITY);
});

function yielding() {
  const clock = new ManualClock();
  const events: TwgEvent[] = [];
  const load = { backlog: 0, fetched: 0 };
  const limit = new Yielding({ clock, observer: { emit: (e) => events.push(e) }, load: () => load });
  /** Of live ingest at 20,000 positions a second with so many to fetch. */
  const pass = (seconds: number, backlog: number) => {
    load.backlog = backlog;
    for (let i = 0; i < 2 * seconds; i++) {
      clock.advance(500);
      load.fetched += 10_000;
      limit.room();
    }
    return limit.room() > 0;
  };
  return { limit, pass, events, clock };
}

test("it waits while live records are behind, and goes on once they are not", () => {
  const { limit, pass, events } = yielding();
  expect([pass(60, 0), pass(5, 30_000)]).toEqual([true, true]);
  expect([pass(1, 50_000), limit.waitMs() > 0]).toEqual([false, true]);
  // Less than two seconds, and more than one.
  expect(pass(1, 30_000)).toBe(false);
  expect([pass(1, 15_000), limit.waitMs()]).toEqual([true, 0]);
  expect(events).toEqual([
    { e: "recovery.yields", backlog: 50_000 },
    { e: "recovery.resumes", ms: 2_000 },
  ]);
});

test("a few records are no backlog, however slow the pipeline is", () => {
  const { limit, events } = yielding();
  const slow = yielding();
  expect([slow.pass(1, 9_000), limit.room() > 0, events]).toEqual([true, true, []]);
});

test("a pipeline that is behind for good lets it read a set every half a minute", () => {
  const { limit, pass } = yielding();
  pass(10, 0);
  expect(pass(29, 1e6)).toBe(false);
  expect(pass(2, 1e6)).toBe(true);
  limit.spend(100, 10_000);
  expect([limit.room(), pass(29, 1e6), pass(2, 1e6)]).toEqual([0, false, true]);
});

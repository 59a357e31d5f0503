// Goal: the alarm comes when work stands still, never when there is none, and is fatal only without an excuse.
// Method: a clock that moves when told, checked every second like in production.
import { expect, test } from "bun:test";
import { Watchdog, type WatchdogOptions, type Work } from "../../../src/core/observe/watchdog.ts";
import { ManualClock } from "../../brokers/kafka/manual-clock.ts";

const IDLE: Work = { backlog: 0, bytesInFlight: 0, lag: 0, progress: 0, excused: false };
const BUSY: Work = { ...IDLE, backlog: 5, lag: 5 };

function dog(options: Partial<WatchdogOptions> = {}) {
  const clock = new ManualClock();
  const seen: string[] = [];
  const state = { work: IDLE };
  const w = new Watchdog({
    clock,
    work: () => state.work,
    emit: (e) => seen.push(`${e.e} ${"ms" in e ? e.ms : ""}`),
    ...options,
  });
  return {
    seen,
    /** Checks every second with this work. */
    run(work: Work, seconds: number) {
      state.work = work;
      for (let i = 0; i < seconds; i++) {
        clock.advance(1000);
        w.check();
      }
    },
    /** One long gap without a check. */
    gap(work: Work, ms: number) {
      state.work = work;
      clock.advance(ms);
      w.check();
    },
  };
}

test("an idle pipeline never raises an alarm", () => {
  const d = dog();
  d.run(IDLE, 10_000);
  expect(d.seen).toEqual([]);
});

test("work without progress is reported after a minute, once, and fatal after five", () => {
  const d = dog();
  d.run(BUSY, 1);
  d.run(BUSY, 59);
  expect(d.seen).toEqual([]);
  d.run(BUSY, 1);
  expect(d.seen).toEqual(["stall.detected 60000"]);
  d.run(BUSY, 239);
  expect(d.seen).toHaveLength(1);
  d.run(BUSY, 1);
  expect(d.seen[1]).toBe("stall.fatal 300000");
  d.run(BUSY, 1000);
  expect(d.seen).toHaveLength(2);
});

test("any progress starts the time again and clears the alarm", () => {
  const d = dog();
  d.run(BUSY, 50);
  d.run({ ...BUSY, progress: 1 }, 50);
  d.run({ ...BUSY, progress: 2 }, 61);
  expect(d.seen).toEqual(["stall.detected 60000"]);
  d.run({ ...BUSY, progress: 3 }, 1);
  expect(d.seen).toEqual(["stall.detected 60000", "stall.cleared 60000"]);
});

test("work that went away clears it too", () => {
  const d = dog();
  d.run(BUSY, 61);
  d.run(IDLE, 1);
  expect(d.seen[1]).toStartWith("stall.cleared");
});

test("bytes in flight are work although the lag is zero", () => {
  const d = dog();
  d.run({ ...IDLE, bytesInFlight: 1 }, 61);
  expect(d.seen).toEqual(["stall.detected 60000"]);
});

test("data that waits for its file to roll is no stall, within the roll interval", () => {
  const d = dog({ rollMs: 600_000 });
  d.run({ ...IDLE, lag: 5 }, 660);
  expect(d.seen).toEqual([]);
  d.run({ ...IDLE, lag: 5 }, 1);
  expect(d.seen).toEqual(["stall.detected 660000"]);
});

test("with something left to fetch the roll interval is no excuse", () => {
  const d = dog({ rollMs: 600_000 });
  d.run(BUSY, 61);
  expect(d.seen).toEqual(["stall.detected 60000"]);
});

test("while source or sink are down it is never fatal, and their time is not held against the process", () => {
  const d = dog();
  d.run({ ...BUSY, excused: true }, 3600);
  expect(d.seen).toEqual(["stall.detected 60000"]);
  d.run(BUSY, 299);
  expect(d.seen).toHaveLength(1);
  d.run(BUSY, 1);
  expect(d.seen[1]).toStartWith("stall.fatal");
});

test("a process that was suspended for an hour is not stalled", () => {
  const d = dog();
  d.run(BUSY, 1);
  d.gap(BUSY, 3_600_000);
  expect(d.seen).toEqual([]);
});

test("a short fatal limit brings the first limit down with it", () => {
  const d = dog({ fatalMs: 20_000 });
  d.run(BUSY, 11);
  expect(d.seen).toEqual(["stall.detected 10000"]);
  d.run(BUSY, 10);
  expect(d.seen[1]).toBe("stall.fatal 20000");
});

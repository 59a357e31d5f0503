/** Goal: what recovery does is told as it is now, with rates over the last half minute. Method: its events by hand, rates derived from them. */
import { expect, test } from "bun:test";
import { RecoveryView } from "../../../src/core/observe/recovery-view.ts";
import { ManualClock } from "../../brokers/kafka/manual-clock.ts";
import { SAMPLES } from "./samples.ts";

test("a process that does not recover says nothing of it", () => {
  const view = new RecoveryView(new ManualClock());
  view.apply(SAMPLES["set.covered"]);
  expect(view.report()).toBeNull();
});

test("state, leases and sums", () => {
  const view = new RecoveryView(new ManualClock());
  const states = [
    "recovery.looked",
    "recovery.began",
    "recovery.yields",
    "recovery.looked",
    "recovery.resumes",
    "recovery.filled",
    "recovery.rests",
  ] as const;
  const seen = states.map((e) => {
    view.apply(SAMPLES[e]);
    return view.report()?.state;
  });
  expect(seen).toEqual(["resting", "filling", "waiting", "waiting", "filling", "filling", "resting"]);
  expect(view.report()).toMatchObject({ behind: "15", free: "10", windows: 1, records: 0 });
  const lease = { sink: "typed", topic: "orders", partition: 3 };
  expect(view.report()?.leases).toEqual([
    { ...lease, kind: "window", holder: "recovery-a", from: "10", next: "25", silent_ms: 4_000 },
    { ...lease, kind: "head", holder: "b", from: "25", next: null, silent_ms: null },
  ]);
});

test("rates are over the last half minute", () => {
  const clock = new ManualClock();
  const view = new RecoveryView(clock);
  const pass = (seconds: number, rows: number) => {
    for (let i = 0; i < seconds; i++) {
      clock.advance(1_000);
      if (rows > 0) view.apply({ e: "recovery.replayed", rows, bytes: 10 * rows });
      view.tick();
    }
    const { records_per_second, bytes_per_second } = view.report()!;
    return [records_per_second, bytes_per_second].map(Math.round);
  };
  expect(pass(60, 100)).toEqual([100, 1_000]);
  expect(pass(15, 0)[0]).toBeWithin(40, 60);
  view.apply(SAMPLES["recovery.rests"]);
  expect(pass(40, 0)).toEqual([0, 0]);
});

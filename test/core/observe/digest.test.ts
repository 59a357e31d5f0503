// Goal: rates are over the last half minute, whatever happened before. Method: a clock that moves when told.
import { expect, test } from "bun:test";
import { Digest } from "../../../src/core/observe/digest.ts";
import { PipelineView } from "../../../src/core/observe/pipeline-view.ts";
import { ManualClock } from "../../brokers/kafka/manual-clock.ts";
import { SAMPLES } from "./samples.ts";

function world() {
  const clock = new ManualClock();
  const view = new PipelineView();
  view.apply(SAMPLES["stream.begun"]);
  const digest = new Digest(clock, view);
  /** `seconds` of one bundle of 18 rows, 20 positions, 4000 bytes (in a buffer of 4096) each. */
  const run = (seconds: number, busy: boolean) => {
    for (let i = 0; i < seconds; i++) {
      if (busy)
        for (const e of ["bundle.delivered", "bundle.consumed", "set.covered"] as const)
          view.apply(SAMPLES[e]);
      clock.advance(1000);
      digest.tick();
    }
  };
  return { clock, view, digest, run };
}

test("before any time has passed all rates are zero", () => {
  const { digest } = world();
  expect(digest.report()).toMatchObject({
    window_ms: 0,
    records_per_second: 0,
    bytes_per_second: 0,
    lag: null,
  });
});

test("a steady flow has a steady rate, by total, partition and sink", () => {
  const { digest, run } = world();
  run(120, true);
  const r = digest.report();
  expect(r.window_ms).toBe(30_000);
  expect(r.records).toBe(120 * 18);
  expect(r.records_per_second).toBe(18);
  expect(r.bytes_per_second).toBe(4000);
  expect(r.partitions[0]?.records_per_second).toBe(20);
  expect(r.sinks).toEqual([
    { sink: "raw", rows: 180_000, bytes: 245_760, files: 240, rows_per_second: 1500 },
  ]);
});

test("half a minute after the flow ended the rates are zero", () => {
  const { digest, run } = world();
  run(60, true);
  run(15, false);
  expect(digest.report().records_per_second).toBe(9);
  run(15, false);
  expect(digest.report().records_per_second).toBe(0);
});

test("positions are strings, so that none loses digits in JSON", () => {
  const { digest, view } = world();
  expect(digest.report().partitions[0]).toEqual({
    topic: "orders",
    partition: 3,
    lane: 1,
    position: "9007199254740993",
    acknowledged: "9007199254740993",
    end: null,
    lag: null,
    records_per_second: 0,
  });
  view.apply(SAMPLES["stream.watermark"]);
  expect(digest.report().partitions[0]).toMatchObject({ end: "100", lag: 0 });
});

// Goal: the view folds events into positions, lag, bytes in flight and a measure of progress. Method: short stories.
import { expect, test } from "bun:test";
import type { TwgEvent } from "../../../src/core/observe/events.ts";
import { lagOf, PipelineView } from "../../../src/core/observe/pipeline-view.ts";
import { failure, SAMPLES } from "./samples.ts";

const P = { topic: "orders", partition: 3 };

function view(...events: TwgEvent[]): PipelineView {
  const v = new PipelineView();
  for (const e of [begun(10n), ...events]) v.apply(e);
  return v;
}

const begun = (position: bigint): TwgEvent => ({
  e: "stream.begun",
  ...P,
  position,
  lane: 1,
  why: "committed",
});
const watermark = (end: bigint): TwgEvent => ({ e: "stream.watermark", ...P, start: 0n, end });
const delivered = (next: bigint, bytes = 100): TwgEvent => ({
  e: "bundle.delivered",
  lane: 1,
  bytes,
  parts: [{ ...P, next, positions: 5, bytes }],
});
const consumed = (bytes = 100): TwgEvent => ({ ...SAMPLES["bundle.consumed"], bytes });
const rewound = (position: bigint): TwgEvent => ({
  e: "stream.rewound",
  ...P,
  position,
  attempt: 1,
  again: 0,
  why: "test",
});
const acknowledged = (next: bigint): TwgEvent => ({
  e: "source.acknowledged",
  marks: [{ ...P, next }],
  ms: 1,
});

test("lag is measured to the acknowledged position, backlog to the fetched one", () => {
  const v = view(watermark(100n), delivered(60n));
  const p = v.partition("orders", 3);
  expect(p && lagOf(p)).toBe(90);
  expect(v.lag()).toBe(90);
  expect(v.backlog()).toBe(40);
  v.apply(acknowledged(50n));
  expect(v.lag()).toBe(50);
});

test("lag is unknown before the first watermark and never negative", () => {
  const v = view();
  expect(v.lag()).toBeNull();
  expect(v.backlog()).toBe(0);
  v.apply(watermark(5n));
  expect(v.lag()).toBe(0);
  expect(v.backlog()).toBe(0);
});

test("an acknowledgement never takes the position back", () => {
  const v = view(acknowledged(50n), acknowledged(20n));
  expect(v.partition("orders", 3)?.acknowledged).toBe(50n);
});

test("bytes in flight are what lanes were given and have not read; a dead lane has none", () => {
  const v = view(delivered(20n, 100), delivered(30n, 50));
  expect(v.inFlight()).toBe(150);
  v.apply(consumed(100));
  expect(v.inFlight()).toBe(50);
  v.apply({ e: "lane.died", lane: 1, failure });
  expect(v.inFlight()).toBe(0);
});

test("totals and sinks add up", () => {
  const v = view(delivered(20n), consumed(), consumed(), SAMPLES["set.covered"], SAMPLES["set.covered"]);
  expect([v.records, v.filtered, v.bytes]).toEqual([36, 4, 100]);
  expect(v.sink("raw")).toEqual({ rows: 3000, bytes: 4096, files: 4, lacks: null });
});

test("a stream that ended and one that is unknown leave no trace", () => {
  const v = view(watermark(100n));
  v.apply({ e: "stream.ended", ...P, why: "revoked" });
  for (const e of [watermark(200n), delivered(30n), acknowledged(20n), rewound(5n), SAMPLES["records.lost"]])
    v.apply(e);
  expect(v.partitions.size).toBe(0);
  expect(v.lag()).toBeNull();
});

test("records lost at the source are not backlog any more", () => {
  const v = view(watermark(100n), { e: "records.lost", ...P, from: 10n, next: 80n, reason: "retention" });
  expect(v.backlog()).toBe(20);
});

test("started, stopping and stopped are remembered", () => {
  const v = view(SAMPLES["pipeline.started"], SAMPLES["pipeline.stopping"], SAMPLES["pipeline.stopped"]);
  expect([v.started, v.stopping, v.stopped]).toEqual([true, true, true]);
});

/** True if the event counts as progress. */
function moves(v: PipelineView, e: TwgEvent): boolean {
  const before = v.progress;
  v.apply(e);
  return v.progress !== before;
}

test("fetching, reading, covering and acknowledging are progress; hearing of a watermark is not", () => {
  const v = view();
  expect(moves(v, watermark(100n))).toBe(false);
  expect(moves(v, delivered(20n))).toBe(true);
  expect(moves(v, consumed())).toBe(true);
  expect(moves(v, SAMPLES["set.sealed"])).toBe(false);
  expect(moves(v, SAMPLES["set.covered"])).toBe(true);
  expect(moves(v, acknowledged(20n))).toBe(true);
  expect(moves(v, acknowledged(20n))).toBe(false);
  expect(moves(v, SAMPLES["source.troubled"])).toBe(false);
});

test("work that a rewind repeats is no progress until something new is reached", () => {
  const v = view(delivered(50n), consumed());
  v.apply(rewound(10n));
  expect(moves(v, delivered(30n))).toBe(false);
  expect(moves(v, consumed())).toBe(false);
  expect(moves(v, delivered(50n))).toBe(false);
  expect(moves(v, delivered(51n))).toBe(true);
  expect(moves(v, consumed())).toBe(true);
  v.apply(rewound(10n));
  expect(moves(v, consumed())).toBe(false);
  expect(moves(v, SAMPLES["set.covered"])).toBe(true);
});

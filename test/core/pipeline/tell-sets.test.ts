/** Goal: what became of a set is told whole. Method: every kind of set, record and gap, and the events that come of it. */
import { expect, test } from "bun:test";
import { Failure } from "../../../src/core/failure/failure.ts";
import type { TwgEvent } from "../../../src/core/observe/events.ts";
import { tellGap, tellRecords, tellSealed } from "../../../src/core/pipeline/tell-sets.ts";
import type { SealedSet } from "../../../src/core/ports/lane.ts";
import { streamKey } from "../../../src/core/records/stream.ts";

function events(tell: (observer: { emit: (e: TwgEvent) => void }) => void): TwgEvent[] {
  const seen: TwgEvent[] = [];
  tell({ emit: (e) => seen.push(e) });
  return seen;
}

const SET: SealedSet = {
  ...{ id: "s-1", lane: 0, epoch: 0, targets: [], spans: [], covered: true },
  ...{ rows: 8, bytes: 90, openedAt: 0, sealMs: 3, reason: "interval" },
};

test("a set that is whole is one event", () => {
  expect(events((o) => tellSealed(o, "table", SET))).toEqual([
    { e: "set.sealed", sink: "table", id: "s-1", rows: 8, bytes: 90, files: 0, ms: 3, reason: "interval" },
  ]);
});

test("rows that were left out are told by code, and whether they are kept anywhere", () => {
  const codes = [["row.constraint", 2] as const, ["row.trigger", 1] as const];
  const kept = events((o) =>
    tellSealed(o, "table", { ...SET, leftOut: { codes, uncovered: [], failure: null } }),
  );
  expect(kept.slice(1)).toEqual([
    { e: "records.refused", sink: "table", code: "row.constraint", records: 2, kept: true },
    { e: "records.refused", sink: "table", code: "row.trigger", records: 1, kept: true },
  ]);
  const failure = new Failure("postgres.refused", "no right to the table of rejects");
  const lost = events((o) => tellSealed(o, "table", { ...SET, leftOut: { codes, uncovered: [], failure } }));
  expect(lost.slice(1)).toEqual([
    { e: "records.refused", sink: "table", code: "row.constraint", records: 2, kept: false },
    { e: "records.refused", sink: "table", code: "row.trigger", records: 1, kept: false },
    { e: "sink.rejects_failed", sink: "table", failure },
  ]);
});

test("records that are no rows: duplicates by topic", () => {
  const m = { t: "duplicates", branch: 1, topic: "orders", records: 7 } as const;
  expect(events((o) => tellRecords(o, "typed", m))).toEqual([
    { e: "records.duplicate", sink: "typed", topic: "orders", records: 7 },
  ]);
});

test("a gap is told by partition", () => {
  const stream = streamKey({
    ...{ transport: "kafka", cluster: "c", topic: "orders", incarnation: 1, partition: 3 },
  });
  expect(events((o) => tellGap(o, "typed", [{ stream, from: 5n, next: 9n }]))).toEqual([
    { e: "sink.gap", sink: "typed", topic: "orders", partition: 3, from: 5n, next: 9n },
  ]);
});

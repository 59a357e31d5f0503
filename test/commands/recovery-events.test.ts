/** Goal: runs over raw tell what is news of recovery, under its name, and nothing of what live ingest alone may tell. Method: each event of the catalogue. */
import { expect, test } from "bun:test";
import { recoveryEvents } from "../../src/commands/recovery-events.ts";
import type { TwgEvent } from "../../src/core/observe/events.ts";
import { SAMPLES } from "../core/observe/samples.ts";

function told(event: TwgEvent): string {
  const out: TwgEvent[] = [];
  recoveryEvents({ emit: (e) => out.push(e) }).emit(event);
  expect(out.length).toBeLessThan(2);
  return out[0]?.e ?? "";
}

test("what passes, and under which name", () => {
  const all = Object.values(SAMPLES).map((e) => [e.e, told(e)] as const);
  const changed = all.filter(([from, to]) => to !== "" && to !== from);
  expect(changed).toEqual([
    ["failure", "recovery.troubled"],
    ["source.troubled", "recovery.troubled"],
    ["lane.died", "recovery.troubled"],
    ["bundle.consumed", "recovery.replayed"],
    ["set.covered", "recovery.covered"],
    ["sink.troubled", "recovery.troubled"],
    ["sink.detached", "recovery.troubled"],
  ]);
  const same = all.filter(([from, to]) => to === from && !from.startsWith("recovery."));
  expect(same.map(([e]) => e)).toEqual([
    "set.refused",
    "intent.settled",
    "schema.learned",
    "sink.lacks",
    "records.undecodable",
    "records.refused",
    "sink.rejects_failed",
    "connection.opened",
    "connection.closed",
    "request.done",
  ]);
  const own = all.filter(([from]) => from.startsWith("recovery."));
  expect(own.every(([from, to]) => from === to)).toBe(true);
});

test("what stands in the place of the primary sink covers nothing", () => {
  const sink = "raw, read again";
  expect([told({ ...SAMPLES["set.covered"], sink }), told({ ...SAMPLES["set.refused"], sink })]).toEqual([
    "",
    "",
  ]);
});

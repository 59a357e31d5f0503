// Goal: live, ready and health say what the parts add up to. Method: single changes, by hand and by event.
import { expect, test } from "bun:test";
import { applyHealth } from "../../../src/core/observe/event-health.ts";
import type { TwgEvent } from "../../../src/core/observe/events.ts";
import { HealthTree, stateRank } from "../../../src/core/observe/health.ts";
import { ManualClock } from "../../brokers/kafka/manual-clock.ts";
import { failure, SAMPLES } from "./samples.ts";

function started(clock = new ManualClock()): {
  h: HealthTree;
  on: (...events: TwgEvent[]) => void;
  clock: ManualClock;
} {
  const h = new HealthTree(clock);
  const on = (...events: TwgEvent[]) => {
    for (const e of events) applyHealth(h, e, { primaryRaw: "raw" });
  };
  on(SAMPLES["pipeline.started"], SAMPLES["source.healthy"]);
  return { h, on, clock };
}

test("at the start it is alive and not ready, until pipeline and source have proved to work", () => {
  const h = new HealthTree(new ManualClock());
  expect(h.live()).toEqual({ ok: true, reason: "ok" });
  expect(h.ready()).toEqual({ ok: false, reason: "pipeline: starting" });
  applyHealth(h, SAMPLES["pipeline.started"], { primaryRaw: "raw" });
  expect(h.ready()).toEqual({ ok: false, reason: "source: starting" });
  applyHealth(h, SAMPLES["source.healthy"], { primaryRaw: "raw" });
  expect(h.ready()).toEqual({ ok: true, reason: "ok" });
  expect(h.overall()).toBe("ok");
});

test("source and primary raw sink gate readiness, with their code", () => {
  const { h, on } = started();
  on(SAMPLES["source.troubled"]);
  expect(h.ready()).toEqual({ ok: false, reason: "source: internal.cancelled" });
  on(SAMPLES["source.healthy"], SAMPLES["sink.troubled"]);
  expect(h.ready()).toEqual({ ok: false, reason: "primary_raw: internal.cancelled" });
  expect(h.overall()).toBe("failed");
  on(SAMPLES["sink.recovered"]);
  expect(h.ready().ok).toBe(true);
});

test("a covered set proves the sink and the coverage store", () => {
  const { h, on } = started();
  on(SAMPLES["sink.troubled"], SAMPLES["coverage.troubled"]);
  expect(h.overall()).toBe("failed");
  on(SAMPLES["set.covered"]);
  expect(h.overall()).toBe("ok");
});

test("nothing else gates readiness", () => {
  const { h, on } = started();
  on(
    { e: "sink.troubled", sink: "secondary", failure },
    SAMPLES["lane.died"],
    SAMPLES["source.acknowledge_failed"],
    SAMPLES["stall.detected"],
    SAMPLES["coverage.troubled"],
  );
  expect(h.ready().ok).toBe(true);
  expect(h.live().ok).toBe(true);
  expect(h.state("sinks")).toBe("failed");
  expect(h.state("committer")).toBe("degraded");
  on(
    { e: "sink.recovered", sink: "secondary", ms: 1 },
    SAMPLES["lane.restarted"],
    SAMPLES["source.acknowledged"],
    SAMPLES["stall.cleared"],
    SAMPLES["coverage.healthy"],
  );
  expect(h.overall()).toBe("ok");
});

test("a failed secondary degrades the whole, a failed primary fails it", () => {
  const { h, on } = started();
  on({ e: "sink.troubled", sink: "secondary", failure });
  expect(h.overall()).toBe("degraded");
  on(SAMPLES["sink.troubled"]);
  expect(h.overall()).toBe("failed");
});

test("one dead lane of two degrades, both fail, and the parts are listed", () => {
  const { h, on } = started();
  on({ e: "lane.started", lane: 0 }, { e: "lane.started", lane: 1 }, { e: "lane.died", lane: 1, failure });
  expect(h.state("lanes")).toBe("degraded");
  on({ e: "lane.died", lane: 0, failure });
  expect(h.state("lanes")).toBe("failed");
  const children = h.report().parts.lanes?.children;
  expect(children?.["1"]?.reason).toBe("internal.cancelled");
  expect(children?.["1"]?.detail).toBe("no answer within 10 s (at kafka:9093)");
});

test("only a fatal stall ends liveness, and progress restores it", () => {
  const { h, on } = started();
  on(SAMPLES["stall.detected"]);
  expect(h.live().ok).toBe(true);
  expect(h.overall()).toBe("degraded");
  on(SAMPLES["stall.fatal"]);
  expect(h.live()).toEqual({ ok: false, reason: "internal.stalled" });
  on(SAMPLES["stall.cleared"]);
  expect(h.live().ok).toBe(true);
});

test("a pipeline that drains is alive and not ready", () => {
  const { h, on } = started();
  on(SAMPLES["pipeline.stopping"]);
  expect(h.ready()).toEqual({ ok: false, reason: "pipeline: draining" });
  expect(h.live().ok).toBe(true);
  expect(h.overall()).toBe("degraded");
  on(SAMPLES["pipeline.stopped"]);
  expect(h.overall()).toBe("failed");
});

test("a failure that ends the run fails the pipeline, another one does not", () => {
  const { h, on } = started();
  on({ e: "failure", scope: "secrets", failure: { ...failure, at: null } });
  expect(h.overall()).toBe("ok");
  on({ e: "failure", scope: "source", failure: { ...failure, at: null } }, SAMPLES["coverage.fenced"]);
  expect(h.report().parts.pipeline?.detail).toBe("source: no answer within 10 s");
  expect(h.state("coverage")).toBe("failed");
});

test("since is when state or reason changed, not when it was last reported", () => {
  const { h, on, clock } = started();
  clock.advance(1000);
  on(SAMPLES["source.troubled"]);
  const since = h.report().parts.source?.since;
  clock.advance(1000);
  on(SAMPLES["source.troubled"]);
  expect(h.report().parts.source?.since).toBe(since);
  expect(since).toBe(new Date(clock.now() - 1000).toISOString());
  on({ e: "source.troubled", failure: { ...failure, code: "internal.stalled" } });
  expect(h.report().parts.source?.since).toBe(new Date(clock.now()).toISOString());
});

test("the report is plain JSON with every part", () => {
  const { h } = started();
  const report = JSON.parse(JSON.stringify(h.report()));
  expect(Object.keys(report.parts)).toEqual([
    "source",
    "primary_raw",
    "lanes",
    "coverage",
    "committer",
    "sinks",
    "progress",
    "pipeline",
  ]);
  expect(report).toMatchObject({ state: "ok", live: true, ready: true });
  expect([stateRank("ok"), stateRank("degraded"), stateRank("failed")]).toEqual([0, 1, 2]);
});

test("the trouble that is named is the worst one", () => {
  const { h, on } = started();
  expect(h.trouble()).toBeNull();
  on(SAMPLES["source.acknowledge_failed"]);
  expect(h.trouble()).toBe("committer: internal.cancelled");
  on(SAMPLES["stall.fatal"]);
  expect(h.trouble()).toBe("progress: internal.stalled");
});

test("a process that only recovers is ready once it can see what is behind, whatever its sinks do", () => {
  const h = new HealthTree(new ManualClock(), "recovery");
  const on = (...events: TwgEvent[]) => {
    for (const e of events) applyHealth(h, e, { primaryRaw: "raw" });
  };
  on(SAMPLES["pipeline.started"]);
  expect([h.ready().ok, h.starting, h.overall()]).toEqual([false, true, "failed"]);
  on(SAMPLES["recovery.looked"]);
  expect([h.ready().ok, h.starting, h.overall()]).toEqual([true, false, "ok"]);
  on(SAMPLES["recovery.troubled"]);
  expect([h.ready().ok, h.overall(), h.trouble()]).toEqual([
    true,
    "degraded",
    "recovery: internal.cancelled",
  ]);
  on(SAMPLES["recovery.filled"]);
  expect(h.overall()).toBe("ok");
  on(SAMPLES["recovery.troubled"], { e: "recovery.looked", free: 0n, behind: 0n, leases: [] });
  expect(h.overall()).toBe("ok");
  // A sink that cannot even be opened is told by the round alone.
  on(SAMPLES["recovery.rests"]);
  expect([h.ready().ok, h.overall(), h.trouble()]).toEqual([
    true,
    "degraded",
    "recovery: internal.cancelled",
  ]);
  on({ e: "recovery.rests", filled: 1n, failure: null, ms: 1 });
  expect(h.overall()).toBe("ok");
  on(SAMPLES["recovery.blind"]);
  expect([h.ready(), h.overall()]).toEqual([{ ok: false, reason: "recovery: internal.cancelled" }, "failed"]);
  expect(Object.keys(h.report().parts)).toEqual(["recovery", "pipeline"]);
});

test("beside live ingest, recovery that fails makes the pipeline no less ready", () => {
  const h = new HealthTree(new ManualClock(), "both");
  for (const e of ["pipeline.started", "source.healthy", "recovery.blind"] as const)
    applyHealth(h, SAMPLES[e], { primaryRaw: "raw" });
  expect([h.ready().ok, h.overall()]).toEqual([true, "degraded"]);
});

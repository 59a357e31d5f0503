// Goal: one event reaches log, metrics, health, progress and HTTP, and a fault of telemetry reaches nobody. Method:
// the whole of it with a clock that moves when told and a log in memory; HTTP on a real socket.
import { expect, test } from "bun:test";
import type { LineWriter } from "../../../src/adapters/telemetry/line-writer.ts";
import { createTelemetry, type TelemetryOptions } from "../../../src/adapters/telemetry/telemetry.ts";
import { Budget } from "../../../src/core/delivery/budget.ts";
import type { TwgEvent } from "../../../src/core/observe/events.ts";
import { ManualClock } from "../../brokers/kafka/manual-clock.ts";
import { failure, SAMPLES } from "../../core/observe/samples.ts";

function world(options: Partial<TelemetryOptions> = {}) {
  const clock = new ManualClock();
  const lines: string[] = [];
  const out: LineWriter = { write: (t) => lines.push(t), flush: () => Promise.resolve(), dropped: 0 };
  const t = createTelemetry({
    clock,
    pipeline: "orders",
    version: "0.1.0",
    primaryRaw: "raw",
    format: "text",
    level: "info",
    color: false,
    out,
    terminal: null,
    http: null,
    usage: () => ({ residentBytes: 1000, cpuSeconds: 2 }),
    ...options,
  });
  const on = (...events: TwgEvent[]) => {
    for (const e of events) t.observer.emit(e);
  };
  /** Value of the series as `name label label`, undefined without it. */
  const metric = (name: string, ...labels: string[]): number | undefined =>
    t.metrics
      .families()
      .find((f) => f.name === name)
      ?.samples()
      .find((s) => s.labels.map(([, v]) => v).join() === labels.join())?.value;
  return { clock, lines, t, on, metric };
}

const begun: TwgEvent = {
  ...SAMPLES["stream.begun"],
  e: "stream.begun",
  topic: "orders",
  partition: 3,
  position: 10n,
  lane: 1,
  why: "x",
};

test("an event reaches log, metrics and health", () => {
  const { on, lines, metric, t } = world();
  on(SAMPLES["pipeline.started"], SAMPLES["source.healthy"], SAMPLES["sink.troubled"]);
  expect(lines).toHaveLength(3);
  expect(lines[2]).toContain("WARN  raw: internal.cancelled");
  expect(metric("twg_errors_total", "internal.cancelled")).toBe(1);
  expect(metric("twg_ready")).toBe(0);
  expect(metric("twg_live")).toBe(1);
  expect(metric("twg_health", "primary_raw")).toBe(2);
  expect(t.health.ready().reason).toBe("primary_raw: internal.cancelled");
});

test("that something works is logged only when it did not before", () => {
  const { on, lines } = world();
  on(
    SAMPLES["source.healthy"],
    SAMPLES["source.healthy"],
    SAMPLES["source.troubled"],
    SAMPLES["source.healthy"],
  );
  expect(lines.map((l) => l.slice(25, 30))).toEqual(["INFO ", "WARN ", "INFO "]);
});

test("lag and positions follow the view and vanish with the stream", () => {
  const { on, metric } = world();
  on(begun, SAMPLES["stream.watermark"], SAMPLES["bundle.delivered"], SAMPLES["source.acknowledged"]);
  expect(metric("twg_source_position", "orders", "3")).toBe(60);
  expect(metric("twg_acknowledged_position", "orders", "3")).toBe(50);
  expect(metric("twg_source_end_position", "orders", "3")).toBe(100);
  expect(metric("twg_source_lag", "orders", "3")).toBe(50);
  on(SAMPLES["stream.ended"]);
  expect(metric("twg_source_lag", "orders", "3")).toBeUndefined();
  expect(metric("twg_source_position", "orders", "3")).toBeUndefined();
});

test("an unknown end is no lag of zero", () => {
  const { on, metric } = world();
  on(begun);
  expect(metric("twg_source_lag", "orders", "3")).toBeUndefined();
  expect(metric("twg_source_position", "orders", "3")).toBe(10);
});

test("bytes in flight are the budget's where one is watched", () => {
  const { on, metric, t } = world();
  on(SAMPLES["bundle.delivered"]);
  expect(metric("twg_bytes_in_flight", "1")).toBe(4096);
  expect(t.stats().budget_bytes).toBeNull();
  const budget = new Budget({ maxBytes: 1_000_000, owners: [1, 2] });
  budget.take(2, 500);
  t.watchBudget(budget);
  expect([metric("twg_bytes_in_flight", "1"), metric("twg_bytes_in_flight", "2")]).toEqual([0, 500]);
  expect(metric("twg_budget_bytes")).toBe(1_000_000);
  expect(t.stats()).toMatchObject({
    bytes_in_flight: 500,
    budget_bytes: 1_000_000,
    resident_bytes: 1000,
    cpu_seconds: 2,
  });
});

test("every event of the catalogue passes without a fault", () => {
  const { on, metric } = world({ level: "debug" });
  on(...Object.values(SAMPLES));
  expect(metric("twg_telemetry_errors_total")).toBe(0);
});

test("a fault of ours is counted and kept from the pipeline", () => {
  const { on, metric } = world({
    out: {
      write: () => {
        throw new Error("no log");
      },
      flush: () => Promise.resolve(),
      dropped: 0,
    },
  });
  on(SAMPLES["pipeline.started"]);
  // Shape and name do not belong together.
  on({ e: "set.covered" } as unknown as TwgEvent);
  expect(metric("twg_telemetry_errors_total")).toBe(2);
});

test("the timer drives progress, repeats and the watchdog; a fatal stall is told once", async () => {
  let fatal = 0;
  const { on, lines, clock, t, metric } = world({ fatalMs: 40_000, onFatalStall: () => fatal++ });
  expect(t.start()).toBeNull();
  on(SAMPLES["pipeline.started"], SAMPLES["source.healthy"], begun, SAMPLES["stream.watermark"]);
  clock.advance(10_000);
  expect(lines.filter((l) => l.includes("running | 0 rec/s"))).toHaveLength(1);
  clock.advance(15_000);
  expect(lines.some((l) => l.includes("no progress for"))).toBe(true);
  expect(metric("twg_stalled")).toBe(1);
  expect(t.health.live().ok).toBe(true);
  clock.advance(60_000);
  expect([fatal, t.health.live().ok]).toEqual([1, false]);
  const left = t.stop();
  clock.advance(1000);
  await left;
  expect(clock.waiting).toBe(0);
});

test("while the source is down a stall is not fatal", () => {
  let fatal = 0;
  const { on, clock, t } = world({ fatalMs: 40_000, onFatalStall: () => fatal++ });
  t.start();
  on(SAMPLES["pipeline.started"], begun, SAMPLES["stream.watermark"], SAMPLES["source.troubled"]);
  clock.advance(3_600_000);
  expect(fatal).toBe(0);
});

test("that the coverage store works again is told once, also where a set that landed has shown it", () => {
  const { on, lines } = world();
  on(SAMPLES["pipeline.started"], SAMPLES["coverage.healthy"]);
  on(SAMPLES["coverage.troubled"], SAMPLES["coverage.troubled"], SAMPLES["set.covered"]);
  on(SAMPLES["coverage.healthy"], SAMPLES["coverage.healthy"]);
  const told = lines.filter((l) => l.includes("coverage store"));
  expect(told).toHaveLength(3);
  expect(told[1]).toContain("[repeated 1 time]");
  expect(told[2]).toContain("coverage store works again");
});

test("a tick that fails does not end the timer", () => {
  let calls = 0;
  const { clock, t, metric } = world();
  t.watchBudget({
    maxBytes: 1,
    owners: () => [],
    get used(): number {
      calls++;
      throw new Error("mine");
    },
  });
  t.start();
  clock.advance(1000);
  expect(calls).toBeGreaterThanOrEqual(2);
  expect(metric("twg_telemetry_errors_total")).toBe(2);
});

test("on a terminal the live line comes with text, not with JSON", () => {
  const text = world({ terminal: { columns: () => 200 } });
  text.t.start();
  text.clock.advance(500);
  expect(text.lines).toEqual(["\r\u001b[Kstarting | 0 rec/s | 0.0 MB/s | lag ? | in flight 0 B"]);
  const json = world({ terminal: { columns: () => 200 }, format: "json" });
  json.t.start();
  json.clock.advance(10_000);
  expect(json.lines).toHaveLength(1);
  expect(JSON.parse(json.lines[0] ?? "")).toMatchObject({
    event: "progress",
    fields: { state: "starting", lag: null },
  });
});

test("stop writes the counts of repeats and waits at most a second for the log", async () => {
  const { on, lines, clock, t, metric } = world({
    out: { write: (l) => lines.push(l), flush: () => new Promise(() => {}), dropped: 0 },
  });
  on(SAMPLES["source.troubled"], SAMPLES["source.troubled"]);
  expect(metric("twg_log_suppressed_total")).toBe(1);
  const done = t.stop();
  await Promise.resolve();
  await Promise.resolve();
  clock.advance(1000);
  await done;
  expect(lines.at(-1)).toContain("[repeated 1 time]");
});

test("HTTP answers from the same state", async () => {
  const { on, t } = world({ http: { listen: "127.0.0.1:0", tls: null, token: null } });
  const url = t.start();
  on(
    SAMPLES["pipeline.started"],
    SAMPLES["source.healthy"],
    begun,
    SAMPLES["stream.watermark"],
    SAMPLES["set.covered"],
  );
  expect((await fetch(`${url}live`)).status).toBe(200);
  expect((await fetch(`${url}ready`)).status).toBe(200);
  const metrics = await (await fetch(`${url}metrics`)).text();
  expect(metrics).toContain('twg_pipeline_info{pipeline="orders",version="0.1.0"} 1\n');
  expect(metrics).toContain('twg_source_lag{topic="orders",partition="3"} 90\n');
  expect(metrics).toContain('twg_sink_records_total{sink="raw"} 1500\n');
  expect(await (await fetch(`${url}stats`)).json()).toMatchObject({
    pipeline: "orders",
    lag: 90,
    health: { state: "ok" },
    partitions: [{ topic: "orders", partition: 3, position: "10", end: "100" }],
    sinks: [{ sink: "raw", rows: 1500 }],
  });
  on({ e: "source.troubled", failure });
  const ready = await fetch(`${url}ready`);
  expect([ready.status, await ready.text()]).toEqual([503, "source: internal.cancelled\n"]);
  await t.stop();
  await expect(fetch(`${url}live`)).rejects.toThrow();
});

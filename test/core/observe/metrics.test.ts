// Goal: the kinds of metric count as their names promise, and each event moves exactly its metrics. Method: by hand.
import { expect, test } from "bun:test";
import { meterEvent } from "../../../src/core/observe/event-meters.ts";
import type { EventName } from "../../../src/core/observe/events.ts";
import { declareMeters } from "../../../src/core/observe/metric-catalogue.ts";
import { Registry } from "../../../src/core/observe/metrics.ts";
import { SAMPLES } from "./samples.ts";

test("counters grow by label and refuse to shrink", () => {
  const c = new Registry().counter("c_total", "help", ["a", "b"]);
  c.add(2, "x", 1);
  c.add(3, "x", 1);
  c.add(1, "y", 1);
  expect(c.value("x", 1)).toBe(5);
  expect(c.samples().map((s) => [s.labels, s.value])).toEqual([
    [
      [
        ["a", "x"],
        ["b", "1"],
      ],
      5,
    ],
    [
      [
        ["a", "y"],
        ["b", "1"],
      ],
      1,
    ],
  ]);
  expect(() => c.add(-1, "x", 1)).toThrow("can only grow");
  expect(() => c.add(Number.NaN, "x", 1)).toThrow("can only grow");
  expect(() => c.add(1, "x")).toThrow("got 1 values");
  c.reach(10, "x", 1);
  c.reach(7, "x", 1);
  expect(c.value("x", 1)).toBe(10);
});

test("label values that share a joint do not share a series", () => {
  const g = new Registry().gauge("g", "help", ["a", "b"]);
  g.set(1, "x y", "z");
  g.set(2, "x", "y z");
  expect(g.value("x y", "z")).toBe(1);
});

test("gauges are set, moved and removed", () => {
  const g = new Registry().gauge("g", "help", ["a"]);
  g.set(5, "x");
  g.add(-7, "x");
  expect(g.value("x")).toBe(-2);
  g.remove("x");
  expect(g.samples()).toEqual([]);
});

test("histogram buckets are cumulative, bounds belong to their bucket", () => {
  const h = new Registry().histogram("h", "help", ["a"], [1, 5]);
  for (const v of [0.5, 1, 3, 5, 100]) h.observe(v, "x");
  const seen = h
    .samples()
    .map((s) => `${s.suffix}${s.labels.map(([k, v]) => ` ${k}=${v}`).join("")} ${s.value}`);
  expect(seen).toEqual([
    "_bucket a=x le=1 2",
    "_bucket a=x le=5 4",
    "_bucket a=x le=+Inf 5",
    "_sum a=x 109.5",
    "_count a=x 5",
  ]);
  expect(() => h.observe(Number.NaN, "x")).toThrow("got NaN");
});

test("a name is declared once, and collectors run at every reading", () => {
  const r = new Registry();
  const g = r.gauge("g", "help");
  let n = 0;
  r.onCollect(() => g.set(++n));
  r.families();
  r.families();
  expect(g.value()).toBe(2);
  expect(() => r.counter("g", "again")).toThrow("declared twice");
});

/** What one example of each event moves: `metric{labels} value`, histograms by count and sum. */
const MOVES: { readonly [K in EventName]?: readonly string[] } = {
  failure: ["twg_errors_total{internal.cancelled} 1"],
  "source.healthy": ["twg_source_up{} 1"],
  "source.troubled": ["twg_errors_total{internal.cancelled} 1", "twg_source_up{} 0"],
  "source.acknowledge_failed": [
    "twg_errors_total{internal.cancelled} 1",
    "twg_acknowledge_failures_total{} 1",
  ],
  // Zero, so that the first increase is one.
  "stream.begun": [
    "twg_source_records_total{orders,3} 0",
    "twg_source_bytes_total{orders,3} 0",
    "twg_source_skipped_records_total{orders,3} 0",
    "twg_source_lost_records_total{orders,3} 0",
    "twg_source_rewinds_total{orders,3} 0",
    "twg_source_reread_records_total{orders,3} 0",
  ],
  "stream.rewound": ["twg_source_rewinds_total{orders,3} 1", "twg_source_reread_records_total{orders,3} 7"],
  "records.skipped": ["twg_source_skipped_records_total{orders,3} 10"],
  "records.lost": ["twg_source_lost_records_total{orders,3} 15"],
  "lane.died": ["twg_errors_total{internal.cancelled} 1"],
  "lane.restarted": ["twg_lane_restarts_total{1} 1"],
  "bundle.delivered": ["twg_source_records_total{orders,3} 20", "twg_source_bytes_total{orders,3} 4000"],
  "bundle.consumed": [
    "twg_lane_records_total{1} 18",
    "twg_lane_filtered_records_total{1} 2",
    "twg_lane_unpacked_bytes_total{1} 9000",
    "twg_lane_decode_seconds_total{1} 0.005",
    "twg_lane_write_seconds_total{1} 0.015",
    "twg_lane_held_bytes{1} 777",
  ],
  "budget.exhausted": ["twg_budget_exhausted_total{1} 1"],
  "budget.released": ["twg_budget_wait_seconds_total{1} 0.25"],
  "set.sealed": ["twg_sink_latency_seconds_sum{raw,seal} 0.12", "twg_sink_latency_seconds_count{raw,seal} 1"],
  "set.intended": [
    "twg_sink_latency_seconds_sum{raw,intend} 0.12",
    "twg_sink_latency_seconds_count{raw,intend} 1",
  ],
  "set.published": [
    "twg_sink_latency_seconds_sum{raw,publish} 0.12",
    "twg_sink_latency_seconds_count{raw,publish} 1",
  ],
  // Rows, bytes and files count here and nowhere earlier.
  "set.covered": [
    "twg_sink_up{raw} 1",
    "twg_sink_records_total{raw} 1500",
    "twg_sink_bytes_total{raw} 2048",
    "twg_sink_files_total{raw} 2",
    "twg_sink_latency_seconds_sum{raw,cover} 0.12",
    "twg_sink_latency_seconds_count{raw,cover} 1",
    "twg_sink_latency_seconds_sum{raw,end_to_end} 11",
    "twg_sink_latency_seconds_count{raw,end_to_end} 1",
  ],
  "set.refused": ["twg_sink_refused_sets_total{raw,fenced} 1"],
  "sink.troubled": ["twg_errors_total{internal.cancelled} 1", "twg_sink_up{raw} 0"],
  "sink.recovered": ["twg_sink_up{raw} 1"],
  "sink.detached": ["twg_sink_detached_total{typed} 1"],
  "records.duplicate": ["twg_sink_duplicates_total{typed,orders} 3"],
  "records.undecodable": ["twg_decode_rejects_total{decode.truncated} 3"],
  "records.there": ["twg_sink_rows_there_total{typed} 3"],
  "records.refused": ["twg_sink_rejects_total{typed,row.constraint} 2"],
  "sink.rejects_failed": ["twg_errors_total{internal.cancelled} 1"],
  "sink.lacks": [
    "twg_sink_gap_expiring{typed} 1",
    "twg_sink_gaps{typed} 2",
    "twg_sink_oldest_gap_seconds{typed} 2",
    "twg_sink_uncovered_positions{typed} 15",
  ],
  "sink.gap": ["twg_sink_gap_positions_total{typed} 15"],
  "coverage.troubled": ["twg_errors_total{internal.cancelled} 1"],
  "coverage.fenced": ["twg_errors_total{internal.cancelled} 1"],
  "recovery.looked": ["twg_recovery_behind_positions{} 15"],
  "recovery.blind": ["twg_errors_total{internal.cancelled} 1"],
  "recovery.began": ["twg_recovery_active{} 1"],
  "recovery.rests": ["twg_recovery_active{} 0"],
  "recovery.leased": ["twg_recovery_leases{typed} 1"],
  "recovery.filled": [
    "twg_recovery_leases{typed} 0",
    "twg_recovery_windows_total{typed,returned} 1",
    "twg_recovery_positions_total{typed} 10",
  ],
  "recovery.covered": [
    "twg_sink_records_total{typed} 1500",
    "twg_sink_bytes_total{typed} 2048",
    "twg_sink_files_total{typed} 2",
    "twg_sink_up{typed} 1",
  ],
  "recovery.replayed": [
    "twg_recovery_replayed_records_total{} 1500",
    "twg_recovery_replayed_bytes_total{} 2048",
  ],
  "recovery.troubled": ["twg_errors_total{internal.cancelled} 1"],
  "recovery.yields": ["twg_recovery_yields_total{} 1"],
  "stall.detected": ["twg_stalled{} 1", "twg_stalls_total{} 1"],
  "stall.cleared": ["twg_stalled{} 0"],
  "connection.opened": ["twg_connections{fetch} 1", "twg_connections_opened_total{fetch} 1"],
  "connection.closed": ["twg_connections{fetch} -1"],
  "request.done": [
    "twg_requests_total{Fetch} 1",
    "twg_request_errors_total{Fetch,timeout} 1",
    "twg_request_seconds_sum{Fetch} 0.012",
    "twg_request_seconds_count{Fetch} 1",
    "twg_request_bytes_total{Fetch,sent} 90",
    "twg_request_bytes_total{Fetch,received} 7",
  ],
};

test.each(Object.keys(SAMPLES) as EventName[])("what %s moves", (name) => {
  const r = new Registry();
  meterEvent(declareMeters(r), SAMPLES[name]);
  const moved = r.families().flatMap((f) =>
    f
      .samples()
      .filter((s) => s.suffix !== "_bucket")
      .map((s) => `${f.name}${s.suffix}{${s.labels.map(([, v]) => v).join(",")}} ${s.value}`),
  );
  expect(moved.sort()).toEqual([...(MOVES[name] ?? [])].sort());
});

test("names follow the rules of Prometheus: prefix, lower case, counters end in _total, help ends in a full stop", () => {
  const r = new Registry();
  declareMeters(r);
  for (const f of r.families()) {
    expect(f.name).toMatch(/^twg_[a-z][a-z0-9_]*$/);
    expect(f.name.endsWith("_total")).toBe(f.type === "counter");
    expect(f.help).toEndWith(".");
    for (const label of f.labels) expect(label).toMatch(/^[a-z][a-z0-9_]*$/);
  }
});

// Goal: the page shows partitions, sinks and health, and nothing that a name contains becomes markup. Method: the
// page of a hostile example, searched as text.
import { expect, test } from "bun:test";
import type { Stats } from "../../../src/adapters/telemetry/stats.ts";
import { MAX_ROWS, statusPage } from "../../../src/adapters/telemetry/status-page.ts";
import type { PartitionDigest } from "../../../src/core/observe/digest.ts";
import { HealthTree } from "../../../src/core/observe/health.ts";
import { ManualClock } from "../../brokers/kafka/manual-clock.ts";

const EVIL = `<script>alert("x")</script>&'`;
const SAFE = "&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;&amp;&#39;";

const partition = (n: number, lag: number | null): PartitionDigest => ({
  topic: "orders",
  partition: n,
  lane: 0,
  position: "9007199254740993",
  acknowledged: "9007199254740000",
  end: lag === null ? null : "9007199254741000",
  lag,
  records_per_second: 1234,
});

function stats(extra: Partial<Stats> = {}): Stats {
  const health = new HealthTree(new ManualClock());
  health.failed("source", "internal.cancelled", EVIL);
  health.degraded("lanes", EVIL, null, "1");
  return {
    pipeline: EVIL,
    version: EVIL,
    uptime_ms: 7_500_000,
    bytes_in_flight: 1024,
    budget_bytes: 2048,
    resident_bytes: 1_048_576,
    cpu_seconds: 1,
    health: health.report(),
    window_ms: 30_000,
    records: 5000,
    records_per_second: 100,
    bytes_per_second: 2048,
    lag: null,
    partitions: [],
    sinks: [{ sink: EVIL, rows: 1500, bytes: 2048, files: 3, rows_per_second: 12 }],
    ...extra,
  };
}

test("names and failure texts never become markup", () => {
  const html = statusPage(stats({ partitions: [{ ...partition(1, 5), topic: EVIL }] }));
  expect(html).not.toContain("<script");
  expect(html.split(SAFE).length - 1).toBeGreaterThanOrEqual(6);
});

test("it shows totals, health with children, and each partition with its positions in full", () => {
  const html = statusPage(stats({ partitions: [partition(7, 1000), partition(8, null)] }));
  expect(html).toContain("up 2 h 5 m &middot; 5.00k records &middot; 100 rec/s, 2.00 KiB/s &middot; lag ?");
  expect(html).toContain("1.00 KiB in flight of 2.00 KiB");
  expect(html).toContain('<td>source</td><td class="failed">failed</td><td>internal.cancelled</td>');
  expect(html).toContain("<td>lanes / 1</td>");
  expect(html).toContain(
    '<tr><td>orders</td><td class="n">7</td><td class="n">0</td><td class="n">9007199254740993</td>' +
      '<td class="n">9007199254740000</td><td class="n">9007199254741000</td><td class="n">1.00k</td><td class="n">1.23k</td></tr>',
  );
  expect(html).toContain('<td class="n">?</td><td class="n">?</td>');
});

test("of very many partitions those with the most lag are shown", () => {
  const many = Array.from({ length: MAX_ROWS + 20 }, (_, i) => partition(i, i));
  const html = statusPage(stats({ partitions: many }));
  expect(html.split("<td>orders</td>").length - 1).toBe(MAX_ROWS);
  expect(html).toContain("20 partitions with less lag are not shown");
  expect(html).toContain(`<td>orders</td><td class="n">${MAX_ROWS + 19}</td>`);
  expect(html).not.toContain('<td>orders</td><td class="n">19</td>');
});

test("a strip shows where a sink has gaps, the whole of it in proportion", () => {
  const missing = [
    { from: "100", next: "300" },
    { from: "999", next: "1000" },
  ];
  const lacks = {
    ...{ gaps: 2, positions: "201", oldest_ms: 90_000 },
    parts: [{ topic: EVIL, partition: 3, from: "0", next: "1000", missing }],
  };
  const sink = { rows: 1, bytes: 1, files: 1, rows_per_second: 0 };
  const html = statusPage(
    stats({
      sinks: [
        { ...sink, sink: "raw" },
        { ...sink, sink: EVIL, lacks },
      ],
    }),
  );
  expect(html).toContain(`${SAFE} lacks 201 positions in 2 ranges, the oldest for 1 m 30 s`);
  expect(html).toContain('<rect class="gap" x="100" width="200" height="10"/>');
  // One of a thousand would be narrower than what can be seen.
  expect(html).toContain('<rect class="gap" x="999" width="3" height="10"/>');
  expect(html).toContain('<td class="n">201</td>');
  expect(statusPage(stats({}))).not.toContain("<h2>Gaps");
});

test("recovery is shown with its leases; a name in them becomes no markup", () => {
  const lease = { sink: "typed", topic: "orders", partition: 3, silent_ms: 4_000 };
  const html = statusPage(
    stats({
      recovery: {
        ...{ state: "filling", behind: "15", free: "10", records: 1500, bytes: 2048, windows: 2 },
        ...{ records_per_second: 100, bytes_per_second: 2048 },
        leases: [
          { ...lease, kind: "window", from: "10", next: "25", holder: EVIL },
          { ...lease, kind: "head", from: "25", next: null, holder: "live", silent_ms: null },
        ],
      },
    }),
  );
  expect(html).toContain("<h2>Recovery</h2><p>filling &middot; 15 positions behind, 10 of them free");
  expect(html).toContain("100 rec/s, 2.00 KiB/s of raw files &middot; 2 windows done");
  expect(html).toContain(
    `<td>window</td><td>orders</td><td class="n">3</td><td>10 to 25</td><td>${SAFE}</td><td class="n">4.0 s</td>`,
  );
  expect(html).toContain('<td>from 25</td><td>live</td><td class="n">?</td>');
  expect(statusPage(stats())).not.toContain("Recovery");
});

test("without a budget none is named", () => {
  expect(statusPage(stats({ budget_bytes: null, lag: 3 }))).toContain(
    "lag 3 &middot; 1.00 KiB in flight &middot;",
  );
});

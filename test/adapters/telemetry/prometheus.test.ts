// Goal: the text is exposition format 0.0.4, hostile label values included. Method: text written by hand from the
// format's description; `scripts`-free, since an independent parser runs in the scrape test where Python is at hand.
import { expect, test } from "bun:test";
import { prometheusText } from "../../../src/adapters/telemetry/prometheus.ts";
import { Registry } from "../../../src/core/observe/metrics.ts";

test("families with help, type, labels and a histogram", () => {
  const r = new Registry();
  r.counter("a_total", "Counts a\\b\nlines.", ["topic"]).add(3, 'x"y\\z\n');
  r.gauge("unused", "Never touched.");
  r.gauge("g", "Plain.").set(-1.5);
  r.histogram("h_seconds", "Times.", ["step"], [0.5, 1]).observe(0.7, "seal");
  expect(prometheusText(r.families())).toBe(
    [
      "# HELP a_total Counts a\\\\b\\nlines.",
      "# TYPE a_total counter",
      'a_total{topic="x\\"y\\\\z\\n"} 3',
      "# HELP g Plain.",
      "# TYPE g gauge",
      "g -1.5",
      "# HELP h_seconds Times.",
      "# TYPE h_seconds histogram",
      'h_seconds_bucket{step="seal",le="0.5"} 0',
      'h_seconds_bucket{step="seal",le="1"} 1',
      'h_seconds_bucket{step="seal",le="+Inf"} 1',
      'h_seconds_sum{step="seal"} 0.7',
      'h_seconds_count{step="seal"} 1',
      "",
    ].join("\n"),
  );
});

test("numbers that JSON has no name for", () => {
  const r = new Registry();
  const g = r.gauge("g", "Plain.", ["n"]);
  g.set(Number.NaN, "nan");
  g.set(Infinity, "up");
  g.set(-Infinity, "down");
  g.set(1e21, "large");
  expect(prometheusText(r.families()).split("\n").slice(2, 6)).toEqual([
    'g{n="nan"} NaN',
    'g{n="up"} +Inf',
    'g{n="down"} -Inf',
    'g{n="large"} 1e+21',
  ]);
});

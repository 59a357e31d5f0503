// Goal: the progress line says what the snapshot holds. Method: lines written by hand.
import { expect, test } from "bun:test";
import { fitLine, type ProgressSnapshot, progressLine } from "../../../src/core/observe/progress-line.ts";

const base: ProgressSnapshot = {
  state: "running",
  reason: null,
  recordsPerSecond: 1_250_000.4,
  bytesPerSecond: 312_000_000,
  lag: 4_000_000,
  bytesInFlight: 25_165_824,
  sinks: [{ sink: "raw", rows: 12_000_000, files: 48 }],
};

test("a running pipeline", () => {
  expect(progressLine(base)).toBe(
    "running | 1.25M rec/s | 312 MB/s | lag 4.00M | in flight 24.0 MiB | raw 12.0M rows 48 files",
  );
});

test("before anything is known", () => {
  const start: ProgressSnapshot = {
    state: "starting",
    reason: null,
    recordsPerSecond: 0,
    bytesPerSecond: 0,
    lag: null,
    bytesInFlight: 0,
    sinks: [],
  };
  expect(progressLine(start)).toBe("starting | 0 rec/s | 0.0 MB/s | lag ? | in flight 0 B");
});

test("several sinks, one file, slow", () => {
  const slow: ProgressSnapshot = {
    ...base,
    state: "degraded",
    reason: "committer: net.refused",
    recordsPerSecond: 17.4,
    bytesPerSecond: 99_960_000,
    lag: 0,
    bytesInFlight: 512,
    sinks: [
      { sink: "raw", rows: 999, files: 1 },
      { sink: "pg", rows: 0, files: 0 },
    ],
  };
  expect(progressLine(slow)).toBe(
    "degraded (committer: net.refused) | 17 rec/s | 100 MB/s | lag 0 | in flight 512 B | raw 999 rows 1 file | pg 0 rows 0 files",
  );
});

test("a line never fills the last column, where terminals wrap", () => {
  expect(fitLine("0123456789", 11)).toBe("0123456789");
  expect(fitLine("0123456789", 10)).toBe("012345...");
  expect(fitLine("0123456789", 3)).toBe("01");
  expect(fitLine("0123456789", 0)).toBe("0");
});

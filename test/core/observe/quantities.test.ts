// Goal: numbers for people read right at every unit border. Method: values worked out by hand.
import { expect, test } from "bun:test";
import { formatBytes, formatCount, formatDuration } from "../../../src/core/observe/quantities.ts";

test.each([
  [0, "0"],
  [999, "999"],
  [0.5, "0.5"],
  [1000, "1.00k"],
  [1234, "1.23k"],
  [9_994, "9.99k"],
  [9_996, "10.0k"],
  [99_940, "99.9k"],
  [99_960, "100k"],
  [999_400, "999k"],
  // Would round to "1000k".
  [999_600, "1.00M"],
  [1_250_000, "1.25M"],
  [-2_500_000, "-2.50M"],
  [3e18, "3000P"],
  [Number.NaN, "?"],
])("count %p is %p", (value, text) => {
  expect(formatCount(value)).toBe(text);
});

test.each([
  [0, "0 B"],
  [1023, "1023 B"],
  [1024, "1.00 KiB"],
  [1_572_864, "1.50 MiB"],
  [268_435_456, "256 MiB"],
  // 1023.9 KiB would print as 1024 KiB.
  [1_048_474, "1.00 MiB"],
])("%p bytes are %p", (value, text) => {
  expect(formatBytes(value)).toBe(text);
});

test.each([
  [0, "0 ms"],
  [849.6, "850 ms"],
  [999.6, "1.0 s"],
  [12_500, "12.5 s"],
  [59_940, "59.9 s"],
  [59_960, "1 m 0 s"],
  [200_000, "3 m 20 s"],
  [7_500_000, "2 h 5 m"],
  [273_600_000, "3 d 4 h"],
  [-1, "?"],
  [Infinity, "?"],
])("%p ms are %p", (value, text) => {
  expect(formatDuration(value)).toBe(text);
});

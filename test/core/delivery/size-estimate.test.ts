// Goal: the estimate is the 95th percentile within its stated error, with the seed as floor, and follows the topic.
// Method: compared with the percentile of the sorted list.
import { expect, test } from "bun:test";
import fc from "fast-check";
import { SizeEstimate } from "../../../src/core/delivery/size-estimate.ts";

test("before anything was seen the seed counts, afterwards it is the floor", () => {
  const e = new SizeEstimate(256);
  expect(e.bytes).toBe(256);
  e.observe(1000, 10_000);
  expect(e.bytes).toBe(256);
  e.observe(100_000, 100_000 * 1024);
  // 1024 is a bucket bound (2^10), so it is met exactly.
  expect(e.bytes).toBe(1024);
});

test("5 % of large records do not move it, 7 % do", () => {
  const e = new SizeEstimate(1);
  e.observe(95, 95 * 64);
  e.observe(5, 5 * 65_536);
  expect(e.bytes).toBe(64);
  e.observe(2, 2 * 65_536);
  expect(e.bytes).toBe(65_536);
});

test("it forgets: after a few windows of small records the large ones are gone", () => {
  const e = new SizeEstimate(1, 1000);
  e.observe(1_000_000, 1_000_000 * 4096);
  expect(e.bytes).toBe(4096);
  for (let i = 0; i < 60; i++) e.observe(100, 100 * 16);
  expect(e.bytes).toBe(16);
});

test("nonsense changes nothing", () => {
  const e = new SizeEstimate(10);
  e.observe(0, 100);
  e.observe(5, -1);
  e.observe(Number.NaN, 5);
  e.observe(5, Number.NaN);
  expect(e.bytes).toBe(10);
  expect(() => new SizeEstimate(0)).toThrow("seed");
  expect(() => new SizeEstimate(1, 0)).toThrow("window");
});

test("records and bytes are turned into each other, and one record always fits", () => {
  const e = new SizeEstimate(100);
  expect(e.recordsIn(1050)).toBe(10);
  expect(e.recordsIn(1)).toBe(1);
  expect(e.bytesFor(3)).toBe(300);
});

test("sizes beyond the last bucket are held at 2 GiB", () => {
  const e = new SizeEstimate(1);
  e.observe(1, 2 ** 40);
  expect(e.bytes).toBe(2 ** 31);
});

test("property: never below the true percentile, at most 9.1 % above it", () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 10_000_000 }), { minLength: 1, maxLength: 300 }),
      (sizes) => {
        const e = new SizeEstimate(1);
        for (const s of sizes) e.observe(1, s);
        const sorted = [...sizes].sort((a, b) => a - b);
        const truth = sorted[Math.ceil(sizes.length * 0.95) - 1] ?? 0;
        // The bound of the bucket may be a rounding error below a size that lies on it.
        expect(e.bytes).toBeGreaterThanOrEqual(truth * (1 - 1e-9));
        expect(e.bytes).toBeLessThanOrEqual(truth * 2 ** (1 / 8) * (1 + 1e-9));
      },
    ),
  );
});

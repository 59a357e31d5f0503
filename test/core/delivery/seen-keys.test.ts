/**
 * Goal: of each key within the window the last record, and memory that follows the window. Method: a map that forgets nothing
 * as the model, random keys and windows; then many more keys than the window holds.
 */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { SeenKeys } from "../../../src/core/delivery/seen-keys.ts";

const keyOf = (n: number) => Int32Array.of(Math.imul(n, 0x9e3779b1), n, ~n, n * 3);

test("property: what a map says, whatever the order in which records come", () => {
  const step = fc.record({
    key: fc.integer({ min: 0, max: 3000 }),
    // Some come late, as those that are read from raw.
    back: fc.constantFrom(0, 0, 0, 50, 400),
  });
  fc.assert(
    fc.property(
      fc.array(step, { minLength: 3000, maxLength: 4000 }),
      fc.integer({ min: 1, max: 2000 }),
      (steps, window) => {
        const seen = new SeenKeys();
        const model = new Map<number, number>();
        for (const [i, { key, back }] of steps.entries()) {
          const position = i - back;
          if (back === 0) seen.floor = i - window;
          seen.note(keyOf(key), position, position * 2);
          model.set(key, Math.max(position, model.get(key) ?? Number.NEGATIVE_INFINITY));
          const last = model.get(key)!;
          const slot = seen.find(keyOf(key));
          expect(slot < 0 ? null : seen.positionAt(slot)).toBe(last < seen.floor ? null : last);
          if (slot >= 0) expect(seen.timeAt(slot)).toBe(last * 2);
        }
        const alive = [...model].filter(([, at]) => at >= seen.floor).map(([, at]) => at);
        const found: number[] = [];
        seen.each((_, position) => found.push(position));
        expect(found.sort((a, b) => a - b)).toEqual(alive.sort((a, b) => a - b));
      },
    ),
    { numRuns: 20 },
  );
});

test("memory follows the window, not what passed by", () => {
  const seen = new SeenKeys();
  const window = 10_000;
  for (let i = 0; i < 30 * window; i++) {
    seen.floor = i - window;
    seen.note(keyOf(i), i, 0);
  }
  // 32 bytes a slot, at least a fifth of them in use.
  expect(seen.bytes).toBeLessThanOrEqual(5 * 32 * window);
  seen.clear();
  expect(seen.bytes).toBeLessThan(100_000);
  expect(seen.find(keyOf(30 * window - 1))).toBe(-1);
});

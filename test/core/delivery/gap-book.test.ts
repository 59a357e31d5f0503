/** Goal: what a sink lacks and since when, never told younger than it is. Method: landings by hand; a model of times by position. */
import { expect, test } from "bun:test";
import { normalRanges, type Ranges } from "../../../src/core/coverage/ranges.ts";
import { GapBook } from "../../../src/core/delivery/gap-book.ts";

const range = (from: number, next: number) => ({ from: BigInt(from), next: BigInt(next) });
const span = (stream: string, from: number, next: number) => ({ stream, ...range(from, next) });
function begun(book: GapBook, stream: string, covered: Ranges, at: number): void {
  book.begin(stream, at);
  book.had(stream, covered);
}
const hasOf = (all: Record<string, Ranges>) => (stream: string) => all[stream] ?? null;

test("gaps, positions and the oldest of them, of what was there before and of what came", () => {
  const book = new GapBook();
  begun(book, "a", [range(0, 10)], 100);
  begun(book, "b", [], 100);
  begun(book, "unknown to it", [range(0, 99)], 100);
  book.landed([span("a", 10, 20), span("b", 5, 8), span("not ours", 0, 9)], 200);
  book.landed([span("b", 8, 12)], 300);
  expect(book.of(hasOf({ a: [range(0, 4), range(6, 20)], b: [range(5, 9)] }), 1_000)).toEqual({
    gaps: 2,
    positions: 5n,
    oldestMs: 900,
    streams: [
      { stream: "b", ...range(5, 12), ranges: [range(9, 12)] },
      { stream: "a", ...range(0, 20), ranges: [range(4, 6)] },
    ],
  });
  book.told();
  expect(book.of(hasOf({ a: [range(0, 20)], b: [range(5, 9)] }), 1_000).oldestMs).toBe(700);
  expect(book.of(hasOf({ a: [range(0, 20)], b: [range(5, 12)] }), 1_000)).toEqual({
    ...{ gaps: 0, positions: 0n, oldestMs: null, streams: [] },
  });
  book.forget("b");
  expect(book.of(hasOf({ b: [] }), 1_000).gaps).toBe(0);
});

test("a stream that is claimed again keeps the times that are known", () => {
  const book = new GapBook();
  begun(book, "a", [range(0, 10)], 100);
  book.landed([span("a", 10, 20)], 200);
  begun(book, "a", [range(0, 20)], 900);
  expect(book.of(hasOf({ a: [range(0, 15)] }), 1_000).oldestMs).toBe(800);
});

test("what all sinks have costs no resolution, however long it goes on", () => {
  const book = new GapBook();
  begun(book, "a", [], 0);
  for (let i = 0; i < 10_000; i++) {
    book.landed([span("a", i, i + 1)], i * 1_000);
    book.of(hasOf({ a: [range(0, i)] }), i * 1_000);
    book.told();
  }
  expect(book.of(hasOf({ a: [range(0, 9_999)] }), 9_999_000).oldestMs).toBe(0);
});

test("of many landings the age is too old by little, and never too young", () => {
  const book = new GapBook();
  begun(book, "a", [], 0);
  for (let i = 0; i < 10_000; i++) book.landed([span("a", i, i + 1)], i);
  for (const upTo of [0, 1, 77, 5_000, 9_998, 9_999]) {
    const { oldestMs } = book.of(hasOf({ a: normalRanges([range(0, upTo)]) }), 10_000);
    expect(oldestMs).toBeGreaterThanOrEqual(10_000 - upTo);
    expect(oldestMs).toBeLessThanOrEqual(10_000 - upTo + 10_000 / 16);
  }
});

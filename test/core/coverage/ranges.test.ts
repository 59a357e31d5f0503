/**
 * Goal: sets of positions as ranges do what sets do, and never close a hole that was not covered.
 * Method: every operation against a set of small whole numbers, one flag a position, which has no edges to get wrong.
 */
import { expect, test } from "bun:test";
import fc from "fast-check";
import {
  containsRange,
  cutSpan,
  firstUncovered,
  holes,
  intersectRanges,
  normalRanges,
  overlapsRange,
  type Ranges,
  subtractRanges,
  unionRanges,
} from "../../../src/core/coverage/ranges.ts";

/** Positions are small in the model and shifted in the ranges, so that arithmetic beyond 2^53 is met too. */
const SIZE = 40;
const SHIFT = 2n ** 62n;

const range = (from: number, next: number) => ({ from: SHIFT + BigInt(from), next: SHIFT + BigInt(next) });
const pair = fc.tuple(fc.nat(SIZE), fc.nat(SIZE)).map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const);
const pairs = fc.array(pair, { maxLength: 12 });

type Bits = readonly boolean[];

function bitsOf(all: readonly (readonly [number, number])[]): Bits {
  return Array.from({ length: SIZE }, (_, i) => all.some(([from, next]) => from <= i && i < next));
}

/** The one normal form of a set: maximal runs of flags. */
function runs(bits: Bits): Ranges {
  const out: { from: bigint; next: bigint }[] = [];
  for (let i = 0; i < SIZE; i++) {
    if (!bits[i]) continue;
    const from = i;
    while (bits[i + 1]) i++;
    out.push(range(from, i + 1));
  }
  return out;
}

const rangesOf = (all: readonly (readonly [number, number])[]): Ranges =>
  normalRanges(all.map(([f, n]) => range(f, n)));
const check = (property: fc.IProperty<never> | fc.IRawProperty<unknown>) =>
  fc.assert(property, { numRuns: 400 });

test("normal form: any order, doubled, empty and touching ranges give the maximal runs", () => {
  check(fc.property(pairs, (a) => expect(rangesOf(a)).toEqual(runs(bitsOf(a)))));
});

test("union, difference and intersection are those of sets", () => {
  check(
    fc.property(pairs, pairs, (a, b) => {
      const [x, y] = [bitsOf(a), bitsOf(b)];
      const [ra, rb] = [rangesOf(a), rangesOf(b)];
      expect(unionRanges(ra, rb)).toEqual(runs(x.map((v, i) => v || y[i] === true)));
      expect(subtractRanges(ra, rb)).toEqual(runs(x.map((v, i) => v && y[i] !== true)));
      expect(intersectRanges(ra, rb)).toEqual(runs(x.map((v, i) => v && y[i] === true)));
    }),
  );
});

test("union does not depend on order or repetition: writers that race lose nothing", () => {
  check(
    fc.property(pairs, pairs, pairs, (a, b, c) => {
      const [x, y, z] = [rangesOf(a), rangesOf(b), rangesOf(c)];
      expect(unionRanges(unionRanges(x, y), z)).toEqual(unionRanges(x, unionRanges(z, y)));
      expect(unionRanges(unionRanges(x, y), y)).toEqual(unionRanges(y, x));
    }),
  );
});

test("questions about one range or position are answered as by the set", () => {
  check(
    fc.property(pairs, pair, (a, [from, next]) => {
      const bits = bitsOf(a);
      const ranges = rangesOf(a);
      const asked = bits.slice(from, next);
      expect(containsRange(ranges, range(from, next))).toBe(asked.every((v) => v));
      expect(overlapsRange(ranges, range(from, next))).toBe(asked.some((v) => v));
      let first = from;
      while (bits[first]) first++;
      expect(firstUncovered(ranges, SHIFT + BigInt(from))).toBe(SHIFT + BigInt(first));
      const uncovered = bits.map((v, i) => !v && from <= i && i < next);
      expect(cutSpan(range(from, next), ranges)).toEqual(runs(uncovered));
    }),
  );
});

test("holes are what the hull has and the set has not", () => {
  check(
    fc.property(pairs, (a) => {
      const bits = bitsOf(a);
      const [first, last] = [bits.indexOf(true), bits.lastIndexOf(true)];
      expect(holes(rangesOf(a))).toEqual(runs(bits.map((v, i) => !v && first < i && i < last)));
    }),
  );
});

test("a hole of one position stays a hole", () => {
  expect(unionRanges([range(0, 4)], [range(5, 9)])).toEqual([range(0, 4), range(5, 9)]);
  expect(unionRanges([range(0, 4)], [range(4, 9)])).toEqual([range(0, 9)]);
});

test("a position before the first and after the last range is its own answer", () => {
  expect(firstUncovered([], 7n)).toBe(7n);
  expect(firstUncovered([range(3, 5)], 0n)).toBe(0n);
  expect(firstUncovered([range(3, 5)], SHIFT + 9n)).toBe(SHIFT + 9n);
});

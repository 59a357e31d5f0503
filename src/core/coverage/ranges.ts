/**
 * Sets of positions of one stream as sorted, disjoint, half-open ranges. Ranges that touch are joined; a hole,
 * however small, is never closed by anything but a range that was really covered.
 *
 * Every function takes and gives normal form: from < next, ascending, no two ranges overlap or touch.
 */
import type { Range } from "../ports/coverage.ts";

export type Ranges = readonly Range[];

const min = (a: bigint, b: bigint): bigint => (a < b ? a : b);
const max = (a: bigint, b: bigint): bigint => (a > b ? a : b);

/** The union. Merging is commutative and idempotent, so writers that race never lose each other's ranges. */
export function unionRanges(a: Ranges, b: Ranges): Ranges {
  const out: Range[] = [];
  let i = 0;
  let j = 0;
  for (;;) {
    const x = a[i];
    const y = b[j];
    const r = x === undefined ? y : y === undefined || x.from <= y.from ? x : y;
    if (r === undefined) return out;
    if (r === x) i++;
    else j++;
    const last = out[out.length - 1];
    if (last !== undefined && r.from <= last.next) {
      out[out.length - 1] = { from: last.from, next: max(last.next, r.next) };
    } else out.push({ from: r.from, next: r.next });
  }
}

/** Normal form of ranges in any order; empty ones vanish. */
export function normalRanges(ranges: Ranges): Ranges {
  const sorted = ranges.filter((r) => r.from < r.next);
  sorted.sort((x, y) => (x.from < y.from ? -1 : x.from > y.from ? 1 : 0));
  return unionRanges(sorted, []);
}

/** True if every position of `r` is in `ranges`. An empty range is contained in anything. */
export function containsRange(ranges: Ranges, r: Range): boolean {
  return r.from >= r.next || ranges.some((c) => c.from <= r.from && r.next <= c.next);
}

export function overlapsRange(ranges: Ranges, r: Range): boolean {
  return ranges.some((c) => c.from < r.next && r.from < c.next && r.from < r.next);
}

/** Positions of `a` that are not in `b`: the gaps of b seen from a. */
export function subtractRanges(a: Ranges, b: Ranges): Ranges {
  const out: Range[] = [];
  let j = 0;
  for (const r of a) {
    let at = r.from;
    while (at < r.next) {
      const c = b[j];
      if (c === undefined || c.from >= r.next) {
        out.push({ from: at, next: r.next });
        break;
      }
      if (c.from > at) out.push({ from: at, next: c.from });
      at = max(at, c.next);
      // A range of b that reaches into the next range of a is needed again there.
      if (c.next <= r.next) j++;
    }
  }
  return out;
}

export function intersectRanges(a: Ranges, b: Ranges): Ranges {
  const out: Range[] = [];
  let i = 0;
  let j = 0;
  for (;;) {
    const x = a[i];
    const y = b[j];
    if (x === undefined || y === undefined) return out;
    const from = max(x.from, y.from);
    const next = min(x.next, y.next);
    if (from < next) out.push({ from, next });
    if (x.next < y.next) i++;
    else j++;
  }
}

/** The first position at or after `p` that is in no range. */
export function firstUncovered(ranges: Ranges, p: bigint): bigint {
  for (const r of ranges) {
    if (r.from <= p && p < r.next) return r.next;
    if (r.from > p) return p;
  }
  return p;
}

/** What of [from, next) is not covered, in order: where a batch that stands for the span may be written. */
export function cutSpan(span: Range, covered: Ranges): Ranges {
  return span.from < span.next ? subtractRanges([span], covered) : [];
}

/** The holes between the first and the last range. */
export function holes(ranges: Ranges): Ranges {
  const first = ranges[0];
  const last = ranges[ranges.length - 1];
  if (first === undefined || last === undefined) return [];
  return subtractRanges([{ from: first.from, next: last.next }], ranges);
}

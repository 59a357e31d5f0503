import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { cutAround, SpanSet } from "../../../src/core/pipeline/span-set.ts";

describe("span set", () => {
  test("a span that continues the last one of its stream grows it; others stay apart", () => {
    const set = new SpanSet();
    set.add("a", 0n, 5n);
    set.add("b", 9n, 10n);
    set.add("a", 5n, 7n);
    set.add("a", 9n, 12n);
    expect(set.take()).toEqual([
      { stream: "a", from: 0n, next: 7n },
      { stream: "a", from: 9n, next: 12n },
      { stream: "b", from: 9n, next: 10n },
    ]);
  });

  test("taking leaves the spans until they are cleared, so that a failed seal claims the same again", () => {
    const set = new SpanSet();
    set.add("a", 0n, 5n);
    expect(set.take()).toEqual(set.take());
    set.clear();
    expect(set.empty).toBe(true);
  });

  test("an empty span claims nothing", () => {
    const set = new SpanSet();
    set.add("a", 5n, 5n);
    expect(set.empty).toBe(true);
  });
});

describe("cutting around covered ranges", () => {
  test("pieces are in order, together the whole span, and covered exactly where a skip range is (bit set model)", () => {
    const ranges = fc.array(fc.tuple(fc.integer({ min: 0, max: 30 }), fc.integer({ min: 1, max: 5 })), {
      maxLength: 5,
    });
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 30 }),
        fc.integer({ min: 1, max: 20 }),
        ranges,
        (from, length, raw) => {
          const bits = new Set<number>();
          for (const [at, n] of raw) for (let i = at; i < at + n; i++) bits.add(i);
          const skip: { from: bigint; next: bigint }[] = [];
          for (let i = 0; i < 60; i++) {
            const last = skip[skip.length - 1];
            if (!bits.has(i)) continue;
            if (last !== undefined && last.next === BigInt(i)) last.next = BigInt(i + 1);
            else skip.push({ from: BigInt(i), next: BigInt(i + 1) });
          }
          const pieces = cutAround({ from: BigInt(from), next: BigInt(from + length) }, skip);
          let at = BigInt(from);
          for (const p of pieces) {
            expect(p.from).toBe(at);
            expect(p.next > p.from).toBe(true);
            for (let i = p.from; i < p.next; i++) expect(bits.has(Number(i))).toBe(p.covered);
            at = p.next;
          }
          expect(at).toBe(BigInt(from + length));
        },
      ),
    );
  });
});

/**
 * Goal: sets are given so that each stream's positions rise, nothing wanted is left out, and no set is read more often
 * than it must be. Method: small indexes by hand, and random ones held against a plain reading.
 */
import { expect, test } from "bun:test";
import { normalRanges } from "../../../src/core/coverage/ranges.ts";
import type { IndexEntry } from "../../../src/core/coverage/state.ts";
import type { Range } from "../../../src/core/ports/coverage.ts";
import { ReplayOrder, type Wanted } from "../../../src/core/recovery/replay-order.ts";

const range = (from: number, next: number): Range => ({ from: BigInt(from), next: BigInt(next) });
const entry = (id: string, spans: Record<string, readonly Range[]>): IndexEntry => ({
  id,
  targets: [],
  spans: Object.entries(spans).flatMap(([stream, ranges]) => ranges.map((r) => ({ stream, ...r }))),
  rows: 0,
  bytes: 0,
});
const want = (of: Record<string, readonly Range[]>): Wanted => new Map(Object.entries(of));

function taken(order: ReplayOrder): string[] {
  const steps: string[] = [];
  for (let step = order.take(); step !== null; step = order.take())
    steps.push(`${step.set.id} ${step.parts.map((p) => `${p.stream}<${p.next}`).join(" ")}`);
  return steps;
}

test("a set is read once for all streams that have come to it", () => {
  const index = [
    entry("1", { a: [range(0, 10)], b: [range(0, 4)] }),
    entry("2", { a: [range(10, 20)], b: [range(4, 8)] }),
  ];
  const wanted = want({ a: [range(5, 20)], b: [range(0, 6)] });
  expect(taken(new ReplayOrder(index, wanted))).toEqual(["1 a<10 b<4", "2 a<20 b<6"]);
});

test("what is not wanted is not read, and pieces of one set go together", () => {
  const index = [
    entry("1", { a: [range(0, 10)] }),
    entry("2", { a: [range(10, 12), range(15, 20)] }),
    entry("3", { a: [range(12, 15)] }),
  ];
  expect(taken(new ReplayOrder(index, want({ a: [range(10, 11), range(18, 19)] })))).toEqual(["2 a<19"]);
  expect(taken(new ReplayOrder(index, want({ a: [range(10, 20)] })))).toEqual(["2 a<12", "3 a<15", "2 a<20"]);
});

test("what was landed out of order is read in order of positions", () => {
  const index = [entry("1", { a: [range(5, 9)], b: [range(0, 2)] }), entry("2", { a: [range(0, 5)] })];
  const order = new ReplayOrder(index, want({ a: [range(0, 9)], b: [range(0, 2)] }));
  expect(taken(order)).toEqual(["1 b<2", "2 a<5", "1 a<9"]);
});

test("a stream that goes back is read again from there, and only it", () => {
  const index = [entry("1", { a: [range(0, 5)], b: [range(0, 5)] }), entry("2", { a: [range(5, 9)] })];
  const order = new ReplayOrder(index, want({ a: [range(0, 9)], b: [range(0, 5)] }));
  expect(taken(order)).toEqual(["1 a<5 b<5", "2 a<9"]);
  order.seek("a", 3n);
  expect(taken(order)).toEqual(["1 a<5", "2 a<9"]);
  order.seek("a", 9n);
  order.seek("nobody", 0n);
  expect(taken(order)).toEqual([]);
});

test("what no set has is named", () => {
  const index = [entry("1", { a: [range(0, 5), range(7, 9)] })];
  const wanted = want({ a: [range(0, 9)], c: [range(1, 2)] });
  expect([...new ReplayOrder(index, wanted).missing(wanted)]).toEqual([
    ["a", [range(5, 7)]],
    ["c", [range(1, 2)]],
  ]);
});

test("200 random indexes: positions rise, all that is wanted is given", () => {
  let seed = 7;
  const random = (n: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return seed % n;
  };
  for (let round = 0; round < 200; round++) {
    const spans: { set: number; stream: string; r: Range }[] = [];
    for (const stream of ["a", "b", "c"])
      for (let at = random(3); at < 40; ) {
        const next = at + 1 + random(6);
        spans.push({ set: random(8), stream, r: range(at, next) });
        at = next + (random(3) === 0 ? random(4) : 0);
      }
    const index = Array.from({ length: 8 }, (_, set) => {
      const mine = Map.groupBy(
        spans.filter((s) => s.set === set),
        (s) => s.stream,
      );
      return entry(String(set), Object.fromEntries([...mine].map(([k, v]) => [k, v.map((s) => s.r)])));
    });
    const all = Map.groupBy(spans, (s) => s.stream);
    const wanted: Wanted = new Map([...all].map(([k, v]) => [k, normalRanges(v.map((s) => s.r))]));
    const order = new ReplayOrder(index, wanted);
    expect(order.missing(wanted).size).toBe(0);
    const upTo = new Map<string, bigint>();
    for (let step = order.take(); step !== null; step = order.take())
      for (const { stream, next } of step.parts) {
        expect(next > (upTo.get(stream) ?? -1n)).toBe(true);
        // Nothing that is wanted lies between where it was and what this set has.
        const skipped = spans.filter(
          (s) => s.stream === stream && s.set !== Number(step.set.id) && s.r.next <= next,
        );
        for (const s of skipped) expect(s.r.next <= (upTo.get(stream) ?? 0n)).toBe(true);
        upTo.set(stream, next);
      }
    for (const [stream, ranges] of wanted) expect(upTo.get(stream)).toBe(ranges.at(-1)!.next);
  }
});

/** Goal: what is wanted of a raw table is in sets that are bounded, in order, and know their rows. Method: sets by hand. */
import { expect, test } from "bun:test";
import { rowsOf, type TableStretch, tableSets, UNCOUNTED } from "../../../src/core/recovery/table-sets.ts";

const stretch = (stream: string, from: bigint, next: bigint, rows: number, bytes: number): TableStretch => ({
  ...{ stream, from, next, rows, bytes },
});
const shown = (sets: ReturnType<typeof tableSets>) =>
  sets.map((s) =>
    s.spans.map(({ stream, from, next }, i) => `${stream}[${from},${next})=${rowsOf(s)[i]}`).join(" "),
  );

test("stretches that landed one after the other share a set up to its bytes, in the order of their positions", () => {
  const entries = [
    stretch("b", 10n, 20n, 7, 40),
    stretch("a", 0n, 5n, 5, 30),
    stretch("b", 0n, 10n, 10, 20),
    stretch("a", 5n, 9n, 4, 500),
    stretch("a", 9n, 10n, 1, 10),
  ];
  const wanted = new Map([
    ["a", [{ from: 0n, next: 10n }]],
    ["b", [{ from: 3n, next: 12n }]],
  ]);
  const sets = tableSets(wanted, entries, () => 1, { cut: 100, set: 100 });
  expect(shown(sets)).toEqual(["a[0,5)=5 b[0,10)=10 b[10,20)=7", "a[5,9)=4", "a[9,10)=1"]);
  expect(sets.map((s) => [s.rows, s.bytes])).toEqual([
    [22, 90],
    [4, 500],
    [1, 10],
  ]);
});

test("what no entry tells of is cut by what a position has, and comes first", () => {
  const wanted = new Map([["a", [{ from: 0n, next: 30n }]]]);
  const sets = tableSets(wanted, [stretch("a", 12n, 20n, 8, 80)], () => 10, { cut: 100, set: 100 });
  expect(shown(sets)).toEqual([
    `a[0,10)=${UNCOUNTED}`,
    `a[10,12)=${UNCOUNTED}`,
    `a[20,30)=${UNCOUNTED}`,
    "a[12,20)=8",
  ]);
  expect(sets.map((s) => s.rows)).toEqual([0, 0, 0, 8]);
  expect(tableSets(new Map(), [], () => 0, { cut: 100, set: 100 })).toEqual([]);
  // Each alone need not mean each position alone.
  const alone = tableSets(wanted, [], () => 10, { cut: Number.MAX_SAFE_INTEGER, set: 1 });
  expect(shown(alone)).toEqual([`a[0,30)=${UNCOUNTED}`]);
});

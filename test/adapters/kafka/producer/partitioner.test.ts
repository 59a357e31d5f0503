/** Goal: a key goes where Kafka's Java client puts it, and records without one are spread. Method: the vectors of Kafka's own test of its hash; a seeded chance for the rest. */
import { expect, test } from "bun:test";
import {
  keyPartition,
  murmur2,
  StickyPartition,
} from "../../../../src/adapters/kafka/producer/partitioner.ts";
import { SeededChance } from "../../../sim/chance.ts";

const UTF8 = new TextEncoder();

test.each([
  ["21", -973932308],
  ["foobar", -790332482],
  ["a-little-bit-long-string", -985981536],
  ["a-little-bit-longer-string", -1486304829],
  ["lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971],
  ["abc", 479470107],
])("murmur2 of %s", (text, hash) => {
  const bytes = UTF8.encode(`..${text}!`);
  expect(murmur2(bytes, 2, bytes.length - 1)).toBe(hash);
  expect(keyPartition(bytes, 2, bytes.length - 1, 7)).toBe((hash & 0x7fffffff) % 7);
});

test("a partition is kept for a batch's worth of bytes, and while it has a leader", () => {
  const sticky = new StickyPartition(1_000, new SeededChance(1));
  const first = sticky.current([0, 1, 2, 3], () => 0);
  sticky.took(999);
  expect(sticky.current([0, 1, 2, 3], () => 0)).toBe(first);
  const others = [0, 1, 2, 3].filter((p) => p !== first);
  expect(others).toContain(sticky.current(others, () => 0));
});

test("every partition gets its part, one with a long queue less", () => {
  const seen = [0, 0, 0];
  const sticky = new StickyPartition(10, new SeededChance(2));
  for (let i = 0; i < 3_000; i++) {
    seen[sticky.current([0, 1, 2], (p) => (p === 2 ? 3 : 0))]!++;
    sticky.took(10);
  }
  // Weights 4, 4 and 1 of 9.
  expect(seen.map((n) => Math.round(n / 333))).toEqual([4, 4, 1]);
});

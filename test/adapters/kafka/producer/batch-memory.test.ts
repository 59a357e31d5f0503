/**
 * Goal: the memory of a batch, and of every size that it grows through, is used again, and no more is kept than allowed.
 * Method: identity of what is taken.
 */
import { expect, test } from "bun:test";
import { BatchMemory, FIRST_BYTES } from "../../../../src/adapters/kafka/producer/batch-memory.ts";

const WHOLE = 1_000_061;

test("each size on the way to a whole batch comes again", () => {
  const memory = new BatchMemory(WHOLE, 16 << 20);
  for (const [asked, size] of [
    [FIRST_BYTES, FIRST_BYTES],
    [8 * FIRST_BYTES, 8 * FIRST_BYTES],
    [600_000, WHOLE],
    [WHOLE, WHOLE],
  ] as const) {
    const one = memory.take(asked);
    expect(one.length).toBe(size);
    memory.give(one);
    const two = memory.take(asked);
    expect(two).toBe(one);
    expect(memory.take(asked)).not.toBe(one);
  }
});

test("sizes between and beyond are made as they are, and not kept", () => {
  const memory = new BatchMemory(WHOLE, 16 << 20);
  for (const bytes of [FIRST_BYTES + 1, 5_000, 2 * WHOLE]) {
    const one = memory.take(bytes);
    expect(one.length).toBe(bytes);
    memory.give(one);
    expect(memory.take(bytes)).not.toBe(one);
  }
  // A part of something larger is nobody's to give.
  const part = new Uint8Array(2 * FIRST_BYTES).subarray(0, FIRST_BYTES);
  memory.give(part);
  expect(memory.take(FIRST_BYTES)).not.toBe(part);
});

test("not more is kept than allowed, and what was taken out makes room", () => {
  const memory = new BatchMemory(WHOLE, 2 * WHOLE);
  const [a, b, c] = [memory.take(WHOLE), memory.take(WHOLE), memory.take(WHOLE)];
  for (const m of [a, b, c]) memory.give(m);
  expect(memory.take(WHOLE)).toBe(b);
  memory.give(c);
  expect(memory.take(WHOLE)).toBe(c);
  expect(memory.take(WHOLE)).toBe(a);
  expect([a, b, c]).not.toContain(memory.take(WHOLE));
});

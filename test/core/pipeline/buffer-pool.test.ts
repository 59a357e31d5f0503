import { expect, test } from "bun:test";
import { BufferPool } from "../../../src/core/pipeline/buffer-pool.ts";

const MIB = 1024 * 1024;

test("a returned buffer is handed out again when it fits and is not wastefully large", () => {
  const pool = new BufferPool(8 * MIB);
  const a = pool.take(MIB);
  expect(a.byteLength).toBe(MIB);
  pool.give(a);
  expect(pool.take(MIB - 5)).toBe(a);
  pool.give(a);
  expect(pool.take(1000)).not.toBe(a);
  expect(pool.freeBytes).toBe(MIB);
});

test("of several that fit the smallest is taken", () => {
  const pool = new BufferPool(8 * MIB);
  const [big, small] = [new ArrayBuffer(2 * MIB), new ArrayBuffer(MIB)];
  pool.give(big);
  pool.give(small);
  expect(pool.take(MIB)).toBe(small);
});

test("idle bytes stay below the bound, oldest out first, and transferred buffers are not kept", () => {
  const pool = new BufferPool(2 * MIB);
  const first = new ArrayBuffer(MIB);
  for (const b of [first, new ArrayBuffer(MIB), new ArrayBuffer(MIB)]) pool.give(b);
  expect(pool.freeBytes).toBe(2 * MIB);
  expect(pool.take(MIB)).not.toBe(first);
  const gone = new ArrayBuffer(MIB);
  structuredClone(gone, { transfer: [gone] });
  const before = pool.freeBytes;
  pool.give(gone);
  expect(pool.freeBytes).toBe(before);
});

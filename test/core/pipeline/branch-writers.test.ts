/**
 * Goal: a writer is used again while rows keep their shape and it is in order, and never otherwise; a row without offsets
 * has no position. Method: writers that only count, and one whose abort fails.
 */
import { expect, test } from "bun:test";
import { BranchWriters, offsetOf } from "../../../src/core/pipeline/branch-writers.ts";
import type { BranchBatch, BranchWriter } from "../../../src/core/ports/branch-parts.ts";

function writers() {
  const made: { aborted: number; fails: boolean }[] = [];
  const all = new BranchWriters<BranchBatch>(() => {
    const own = { aborted: 0, fails: false };
    made.push(own);
    return {
      open: () => {},
      write: () => 0,
      flush: () => Promise.resolve(),
      held: 0,
      largest: 0,
      seal: async () => ({ targets: [], covered: false, rows: 0, bytes: 0 }),
      abort: async () => {
        own.aborted++;
        if (own.fails) throw new Error("the staged file is gone");
      },
    } satisfies BranchWriter<BranchBatch>;
  });
  return { all, made };
}

test("one for each set at a time; what was given back is used again", () => {
  const { all, made } = writers();
  const [a, b] = [all.take(), all.take()];
  expect([made.length, a.writer === b.writer]).toEqual([2, false]);
  all.give(a);
  expect(all.take().writer).toBe(a.writer);
  expect(made.length).toBe(2);
});

test("rows of another shape have other writers, also where one comes back late", () => {
  const { all, made } = writers();
  const [free, late] = [all.take(), all.take()];
  all.give(free);
  all.reshape();
  all.give(late);
  const next = all.take();
  expect([next.writer === free.writer, next.writer === late.writer, made.length]).toEqual([false, false, 3]);
});

test("an aborted one is used again, unless it was busy or could not drop what it held", async () => {
  const { all, made } = writers();
  const [clean, busy, failing] = [all.take(), all.take(), all.take()];
  made[2]!.fails = true;
  await all.abort(busy, true);
  await all.abort(failing, false);
  await all.abort(clean, false);
  expect(made.map((m) => m.aborted)).toEqual([1, 1, 1]);
  expect(all.take().writer).toBe(clean.writer);
  expect(all.take().writer).not.toBe(failing.writer);
  expect(made.length).toBe(4);
});

test("the position of a row, above 2^32 too; none where rows are taken whole", () => {
  const span = { stream: "s", from: 0n, next: 9n };
  const offsets = Int32Array.of(5, 0, -1, 0, 3, 2);
  const at = (row: number) => offsetOf({ span, rows: 3, ingestTs: 0, offsets }, row);
  expect([at(0), at(1), at(2)]).toEqual([5n, 2n ** 32n - 1n, 2n ** 33n + 3n]);
  expect(() => offsetOf({ span, rows: 3, ingestTs: 0 }, 0)).toThrow("taken in part");
});

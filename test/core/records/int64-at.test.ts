/** Goal: 64-bit integers in halves are read whole, of either sign. Method: values at the edges. */
import { expect, test } from "bun:test";
import { int64At, recordPlace, withoutRows } from "../../../src/core/records/int64-at.ts";

test("halves make the integer, and a place says the offset", () => {
  const values = [0n, -1n, 2n ** 63n - 1n, -(2n ** 63n), 4_294_967_295n, 4_294_967_296n];
  const halves = new Int32Array(new BigInt64Array(values).buffer);
  expect(values.map((_, row) => int64At(halves, row))).toEqual(values);
  const stream = { transport: "kafka", cluster: "c", topic: "orders", incarnation: 0, partition: 3 } as const;
  expect(recordPlace({ stream, offsets: halves }, 5)).toBe("orders/3@4294967296");
});

test("rows are left out, the others stay in their order", () => {
  const halves = new Int32Array(new BigInt64Array([5n, -1n, 1n << 40n, 7n]).buffer);
  const kept = withoutRows(halves, 4, [0, 2]);
  expect([int64At(kept, 0), int64At(kept, 1), kept.length]).toEqual([-1n, 7n, 4]);
  expect(withoutRows(halves, 4, [])).toEqual(halves);
});

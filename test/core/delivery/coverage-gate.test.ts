/** Goal: a set becomes visible behind what it comes after, and waits for nothing that never comes. Method: by cases. */
import { expect, test } from "bun:test";
import { CoverageGate } from "../../../src/core/delivery/coverage-gate.ts";

const span = (from: number, next: number, stream = "s") => ({
  stream,
  from: BigInt(from),
  next: BigInt(next),
});

test("opens once all spans are covered in all sinks before it", () => {
  const gate = new CoverageGate();
  expect(gate.answer([-1, 0], [span(0, 10)])).toBe("shut");
  gate.cover(-1, [span(0, 4)]);
  gate.cover(-1, [span(4, 10)]);
  expect(gate.answer([-1], [span(0, 10)])).toBe("open");
  expect(gate.answer([-1, 0], [span(0, 10)])).toBe("shut");
  gate.cover(0, [span(0, 20)]);
  expect(gate.answer([-1, 0], [span(0, 10), span(0, 1, "other")])).toBe("shut");
  expect(gate.answer([-1, 0], [span(0, 10)])).toBe("open");
  expect(gate.answer([], [span(0, 99)])).toBe("open");
});

test("says so when a sink before it let a part go by, unless that is covered all the same", () => {
  const gate = new CoverageGate();
  gate.miss(0, [span(5, 6)]);
  expect(gate.answer([0], [span(0, 5)])).toBe("shut");
  expect(gate.answer([0], [span(0, 10)])).toBe("never");
  gate.cover(0, [span(0, 10)]);
  expect(gate.answer([0], [span(0, 10)])).toBe("open");
});

test("a stream that begins anew is known by what its store says alone", () => {
  const gate = new CoverageGate();
  gate.cover(0, [span(0, 10)]);
  gate.miss(0, [span(10, 20)]);
  gate.begin(0, "s", [{ from: 0n, next: 5n }]);
  expect(gate.answer([0], [span(0, 10)])).toBe("shut");
  expect(gate.answer([0], [span(0, 5)])).toBe("open");
  expect(gate.answer([0], [span(10, 20)])).toBe("shut");
  gate.forget(0, "s");
  expect(gate.answer([0], [span(0, 5)])).toBe("shut");
});

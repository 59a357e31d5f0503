/** Goal: a process that shares a backlog asks for windows that are free, and as large as they may be. Method: sets of uneven sizes. */
import { expect, test } from "bun:test";
import type { IndexEntry } from "../../../src/core/coverage/state.ts";
import type { Span } from "../../../src/core/records/stream.ts";
import { planAround } from "../../../src/core/recovery/window-plan.ts";

const S = "kafka/c/orders/0/0";
const span = (from: number, next: number): Span => ({ stream: S, from: BigInt(from), next: BigInt(next) });
/** Of ten positions each. */
const INDEX = [100, 140, 180, 100, 140, 180].map((bytes, i): IndexEntry => {
  return { id: `s${i}`, targets: [], spans: [span(10 * i, 10 * i + 10)], rows: 10, bytes };
});

function planned(lacks: readonly Span[], held: readonly Span[]) {
  const wanted = new Map([[S, lacks.map(({ from, next }) => ({ from, next }))]]);
  const groups = [...planAround(INDEX, wanted, held, 400)];
  return groups.map((g) => g.map(({ from, next }) => [Number(from), Number(next)]));
}

test("where others hold nothing each group is planned once", () => {
  expect(planned([span(0, 60)], [])).toEqual([[[0, 20]], [[20, 40]], [[40, 60]]]);
});

test("first come groups of what is nobody's, none of them cut short by what another has; then all, as it may be free by now", () => {
  const all = [[[0, 40]], [[40, 60]]];
  expect(planned([span(0, 20), span(30, 60)], [span(0, 20)])).toEqual([[[30, 50]], [[50, 60]], ...all]);
});

test("where others hold all, it is asked for all the same", () => {
  expect(planned([span(0, 20)], [span(0, 60)])).toEqual([[[0, 20]]]);
});

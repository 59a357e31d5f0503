/**
 * Goal: an index that is made from files names each whole set once and covers what is there and nothing else. Method: states and
 * files by hand; the expected index follows from what each file says of itself.
 */
import { expect, test } from "bun:test";
import { type Reindexed, reindex, reindexed, type SetFile } from "../../../src/core/coverage/reindex.ts";
import {
  type CoverageState,
  EMPTY_STATE,
  type IndexEntry,
  NEW_STREAM,
} from "../../../src/core/coverage/state.ts";
import type { Intent } from "../../../src/core/ports/coverage.ts";

const S = "kafka/c/t/0/0";
const span = (from: number, next: number, stream = S) => ({
  stream,
  from: BigInt(from),
  next: BigInt(next),
});

/** One file of a set, which has so many. */
function file(set: string, n: number, files: number, ...spans: ReturnType<typeof span>[]): SetFile {
  return { key: `${set}-${n}.parquet`, bytes: 100 + n, rows: 5, set, files, spans };
}

function entry(id: string, ...spans: ReturnType<typeof span>[]): IndexEntry {
  return { id, targets: [{ key: `${id}-0.parquet`, bytes: 100, rows: 5 }], spans, rows: 5, bytes: 100 };
}

const stateOf = (covered: [number, number][], intents: string[] = []): CoverageState => ({
  ...EMPTY_STATE,
  streams: new Map([
    [
      S,
      {
        ...NEW_STREAM,
        generation: 3,
        covered: covered.map(([a, b]) => ({ from: BigInt(a), next: BigInt(b) })),
      },
    ],
  ]),
  intents: new Map(intents.map((id) => [id, { id } as Intent])),
});

const shape = (r: Reindexed) => ({
  entries: r.entries.map((e) => e.id),
  added: r.added.map((e) => e.id),
  covered: r.covered.map((s) => `${s.from}-${s.next}`),
  torn: r.torn,
  doubled: r.doubled,
  open: r.open,
  gone: r.gone.map((e) => e.id),
});
const NOTHING = { entries: [], added: [], covered: [], torn: [], doubled: [], open: [], gone: [] };

test("a state that is lost: what is there whole is the index, and is covered", () => {
  const spans = [span(0, 10), span(0, 4, "kafka/c/t/0/1")];
  const found = reindex(
    EMPTY_STATE,
    [],
    [file("a", 1, 2, ...spans), file("a", 0, 2, ...spans), file("b", 0, 1, span(10, 12))],
  );
  expect(shape(found)).toEqual({
    ...NOTHING,
    ...{ entries: ["a", "b"], added: ["a", "b"], covered: ["0-10", "0-4", "10-12"] },
  });
  expect(found.entries[0]).toEqual({
    id: "a",
    targets: [
      { key: "a-0.parquet", bytes: 100, rows: 5 },
      { key: "a-1.parquet", bytes: 101, rows: 5 },
    ],
    spans,
    rows: 10,
    bytes: 201,
  });
  const { state } = reindexed(found.covered, [])(EMPTY_STATE);
  expect(state.streams.get(S)?.covered).toEqual([{ from: 0n, next: 12n }]);
});

test("an index that lost entries gets them back, and what is covered stays as it is", () => {
  const state = stateOf([[0, 30]]);
  const found = reindex(
    state,
    [entry("b", span(10, 20))],
    [file("a", 0, 1, span(0, 10)), file("b", 0, 1, span(10, 20)), file("c", 0, 1, span(20, 30))],
  );
  expect(shape(found)).toEqual({ ...NOTHING, entries: ["a", "b", "c"], added: ["a", "c"] });
  const segment = { name: "s", entries: 3, files: 3, rows: 15, bytes: 300, level: 2 };
  const next = reindexed(found.covered, [segment])({ ...state, index: [entry("b", span(10, 20))] }).state;
  expect([next.index, next.segments]).toEqual([[], [segment]]);
  expect(next.streams.get(S)).toEqual(state.streams.get(S)!);
});

test("a set without one of its files is covered by nobody", () => {
  const found = reindex(EMPTY_STATE, [], [file("a", 0, 3, span(0, 10)), file("a", 2, 3, span(0, 10))]);
  expect(shape(found)).toEqual({ ...NOTHING, torn: [{ set: "a", found: 2, files: 3 }] });
});

test("records that are there twice are found through one of the sets", () => {
  const found = reindex(EMPTY_STATE, [], [file("a", 0, 1, span(0, 10)), file("b", 0, 1, span(9, 12))]);
  expect(shape(found)).toEqual({
    ...NOTHING,
    ...{ entries: ["a"], added: ["a"], covered: ["0-10"], doubled: ["b"] },
  });
});

test("a set that is being published is left to whoever claims its streams", () => {
  const found = reindex(stateOf([[0, 10]], ["b"]), [], [file("b", 0, 1, span(10, 20))]);
  expect(shape(found)).toEqual({ ...NOTHING, open: ["b"] });
});

test("sets whose files are gone stay known, unless their records lie in another set", () => {
  const index = [entry("a", span(0, 10)), entry("b", span(10, 20)), entry("c", span(20, 30))];
  const found = reindex(stateOf([[0, 30]]), index, [file("ab", 0, 1, span(0, 20))]);
  expect(shape(found)).toEqual({ ...NOTHING, entries: ["c", "ab"], added: ["ab"], gone: ["c"] });
});

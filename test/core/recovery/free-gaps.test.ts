/** Goal: what recovery may fill now is told by owners, heads and windows. Method: coverages written by hand, ranges derived from them. */
import { expect, test } from "bun:test";
import { normalRanges } from "../../../src/core/coverage/ranges.ts";
import { type CoverageState, EMPTY_STATE, NEW_STREAM } from "../../../src/core/coverage/state.ts";
import { windowName } from "../../../src/core/coverage/windows.ts";
import { freeGaps } from "../../../src/core/recovery/free-gaps.ts";

const STREAM = "kafka/c/orders/0/0";
const HOST = { hostname: "h", pid: 1, bootId: "b", pidNamespace: "n", startTime: "1" };
const LACKS = new Map([[STREAM, normalRanges([range(10, 40), range(60, 90)])]]);

function range(from: number, next: number) {
  return { from: BigInt(from), next: BigInt(next) };
}

/** `windows`: [holder, from, next]; without an end it is a head. */
function sink(
  owners: readonly string[],
  owner: string | null,
  windows: readonly (readonly [string, number, number | null])[],
): CoverageState {
  const leases = windows.map(([holder, from, next]) => {
    const end = next === null ? null : BigInt(next);
    const name = windowName({ holder, stream: STREAM, from: BigInt(from), next: end });
    return [name, { lease: 1, owner: holder }] as const;
  });
  return {
    ...EMPTY_STATE,
    owners: owners.map((instance) => ({ instance, host: HOST, since: 0, beat: 0 })),
    streams: new Map([[STREAM, { ...NEW_STREAM, owner }]]),
    leases: new Map(leases),
  };
}

function seen(state: CoverageState, gone: readonly string[] = []) {
  const { free, behind } = freeGaps(LACKS, state, new Set(gone));
  const texts = (of: typeof free) => (of.get(STREAM) ?? []).map((r) => `${r.from}-${r.next}`).join(" ");
  return [texts(free), texts(behind)];
}

const ALL = "10-40 60-90";

test("of a stream that nobody reads all is free", () => {
  expect(seen(sink([], null, []))).toEqual([ALL, ALL]);
  expect(seen(EMPTY_STATE)).toEqual([ALL, ALL]);
  // Its owner has left, and its head with it.
  expect(seen(sink([], "live", [["live", 20, null]]))).toEqual([ALL, ALL]);
});

test("of one that is read only what is below the head; nothing without one", () => {
  expect(seen(sink(["live"], "live", []))).toEqual(["", ""]);
  expect(seen(sink(["live"], "live", [["live", 0, null]]))).toEqual(["", ""]);
  expect(seen(sink(["live"], "live", [["live", 70, null]]))).toEqual(["10-40 60-70", "10-40 60-70"]);
  expect(seen(sink(["live"], "live", [["live", 70, null]]), ["live"])).toEqual([ALL, ALL]);
});

test("what others of its kind are at is behind and not free, as long as they are there", () => {
  const state = sink(["recovery-a"], null, [["recovery-a", 20, 70]]);
  expect(seen(state)).toEqual(["10-20 70-90", ALL]);
  expect(seen(state, ["recovery-a"])).toEqual([ALL, ALL]);
  expect(seen(sink([], null, [["recovery-a", 20, 70]]))).toEqual([ALL, ALL]);
});

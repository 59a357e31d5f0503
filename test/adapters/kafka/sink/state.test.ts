/**
 * Goal: coverage of version 1 is read as it was written and written as it was read; what cannot be read says so.
 * Method: records written by hand (test/golden/state/kafka-sink-*.json), there and back.
 */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  changedEntries,
  decodeRanges,
  decodeState,
  encodeHead,
  encodeLanded,
  encodeState,
  headKey,
  rangeKey,
  united,
} from "../../../../src/adapters/kafka/sink/state.ts";
import { parseWindow } from "../../../../src/core/coverage/windows.ts";

const KEY = { pipeline: "p", sink: "raw" };
const S = "kafka/c1/orders/0/3";
function goldenOf(name: string): Record<"0" | "1", Record<string, string>> {
  return JSON.parse(readFileSync(join(import.meta.dir, "../../../golden/state", name), "utf8"));
}
const golden = goldenOf("kafka-sink-v1.json");
const states = new Map(Object.entries(golden["0"]));
const ranges = new Map(Object.entries(golden["1"]));

test("version 1 is read: owners with their beats, streams, topics, leases, topics that were written to", () => {
  const { coverage, writers, targets } = decodeState(KEY, states);
  expect(coverage.owners).toEqual([
    {
      instance: "i0",
      host: { hostname: "h", pid: 7, bootId: "b", pidNamespace: "n", startTime: "5" },
      since: 1_700_000_000_000,
      beat: 12,
    },
  ]);
  expect(coverage.streams.get(S)).toEqual({
    generation: 4,
    groupEpoch: 9,
    owner: "i0",
    origin: 70n,
    staleCommit: 9007199254740993n,
    covered: [],
    lost: [{ from: 0n, next: 5n, reason: "retention" }],
  });
  expect([...writers]).toEqual([[S, "twg.p.raw.1"]]);
  expect([...coverage.topics]).toEqual([["kafka/c1/orders", { topicId: "id-1", incarnation: 2 }]]);
  expect([...coverage.leases]).toEqual([["w", { lease: 3, owner: "i0" }]]);
  expect([...targets]).toEqual([["copy.orders", "id-2"]]);
});

test("what was read is written the same, beats and other sinks left alone", () => {
  const own = new Map([...states].filter(([k]) => k.startsWith("1/p/raw/") && !k.includes("/beat/")));
  const again = encodeState(KEY, decodeState(KEY, states));
  expect([...changedEntries(own, again)]).toEqual([]);
  const gone = encodeState(KEY, { ...decodeState(KEY, states), targets: new Map() });
  expect([...changedEntries(again, gone)]).toEqual([["1/p/raw/target/copy.orders", null]]);
});

test("ranges of all generations are one", () => {
  const parts = decodeRanges(KEY, ranges).get(S);
  expect([...(parts?.keys() ?? [])]).toEqual([3, 4]);
  const all = united(parts?.values() ?? []);
  expect(all).toEqual({
    ranges: [
      { from: 70n, next: 90n },
      { from: 9007199254740993n, next: 9007199254740995n },
    ],
    rows: 22,
    bytes: 440,
  });
  expect(encodeLanded(parts!.get(4)!)).toBe(ranges.get(rangeKey(KEY, S, 4))!);
});

describe("windows", () => {
  const windows = goldenOf("kafka-sink-v1-windows.json");
  const entries = new Map(Object.entries(windows["0"]));

  test("holders, windows and heads are read; a head of an earlier claim, and of somebody else, is none", () => {
    const { coverage, holders, heads } = decodeState(KEY, entries);
    expect([...holders]).toEqual([
      ["recovery-a", "twg.p.raw.recovery.0"],
      ["recovery-gone", "twg.p.raw.recovery.1"],
    ]);
    expect([...coverage.leases.keys()].flatMap((name) => parseWindow(name) ?? [])).toEqual([
      { holder: "recovery-a", stream: S, from: 0n, next: 60n },
    ]);
    expect(heads).toEqual([{ holder: "live", stream: S, from: 9007199254740993n, next: null }]);
    expect(encodeHead(4, 9007199254740993n)).toBe(entries.get(headKey(KEY, "live", S))!);
  });

  test("what was read is written the same; what owners tell by themselves, and kinds of a later version, are left alone", () => {
    const kept = /\/(beat|head|something of a later version)\//;
    const own = new Map([...entries].filter(([k]) => !kept.test(k)));
    expect([...changedEntries(own, encodeState(KEY, decodeState(KEY, entries)))]).toEqual([]);
  });

  test("what landed under leases is read by a reader that knows generations only", () => {
    const parts = decodeRanges(KEY, new Map(Object.entries(windows["1"]))).get(S)!;
    // Of each key such a reader makes a number, and of the number the key, when it unites them.
    expect([...parts.keys()].map((n) => rangeKey(KEY, S, n)).sort()).toEqual(
      Object.keys(windows["1"]).sort(),
    );
    expect(united(parts.values())).toEqual({
      ranges: [
        { from: 0n, next: 50n },
        { from: 9007199254740993n, next: 9007199254740995n },
      ],
      rows: 52,
      bytes: 520,
    });
  });
});

test("a record that is damaged, or of a later version, ends it with its name", () => {
  const damaged = new Map([[`1/p/raw/stream/${S}`, "{"]]);
  expect(() => decodeState(KEY, damaged)).toThrow(`1/p/raw/stream/${S}`);
  expect(() => decodeState(KEY, new Map([["2/p/raw/stream/x", "{}"]]))).toThrow("format 2");
});

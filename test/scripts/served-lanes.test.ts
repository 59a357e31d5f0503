/**
 * Goal: every served test runs in exactly one of the processes, which have about as much to do each and share no port.
 * Method: the rule itself, and the table of the repository beside its files.
 */
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { LONG_RUNS } from "../../scripts/long-runs.ts";
import { lanesFor, portsOf, split } from "../../scripts/served-lanes.ts";
import servedSeconds from "../../scripts/served-seconds.json";

const SECONDS = { a: 100, b: 60, c: 50, d: 40, e: 30, f: 20 };
const NAMES = [...Object.keys(SECONDS), "not in the table"];
const load = (lane: readonly string[]) =>
  lane.reduce((sum, n) => sum + ((SECONDS as Record<string, number>)[n] ?? 10), 0);

test("each name is in one list, also one that the table does not know", () => {
  for (const lanes of [1, 2, 3]) {
    const lists = split(NAMES, SECONDS, lanes);
    expect(lists.length).toBe(lanes);
    expect(lists.flat().sort()).toEqual([...NAMES].sort());
  }
});

test("the same whatever the order of the names", () => {
  expect(split([...NAMES].reverse(), SECONDS, 2)).toEqual(split(NAMES, SECONDS, 2));
});

test("the lists take about as long; the later one, which waits for the servers of the first, has less", () => {
  // 310 s in all, and the second begins 20 s later: 165 s and 145 s would be even.
  const [first, second] = split(NAMES, SECONDS, 2).map(load) as [number, number];
  expect(first + second).toBe(310);
  expect(Math.abs(first - (second + 20))).toBeLessThanOrEqual(10);
});

test("crowds are in the first process, all of them, and the others even it out", () => {
  const lists = split(NAMES, SECONDS, 2, new Set(["a", "d", "f"]));
  // 160 s of crowds; 20 s + 140 s of others, and the last 10 s to the first of two that are even.
  expect(lists).toEqual([
    ["a", "d", "f", "not in the table"],
    ["b", "c", "e"],
  ]);
  const repository = split([...Object.keys(servedSeconds), "test/e2e/processes.test.ts"], servedSeconds, 2);
  expect(repository[0]).toContain("test/e2e/processes.test.ts");
});

test("two processes where there are cores, and memory for two sets of servers; else one", () => {
  expect([23, 7.6, 6.9, 3].map((gib) => lanesFor(gib * 2 ** 30, 2))).toEqual([2, 2, 1, 1]);
  expect([1, 2, 64].map((cores) => lanesFor(64 * 2 ** 30, cores))).toEqual([1, 2, 2]);
});

test("ports are parted without overlap, and none is outside", () => {
  expect([0, 1].map((lane) => portsOf("20000-31999", lane, 2))).toEqual(["20000-25999", "26000-31999"]);
  expect([0, 1].map((lane) => portsOf("100-106", lane, 2))).toEqual(["100-102", "103-105"]);
  expect(portsOf("20000-31999", 0, 1)).toBe("20000-31999");
});

test("the table names nothing that is gone", () => {
  const runs = LONG_RUNS.map((r) => r.name);
  expect(new Set(runs).size).toBe(runs.length);
  const gone = Object.keys(servedSeconds).filter(
    (n) => !runs.includes(n) && !existsSync(resolve(import.meta.dir, "../..", n)),
  );
  expect(gone).toEqual([]);
});

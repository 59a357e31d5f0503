/**
 * Which served test file, and which long run, goes to which process. The tests mostly wait, so several processes side by
 * side take less time than one; each has servers of its own, and nothing of one is seen by another.
 *
 * The rule is fixed: crowds to the first process, and of the others the longest first, each to the process that has least to
 * do. scripts/served-seconds.json says how long each took; one that is not in it counts as UNKNOWN_S and runs all the same.
 */
import { availableParallelism, totalmem } from "node:os";

/** For what the table does not know. */
const UNKNOWN_S = 10;
/** Servers start one set after the other, since their downloads are shared: a later process begins this much later. */
const START_S = 20;
/** Of one set of servers and of the tests beside it, with room to spare. */
const LANE_BYTES = 3.5 * 2 ** 30;
const MOST_LANES = 2;

/**
 * Several processes and three brokers under steady load, with sessions of seconds: two of these at once would keep each other
 * from their heartbeats on a machine with two cores, so none runs beside another.
 */
const CROWDS: ReadonlySet<string> = new Set([
  "test/e2e/brokers-die.test.ts",
  "test/e2e/group-topics.test.ts",
  "test/e2e/group-transactions.test.ts",
  "test/e2e/groups.test.ts",
  "test/e2e/mixed-groups.test.ts",
  "test/e2e/processes.test.ts",
  "torture-groups",
]);

/** Names by process. `seconds`: how long each takes. */
export function split(
  names: readonly string[],
  seconds: Readonly<Record<string, number>>,
  lanes: number,
  crowds: ReadonlySet<string> = CROWDS,
): string[][] {
  const costs = new Map(names.map((n) => [n, seconds[n] ?? UNKNOWN_S]));
  const cost = (name: string) => costs.get(name) ?? UNKNOWN_S;
  const loads = Array.from({ length: lanes }, (_, i) => i * START_S);
  const lists: string[][] = loads.map(() => []);
  const give = (lane: number, name: string) => {
    loads[lane] = (loads[lane] ?? 0) + cost(name);
    lists[lane]?.push(name);
  };
  for (const name of names.filter((n) => crowds.has(n))) give(0, name);
  const others = names.filter((n) => !crowds.has(n));
  for (const name of others.sort((a, b) => cost(b) - cost(a) || (a < b ? -1 : 1)))
    give(loads.indexOf(Math.min(...loads)), name);
  return lists.map((list) => list.sort());
}

/** As many as this machine has cores and memory for. */
export function lanesFor(memoryBytes: number = totalmem(), cores: number = availableParallelism()): number {
  return Math.max(1, Math.min(MOST_LANES, cores, Math.floor(memoryBytes / LANE_BYTES)));
}

/** A part of the ports that servers may take ("first-last") for each process: none finds free what another is about to bind. */
export function portsOf(range: string, lane: number, lanes: number): string {
  const [first = 0, last = 0] = range.split("-").map(Number);
  const size = Math.floor((last - first + 1) / lanes);
  return `${first + lane * size}-${first + (lane + 1) * size - 1}`;
}

/**
 * Reading from the closest replica (KIP-392), in simulated time: a leader sends us to a follower, and whatever is wrong
 * with the follower brings us back to the leader without a record lost, doubled or given up.
 */
import { afterEach, expect, test } from "bun:test";
import { ERROR } from "../../../src/adapters/kafka/wire/errors.ts";
import { type BenchOptions, SourceBench } from "./source-bench.ts";

let bench: SourceBench | null = null;

afterEach(async () => {
  const b = bench;
  bench = null;
  if (b === null) return;
  await b.close();
  expect(b.broken).toEqual([]);
  expect(b.losses).toEqual([]);
  expect(b.outstanding.size).toBe(0);
});

/** orders/0 is led by broker 1, and we are in the rack of broker 2. */
async function reading(options: BenchOptions = {}): Promise<SourceBench> {
  const b = new SourceBench({
    ...options,
    cluster: { brokers: 3, racks: true, ...options.cluster },
    source: { metadata_refresh_ms: 1000, request_timeout_ms: 2000, rack: "r2", ...options.source },
  });
  bench = b;
  b.cluster.createTopic("orders", { partitions: 1 });
  b.fill("orders", 0, 3);
  b.start();
  await b.until(() => b.caughtUp());
  return b;
}

/** Nodes that were asked for records since the last call, each once. */
function askedNodes(b: SourceBench): number[] {
  const nodes = b.cluster.trace.filter((t) => t.request.api === "Fetch").map((t) => t.node);
  b.cluster.trace.length = 0;
  return [...new Set(nodes)];
}

async function more(b: SourceBench): Promise<number[]> {
  askedNodes(b);
  b.fill("orders", 0, 3);
  await b.until(() => b.caughtUp());
  b.fill("orders", 0, 3);
  await b.until(() => b.caughtUp());
  return askedNodes(b);
}

test("the leader names the replica in our rack, which then serves alone", async () => {
  const b = await reading();
  expect(askedNodes(b)).toEqual([1, 2]);
  expect(await more(b)).toEqual([2]);
  expect(b.outcome).toBe("running");
});

test("without a rack, in the leader's rack and in a rack of nobody the leader serves", async () => {
  for (const rack of [undefined, "r1", "elsewhere"]) {
    const b = await reading({ source: rack === undefined ? { rack: undefined } : { rack } });
    expect(askedNodes(b)).toEqual([1]);
    await b.close();
  }
});

test.each([
  ["out of range", ERROR.OFFSET_OUT_OF_RANGE],
  ["not a replica any more", ERROR.NOT_LEADER_OR_FOLLOWER],
  ["does not know the epoch", ERROR.UNKNOWN_LEADER_EPOCH],
  ["its disk", 56],
])("a follower that answers an error is left for the leader: %s", async (_what, code) => {
  const b = await reading();
  askedNodes(b);
  b.cluster.failPartition("orders", 0, code, { api: "Fetch" });
  b.fill("orders", 0, 1);
  await b.until(() => b.caughtUp());
  expect(askedNodes(b)).toContain(1);
  expect(await more(b)).toEqual([1]);
  // Then the leader is told our rack again, and names the follower.
  await b.pass(40_000);
  expect(await more(b)).toEqual([2]);
  expect(b.outcome).toBe("running");
});

test("a follower that is behind is no end of the log, and no loss", async () => {
  const b = await reading();
  b.cluster.partition("orders", 0).followersEnd = 6n;
  b.fill("orders", 0, 2);
  await b.until(() => b.caughtUp());
  // Nor where the leader does not know that the follower is behind, and names it all the same.
  b.cluster.partition("orders", 0).followersEnd = 6n;
  b.cluster.namesAnyReplica = true;
  await b.pass(40_000);
  b.fill("orders", 0, 2);
  await b.until(() => b.caughtUp());
  expect(b.stream("orders", 0).position).toBe(b.cluster.log("orders", 0).end);
  expect([b.outcome, b.losses.length]).toEqual(["running", 0]);
});

test("a follower that dies, and a leader that moves to it", async () => {
  const b = await reading();
  b.cluster.kill(2);
  b.fill("orders", 0, 2);
  await b.until(() => b.caughtUp());
  b.cluster.revive(2);
  b.cluster.moveLeader("orders", 0, 2);
  expect(await more(b)).toContain(2);
  b.cluster.moveLeader("orders", 0, 3);
  b.fill("orders", 0, 2);
  await b.until(() => b.caughtUp());
  await b.pass(40_000);
  expect(await more(b)).toEqual([2]);
  expect(b.outcome).toBe("running");
});

test("after five minutes the leader is asked again", async () => {
  const b = await reading();
  askedNodes(b);
  await b.pass(290_000);
  expect(askedNodes(b)).toEqual([2]);
  await b.pass(20_000);
  expect(askedNodes(b)).toEqual([2, 1]);
});

test("retention that overtakes us at the follower is judged by the leader's range", async () => {
  const b = await reading({ source: { on_out_of_range: "earliest" } });
  b.setRoom(0, 0);
  b.fill("orders", 0, 20);
  b.cluster.advanceLogStart("orders", 0, 30n);
  b.setRoom(0, 1 << 20);
  await b.until(() => b.losses.length > 0);
  expect(b.losses.splice(0)).toEqual([{ stream: 0, from: 9n, next: 30n, reason: "retention" }]);
  await b.until(() => b.caughtUp());
});

import { afterEach, describe, expect, test } from "bun:test";
import { ERROR } from "../../../src/adapters/kafka/wire/errors.ts";
import type { AckMark } from "../../../src/core/ports/source.ts";
import { buildBatch } from "../../brokers/kafka/batch-builder.ts";
import { type BenchOptions, SourceBench } from "./source-bench.ts";

let bench: SourceBench | null = null;

function open(options: BenchOptions = {}): SourceBench {
  bench = new SourceBench(options);
  return bench;
}

afterEach(async () => {
  const b = bench;
  bench = null;
  if (b === null) return;
  await b.close();
  expect(b.broken).toEqual([]);
  expect(b.outstanding.size).toBe(0);
});

const ended = (b: SourceBench) => b.until(() => b.outcome !== "running");

describe("where streams begin", () => {
  test("the host is told commit, start and end of each partition", async () => {
    const b = open({ source: { group: "g" } });
    b.cluster.createTopic("orders", { partitions: 2, start: 5n });
    b.fill("orders", 0, 3);
    b.cluster.commit("g", "orders", 0, { offset: 8n, leaderEpoch: 0, metadata: null });
    b.start();
    await b.until(() => b.caughtUp());
    const topicId = b.cluster.topic("orders").id;
    const common = { transport: "kafka", cluster: "test-cluster", topic: "orders", topicId };
    expect(b.begun).toEqual([
      [
        { ...common, transport: "kafka", partition: 0, committed: 8n, earliest: 5n, latest: 14n },
        { ...common, transport: "kafka", partition: 1, committed: null, earliest: 5n, latest: 5n },
      ],
    ]);
    expect(b.streams[0]!.frames[0]!.from).toBe(8n);
    // A position that is the commit carries its epoch, so that a log cut meanwhile is seen at once.
    expect(b.cluster.requests("Fetch")[0]!.body.topics[0]!.partitions[0]!.lastFetchedEpoch).toBe(0);
    expect(b.cluster.requests("OffsetFetch").every((r) => r.body.requireStable)).toBe(true);
  });

  test("without a group nobody is asked for commits, and none is made", async () => {
    const b = open();
    b.cluster.createTopic("orders");
    b.fill("orders", 0, 1);
    b.start();
    await b.until(() => b.caughtUp());
    // Nobody is to be told: all counts as told.
    expect(await b.source.acknowledge([{ stream: 0, next: 3n }])).toEqual([{ stream: 0, next: 3n }]);
    expect(b.cluster.requests("FindCoordinator").length + b.cluster.requests("OffsetCommit").length).toBe(0);
  });

  test("what is not read yet is not told to the group, and not said to be", async () => {
    const b = open({ source: { group: "g" } });
    b.cluster.createTopic("orders");
    b.fill("orders", 0, 1);
    const early = [{ stream: 0, next: 0n }];
    expect(await b.source.acknowledge(early)).toEqual([]);
    b.start();
    await b.until(() => b.caughtUp());
    const both = [
      { stream: 0, next: 1n },
      { stream: 7, next: 1n },
    ];
    const told: (readonly AckMark[])[] = [];
    void b.source.acknowledge(both).then((marks) => told.push(marks));
    await b.until(() => told.length > 0);
    expect(told[0]!.map((m) => [m.stream, m.next])).toEqual([[0, 1n]]);
  });

  test("a start by timestamp comes resolved; where no record is that young it is the end", async () => {
    const b = open({ source: { start: { timestamp: "1970-01-01T00:00:01Z" } } });
    b.cluster.createTopic("orders", { partitions: 2 });
    for (const t of [500n, 1000n, 1500n]) {
      b.cluster.append("orders", 0, buildBatch({ records: [{ value: "v", timestamp: t }] }));
    }
    b.cluster.append("orders", 1, buildBatch({ records: [{ value: "v", timestamp: 10n }] }));
    b.start();
    await b.until(() => b.caughtUp());
    expect(b.begun[0]!.map((f) => f.startAt)).toEqual([1n, 1n]);
  });

  test("commits of transactions that are still open are waited for", async () => {
    const b = open({ source: { group: "g" } });
    b.cluster.createTopic("orders");
    b.fill("orders", 0, 1);
    b.cluster.script.on({ api: "OffsetFetch", times: 3, action: { do: "error", code: 88 } });
    b.start();
    await b.until(() => b.caughtUp());
    expect(b.cluster.requests("OffsetFetch").length).toBe(4);
  });

  test("a coordinator that moved, or is not there yet, is looked for again", async () => {
    const b = open({ cluster: { brokers: 2 }, source: { group: "g" } });
    b.cluster.createTopic("orders");
    b.fill("orders", 0, 1);
    b.cluster.script.on({
      api: "FindCoordinator",
      action: { do: "error", code: ERROR.COORDINATOR_NOT_AVAILABLE },
    });
    b.cluster.script.on({ api: "OffsetFetch", action: { do: "error", code: ERROR.NOT_COORDINATOR } });
    b.start();
    await b.until(() => b.caughtUp());
  });

  test("a partition without a leader does not hold up the others: it is begun when it has one", async () => {
    const b = open({ cluster: { brokers: 2 }, source: { connect_timeout_ms: 2000 } });
    b.cluster.createTopic("orders", { partitions: 2 });
    b.fill("orders", 0, 1);
    b.fill("orders", 1, 1);
    b.cluster.kill(2, { elect: false });
    b.start();
    await b.until(() => b.streams.length === 1 && b.caughtUp());
    // Nothing is caught up before: the host is told, and so is whoever watches, by name.
    expect(b.awaiting).toBe(1);
    await b.until(() => b.troubles.some((f) => f.message.startsWith("orders/1 has no leader")));
    b.cluster.revive(2);
    await b.until(() => b.streams.length === 2 && b.caughtUp());
    expect(b.awaiting).toBe(0);
    await b.until(() => b.healthies > 0);
  });

  test("a partition that loses its leader while it is read is told by name, and read on once it has one", async () => {
    const b = open({ cluster: { brokers: 2 } });
    b.cluster.createTopic("orders", { partitions: 2 });
    b.start();
    await b.until(() => b.healthies === 1 && b.streams.length === 2);
    b.cluster.kill(2, { elect: false });
    await b.until(() => b.troubles.some((f) => f.message.startsWith("orders/1 has no leader")));
    b.fill("orders", 1, 1);
    b.cluster.revive(2);
    await b.until(() => b.caughtUp() && b.healthies === 2);
  });
});

describe("what ends the job at the start", () => {
  test("no broker within the connect time-out: environment, with the last reason", async () => {
    const b = open({ source: { connect_timeout_ms: 3000 } });
    b.cluster.createTopic("orders");
    b.cluster.kill(1, { elect: false });
    b.start();
    await ended(b);
    expect(b.failure).toMatchObject({ code: "kafka.unreachable", kind: "environment" });
    expect(b.failure?.message).toContain("nothing accepts connections");
    expect(b.endedAt).toBeGreaterThanOrEqual(3000);
    expect(b.endedAt).toBeLessThan(4000);
  });

  test("a broker that accepts and stays silent is unreachable too", async () => {
    const b = open({ source: { connect_timeout_ms: 3000 } });
    b.cluster.script.on({ api: "ApiVersions", times: 100, action: { do: "stall" } });
    b.start();
    await ended(b);
    expect(b.outcome).toBe("kafka.unreachable");
    expect(b.endedAt).toBeLessThan(4000);
    // Told before that, and in words that say what was seen.
    expect(b.troubles[0]?.message).toContain("takes connections, but said nothing for 1500 ms");
    expect(b.failure?.message).toContain("takes connections, but said nothing");
    expect(b.failure?.hint).toContain("Is it a Kafka listener?");
  });

  test("an outage shorter than the connect time-out heals by itself", async () => {
    const b = open();
    b.cluster.createTopic("orders");
    b.cluster.kill(1, { elect: false });
    b.start();
    await b.pass(5000);
    expect(b.troubles[0]?.code).toBe("net.refused");
    b.cluster.revive(1);
    b.fill("orders", 0, 1);
    await b.until(() => b.caughtUp());
    expect(b.healthies).toBe(1);
  });

  test("a wrong password ends it at once", async () => {
    const b = open({
      cluster: { sasl: { mechanisms: ["SCRAM-SHA-256"], users: { twg: "right" } } },
      source: { sasl: { mechanism: "SCRAM-SHA-256", username: "twg", password: "wrong" } },
    });
    b.start();
    await ended(b);
    expect(b.failure).toMatchObject({ code: "kafka.auth_failed", retry: false });
    expect(b.failure?.message).not.toContain("wrong");
    expect(b.endedAt).toBeLessThan(1000);
  });

  test("an unknown topic ends it after the wait, one that appears in time does not", async () => {
    const b = open({ source: { topic_wait_ms: 2000 } });
    b.start();
    await ended(b);
    expect(b.failure).toMatchObject({ code: "kafka.unknown_topic", at: "source.topics: orders" });
    expect(b.endedAt).toBeLessThan(3000);
    await b.close();
    const c = open({ source: { topic_wait_ms: 2000 } });
    c.start();
    await c.pass(1000);
    c.cluster.createTopic("orders");
    c.fill("orders", 0, 1);
    await c.until(() => c.caughtUp());
  });

  test("a partition that the topic lacks", async () => {
    const b = open({ source: { topic_wait_ms: 0, partitions: { orders: [0, 7] } } });
    b.cluster.createTopic("orders", { partitions: 2 });
    b.start();
    await ended(b);
    expect(b.failure).toMatchObject({ code: "kafka.unknown_partition", at: "source.partitions.orders" });
  });

  test("no permission on the topic or the group is told at once", async () => {
    const b = open();
    b.cluster.createTopic("orders").error = ERROR.TOPIC_AUTHORIZATION_FAILED;
    b.start();
    await ended(b);
    expect([b.outcome, b.endedAt < 1000]).toEqual(["kafka.topic_denied", true]);
    await b.close();
    const c = open({ source: { group: "g" } });
    c.cluster.createTopic("orders");
    c.cluster.script.on({
      api: "FindCoordinator",
      action: { do: "error", code: ERROR.GROUP_AUTHORIZATION_FAILED },
    });
    c.start();
    await ended(c);
    expect([c.outcome, c.endedAt < 1000]).toEqual(["kafka.group_denied", true]);
  });

  test("what the host refuses to begin", async () => {
    const b = open();
    b.cluster.createTopic("orders");
    b.onBegin = async () => {
      throw new Error("no");
    };
    b.start();
    await ended(b);
    expect(b.outcome).toBe("internal.bug");
  });
});

describe("login", () => {
  for (const mechanism of ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] as const) {
    // KIP-368: brokers cut a connection that asks for anything after its login has ended.
    test(`${mechanism}, renewed before its lifetime ends`, async () => {
      const b = open({
        cluster: { sasl: { mechanisms: [mechanism], users: { twg: "a,b=c" }, lifetimeMs: 2000 } },
        source: { sasl: { mechanism, username: "twg", password: "a,b=c" } },
      });
      b.cluster.createTopic("orders");
      b.start();
      for (let i = 0; i < 10; i++) {
        b.fill("orders", 0, 1);
        await b.pass(1000);
      }
      await b.until(() => b.caughtUp());
      expect([b.troubles.length, b.cluster.complaints.length]).toEqual([0, 0]);
      expect(b.cluster.requests("SaslHandshake").length).toBeGreaterThan(4);
    });
  }
});

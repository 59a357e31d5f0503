/** Goal: what the cluster is asked beside its records is told as it is, and what cannot be told is missing. Method: the test cluster in simulated time. */
import { expect, test } from "bun:test";
import {
  committedOffsets,
  createTopics,
  describeCluster,
  listGroups,
  topicConfigs,
  watermarks,
} from "../../../src/adapters/kafka/admin.ts";
import { ERROR } from "../../../src/adapters/kafka/wire/errors.ts";
import type { Failure } from "../../../src/core/failure/failure.ts";
import { buildBatch } from "../../brokers/kafka/batch-builder.ts";
import { ProducerBench } from "./producer/producer-bench.ts";

const batch = (n: number) =>
  buildBatch({ records: Array.from({ length: n }, (_, i) => ({ value: `${i}` })) });

function filled(): ProducerBench {
  const b = new ProducerBench(1, { brokers: 3 });
  b.cluster.append("t", 0, batch(5));
  b.cluster.append("t", 1, batch(2));
  b.cluster.advanceLogStart("t", 0, 3n);
  return b;
}

test("topics, leaders, replicas and watermarks; a leader that is down leaves its partitions unknown", async () => {
  const b = filled();
  const client = b.client();
  b.cluster.kill(3, { elect: false });
  const seen = await b.run(describeCluster(client, null, b.signal));
  expect(seen.brokers.map((x) => x.id)).toEqual([1, 2]);
  expect(seen.topics.map((t) => [t.name, t.error, t.partitions.map((p) => p.leader)])).toEqual([
    ["t", null, [1, 2, -1]],
  ]);
  const marks = await b.run(watermarks(client, seen.topics, b.signal));
  expect(marks.map((m) => [m.partition, m.earliest, m.latest])).toEqual([
    [0, 3n, 5n],
    [1, 0n, 2n],
    [2, null, null],
  ]);
});

test("a topic that is not there has its error", async () => {
  const b = filled();
  const seen = await b.run(describeCluster(b.client(), ["nowhere", "t"], b.signal));
  expect(seen.topics.map((t) => [t.name, t.error])).toEqual([
    ["nowhere", "UNKNOWN_TOPIC_OR_PARTITION"],
    ["t", null],
  ]);
});

test.each(["4.x", "2.8"] as const)(
  "groups of all brokers and the positions of one, as %s tells them",
  async (profile) => {
    const b = new ProducerBench(2, { brokers: 3, profile });
    for (const [i, group] of ["a", "b", "c"].entries())
      b.cluster.commit(group, "t", i, { offset: BigInt(10 + i), leaderEpoch: 4, metadata: "m" });
    const client = b.client();
    const groups = await b.run(listGroups(client, b.signal));
    expect(groups.map((g) => [g.group, g.state])).toEqual([
      ["a", "Empty"],
      ["b", "Empty"],
      ["c", "Empty"],
    ]);
    expect(await b.run(committedOffsets(client, "b", b.signal))).toEqual([
      { topic: "t", partition: 1, offset: 11n, leaderEpoch: 4, metadata: "m" },
    ]);
  },
);

test("settings of topics, those that are asked for", async () => {
  const b = filled();
  b.cluster.topic("t").configs.set("retention.ms", "5").set("cleanup.policy", "compact");
  const client = b.client();
  await b.run(client.refresh([], b.signal));
  const found = await b.run(topicConfigs(client, ["t"], ["retention.ms"], b.signal));
  expect([...found.get("t")!]).toEqual([["retention.ms", "5"]]);
});

test("a topic is made once; what brokers refuse is said in their words", async () => {
  const b = filled();
  const client = b.client();
  const made = await b.run(
    createTopics(
      client,
      [
        { name: "new", partitions: 4, replicas: 1 },
        { name: "t", partitions: 1, replicas: 1 },
      ],
      b.signal,
    ),
  );
  expect([...made]).toEqual([
    ["new", true],
    ["t", false],
  ]);
  expect(b.cluster.topic("new").partitions.length).toBe(4);
  const refuse = (code: number) =>
    ({
      do: "respond",
      body: () => ({ topics: [{ name: "x", errorCode: code, errorMessage: "no more than 3", configs: [] }] }),
    }) as const;
  b.cluster.script.on({ api: "CreateTopics", action: refuse(ERROR.INVALID_REQUEST) });
  const failure = await b
    .run(createTopics(client, [{ name: "x", partitions: 9, replicas: 1 }], b.signal))
    .catch((f: Failure) => f);
  expect(failure).toMatchObject({
    code: "kafka.broker_error",
    message: expect.stringContaining("no more than 3"),
  });
  // Not the controller: the next broker is asked.
  b.cluster.script.on({ api: "CreateTopics", action: refuse(41) });
  expect([
    ...(await b.run(createTopics(client, [{ name: "x", partitions: 1, replicas: 1 }], b.signal))),
  ]).toEqual([["x", true]]);
});

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
import { describeGroup } from "../../../src/adapters/kafka/admin-groups.ts";
import { encodeAssignment } from "../../../src/adapters/kafka/wire/consumer-protocol.ts";
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

test.each(["4.x", "3.9", "1.0"] as const)(
  "a group's state and members, as %s tells them",
  async (profile) => {
    const b = new ProducerBench(3, { brokers: 2, profile });
    const client = b.client();
    expect(await b.run(describeGroup(client, "none", b.signal))).toBeNull();
    b.cluster.classicGroup("g").join(
      {
        groupId: "g",
        sessionTimeoutMs: 6_000,
        rebalanceTimeoutMs: 6_000,
        memberId: "",
        groupInstanceId: null,
        protocolType: "consumer",
        protocols: [{ name: "range", metadata: new Uint8Array(0) }],
        reason: null,
      },
      2,
      (r) => {
        const { memberId = "", generationId = 0 } = r;
        if (r.errorCode !== 0) return;
        const assignment = encodeAssignment([{ topic: "t", partitions: [0, 2] }]);
        b.cluster.classicGroup("g").sync(
          {
            groupId: "g",
            generationId,
            memberId,
            groupInstanceId: null,
            protocolType: "consumer",
            protocolName: "range",
            assignments: [{ memberId, assignment }],
          },
          () => {},
        );
      },
    );
    await b.time.runUntil(() => b.cluster.classicGroup("g").state === "stable", b.time.nowMs + 5_000);
    expect(await b.run(describeGroup(client, "g", b.signal))).toEqual({
      group: "g",
      type: "classic",
      state: "Stable",
      protocol: "range",
      members: [
        {
          memberId: "g-member-1",
          instanceId: null,
          clientId: "twg",
          host: "127.0.0.1",
          epoch: null,
          partitions: [{ topic: "t", partitions: [0, 2] }],
        },
      ],
    });
  },
);

test("a KIP-848 group is asked for as one; a coordinator that has moved, or is being made, is looked for anew", async () => {
  const b = new ProducerBench(4, { brokers: 2 });
  const client = b.client();
  b.cluster.consumerGroup("g").heartbeat({
    groupId: "g",
    memberId: "m",
    memberEpoch: 0,
    instanceId: null,
    rackId: null,
    rebalanceTimeoutMs: 5_000,
    subscribedTopicNames: ["t"],
    subscribedTopicRegex: null,
    serverAssignor: null,
    topicPartitions: [],
  });
  const seen = await b.run(describeGroup(client, "g", b.signal));
  expect(seen).toMatchObject({ type: "consumer", state: "Stable", protocol: "uniform" });
  expect(seen?.members.map((m) => [m.memberId, m.epoch, m.partitions])).toEqual([
    ["m", 1, [{ topic: "t", partitions: [0, 1, 2] }]],
  ]);
  const moved = () => ({ groups: [{ groupId: "g", errorCode: ERROR.NOT_COORDINATOR }] });
  b.cluster.script.on({ api: "ConsumerGroupDescribe", action: { do: "respond", body: moved } });
  b.cluster.script.on({
    api: "FindCoordinator",
    times: 2,
    action: {
      do: "respond",
      body: () => ({
        errorCode: ERROR.COORDINATOR_NOT_AVAILABLE,
        coordinators: [{ key: "g", errorCode: ERROR.COORDINATOR_NOT_AVAILABLE }],
      }),
    },
  });
  expect(await b.run(describeGroup(client, "g", b.signal))).toEqual(seen);
  const gone = () => ({ groups: [{ groupId: "g", errorCode: ERROR.GROUP_AUTHORIZATION_FAILED }] });
  b.cluster.script.on({ api: "ConsumerGroupDescribe", action: { do: "respond", body: gone } });
  expect(await b.run(describeGroup(client, "g", b.signal)).catch((f: Failure) => f.code)).toBe(
    "kafka.group_denied",
  );
});

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

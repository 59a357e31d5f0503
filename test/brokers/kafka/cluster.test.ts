/** Goal: the test cluster answers everything but Fetch as Kafka does. Method: raw requests in memory. */
import { describe, expect, test } from "bun:test";
import { ERROR } from "../../../src/adapters/kafka/wire/errors.ts";
import { APIS, encodeRequest } from "../../../src/adapters/kafka/wire/protocol.ts";
import { ZERO_UUID } from "../../../src/adapters/kafka/wire/uuid.ts";
import { buildBatch } from "./batch-builder.ts";
import { DirectClient, world } from "./direct-client.ts";

const batch = (records: number, timestamp = 0n) =>
  buildBatch({ records: Array.from({ length: records }, () => ({ value: "v", timestamp })) });

describe("ApiVersions", () => {
  test("lists the profile's ranges", () => {
    const { client } = world({ profile: "2.8" });
    const body = client.ask("ApiVersions", 3, { clientSoftwareName: "twg", clientSoftwareVersion: "0.1" });
    expect(body.apiKeys.find((a) => a.apiKey === APIS.Fetch.key)).toEqual({
      apiKey: 1,
      minVersion: 0,
      maxVersion: 12,
    });
    expect(body.errorCode).toBe(0);
  });

  test("a version that is too new gets error 35 in v0: with the own range, with nothing, or a reset", () => {
    const own = world({ profile: "3.9" }).client.ask("ApiVersions", 5, {});
    expect(own).toMatchObject({ errorCode: 35, apiKeys: [{ apiKey: 18, minVersion: 0, maxVersion: 4 }] });
    expect(world({ profile: "1.0" }).client.ask("ApiVersions", 4, {})).toMatchObject({
      errorCode: 35,
      apiKeys: [],
    });
    const { client } = world({ profile: "event-hubs" });
    client.send("ApiVersions", 4, {});
    expect([client.closed, client.answers.length]).toEqual(["in order", 0]);
  });

  test("a client name that is no name is refused since v3", () => {
    const { client } = world();
    const names = { clientSoftwareName: "t w g", clientSoftwareVersion: "1" };
    expect(client.ask("ApiVersions", 3, names).errorCode).toBe(ERROR.INVALID_REQUEST);
  });
});

describe("requests that no broker takes end the connection, and the test can read why", () => {
  const cases: [string, Uint8Array, RegExp][] = [
    ["a version out of range", encodeRequest("Fetch", 18, 1, "t", {}), /Fetch v18 is outside of 0 to 12/],
    ["an unknown key", Uint8Array.of(0, 0, 0, 10, 0, 99, 0, 0, 0, 0, 0, 1, 255, 255), /api key 99/],
    ["a size below a header", Uint8Array.of(0, 0, 0, 7), /7 bytes/],
    ["a negative size", Uint8Array.of(255, 255, 255, 255), /-1 bytes/],
    ["a body that is cut", Uint8Array.of(0, 0, 0, 10, 0, 3, 0, 1, 0, 0, 0, 1, 255, 255), /needed|left/],
  ];
  for (const [name, bytes, why] of cases) {
    test(name, () => {
      const { cluster, client } = world({ profile: "2.8" });
      client.server.receive(bytes);
      expect(client.closed).toBe("in order");
      expect(cluster.complaints.join()).toMatch(why);
      client.server.receive(bytes);
      expect(client.answers).toEqual([]);
    });
  }

  test("bytes may come one by one", () => {
    const { client } = world();
    for (const byte of encodeRequest("Metadata", 1, 1, "t", { topics: [] }))
      client.server.receive(Uint8Array.of(byte));
    expect(client.answers.length).toBe(1);
  });
});

describe("Metadata", () => {
  test("brokers, topic id, leaders and epochs", () => {
    const { cluster, client } = world({ brokers: 3 }, 3);
    cluster.moveLeader("t", 1, 1);
    const body = client.ask("Metadata", 12, { topics: [{ name: "t" }] });
    expect(body.clusterId).toBe("test-cluster");
    expect(body.brokers.map((b) => b.nodeId)).toEqual([1, 2, 3]);
    expect(body.topics[0]).toMatchObject({ errorCode: 0, name: "t", topicId: cluster.topic("t").id });
    expect(body.topics[0]!.partitions.map((p) => [p.leaderId, p.leaderEpoch])).toEqual([
      [1, 0],
      [1, 1],
      [3, 0],
    ]);
  });

  test("null is all topics, an empty list none, except in v0", () => {
    const { client } = world();
    expect(client.ask("Metadata", 1, { topics: null }).topics.length).toBe(1);
    expect(client.ask("Metadata", 1, { topics: [] }).topics.length).toBe(0);
    expect(client.ask("Metadata", 0, { topics: [] }).topics.length).toBe(1);
  });

  test("unknown names, ids and names that are none have their errors", () => {
    const { cluster, client } = world();
    const by = (topic: { name: string | null; topicId?: string }) =>
      client.ask("Metadata", 12, { topics: [topic] }).topics[0]!;
    expect(by({ name: "nope" }).errorCode).toBe(ERROR.UNKNOWN_TOPIC_OR_PARTITION);
    expect(by({ name: "a/b" }).errorCode).toBe(ERROR.INVALID_TOPIC_EXCEPTION);
    expect(by({ name: null, topicId: "AAECAwQFBgcICQoLDA0ODw" })).toMatchObject({
      errorCode: 100,
      name: null,
    });
    expect(by({ name: null, topicId: cluster.topic("t").id })).toMatchObject({ errorCode: 0, name: "t" });
    cluster.topic("t").error = ERROR.TOPIC_AUTHORIZATION_FAILED;
    expect(by({ name: "t" })).toMatchObject({ errorCode: 29, partitions: [] });
  });

  test("a topic may be made on the way, and has no leader at first", () => {
    const { cluster, client } = world();
    cluster.autoCreateTopics = true;
    const ask = (allow: boolean) =>
      client.ask("Metadata", 12, { topics: [{ name: "new" }], allowAutoTopicCreation: allow }).topics[0]!
        .errorCode;
    expect(ask(false)).toBe(ERROR.UNKNOWN_TOPIC_OR_PARTITION);
    expect(ask(true)).toBe(ERROR.LEADER_NOT_AVAILABLE);
    expect(ask(true)).toBe(0);
  });

  test("profiles without ids and epochs tell none", () => {
    const { client } = world({ profile: "event-hubs" });
    const topic = client.ask("Metadata", 9, { topics: [{ name: "t" }] }).topics[0]!;
    expect([topic.topicId, topic.partitions[0]!.leaderEpoch]).toEqual([ZERO_UUID, -1]);
  });
});

describe("brokers that die", () => {
  test("partitions move with a new epoch, connections are reset, the broker is not listed", () => {
    const { cluster, client } = world({ brokers: 2 }, 2);
    cluster.kill(1);
    expect(client.closed).toBe("reset");
    const other = new DirectClient(cluster, 2);
    const body = other.ask("Metadata", 12, { topics: [{ name: "t" }] });
    expect(body.brokers.map((b) => b.nodeId)).toEqual([2]);
    expect(body.topics[0]!.partitions.map((p) => [p.leaderId, p.leaderEpoch])).toEqual([
      [2, 1],
      [2, 0],
    ]);
    expect(body.topics[0]!.partitions[0]).toMatchObject({ isrNodes: [2], offlineReplicas: [1] });
  });

  test("without an election there is no leader until it is back", () => {
    const { cluster } = world({ brokers: 2 });
    cluster.kill(1, { elect: false });
    const other = new DirectClient(cluster, 2);
    const ask = () => other.ask("Metadata", 12, { topics: [{ name: "t" }] }).topics[0]!.partitions[0]!;
    expect(ask()).toMatchObject({ errorCode: ERROR.LEADER_NOT_AVAILABLE, leaderId: -1 });
    cluster.revive(1);
    expect(ask()).toMatchObject({ errorCode: 0, leaderId: 1, leaderEpoch: 1 });
  });

  test("connections may be cut alone", () => {
    const { cluster, client } = world();
    cluster.cutConnections(1);
    expect(client.closed).toBe("reset");
    expect(new DirectClient(cluster).ask("Metadata", 1, { topics: [] }).brokers.length).toBe(1);
  });
});

describe("ListOffsets", () => {
  test("start, end, stable end, by time and the largest time", () => {
    const { cluster, client } = world();
    cluster.append("t", 0, batch(5, 100n)); // 0-4
    cluster.append("t", 0, batch(5, 300n)); // 5-9
    cluster.append("t", 0, batch(5, 200n)); // 10-14
    cluster.append("t", 0, buildBatch({ records: [{ value: "o" }], transactional: true, producerId: 1n })); // 15, open
    cluster.advanceLogStart("t", 0, 2n);
    const ask = (timestamp: bigint, isolationLevel = 0) => {
      const topics = [{ name: "t", partitions: [{ partitionIndex: 0, timestamp }] }];
      return client.ask("ListOffsets", 9, { replicaId: -1, isolationLevel, topics }).topics[0]!.partitions[0]!
        .offset;
    };
    expect([ask(-2n), ask(-1n), ask(-1n, 1), ask(-3n), ask(-4n), ask(-5n)]).toEqual([
      2n,
      16n,
      15n,
      9n,
      2n,
      -1n,
    ]);
    expect([ask(0n), ask(101n), ask(301n)]).toEqual([2n, 5n, -1n]);
  });

  test("an empty log has no times; leaders and epochs are checked", () => {
    const { cluster, client } = world({ brokers: 2 }, 2);
    const ask = (partitionIndex: number, timestamp: bigint, currentLeaderEpoch = -1) =>
      client.ask("ListOffsets", 9, {
        topics: [{ name: "t", partitions: [{ partitionIndex, timestamp, currentLeaderEpoch }] }],
      }).topics[0]!.partitions[0]!;
    expect(ask(0, -3n)).toMatchObject({ offset: -1n, timestamp: -1n, leaderEpoch: -1 });
    expect(ask(0, -1n)).toMatchObject({ offset: 0n, leaderEpoch: 0 });
    expect(ask(1, -1n).errorCode).toBe(ERROR.NOT_LEADER_OR_FOLLOWER);
    expect(ask(9, -1n).errorCode).toBe(ERROR.UNKNOWN_TOPIC_OR_PARTITION);
    cluster.moveLeader("t", 0, 1);
    expect(ask(0, -1n, 0).errorCode).toBe(ERROR.FENCED_LEADER_EPOCH);
  });
});

test("OffsetForLeaderEpoch tells where an epoch ended, -1 where it cannot know", () => {
  const { cluster, client } = world();
  cluster.append("t", 0, batch(10)); // epoch 0: 0-9
  cluster.moveLeader("t", 0, 1);
  cluster.moveLeader("t", 0, 1);
  cluster.append("t", 0, batch(10)); // epoch 2: 10-19
  const ask = (leaderEpoch: number, partition = 0) => {
    const p = client.ask("OffsetForLeaderEpoch", 4, {
      replicaId: -1,
      topics: [{ topic: "t", partitions: [{ partition, leaderEpoch, currentLeaderEpoch: 2 }] }],
    }).topics[0]!.partitions[0]!;
    return [p.errorCode, p.leaderEpoch, p.endOffset];
  };
  expect(ask(0)).toEqual([0, 0, 10n]);
  expect(ask(1)).toEqual([0, 1, 10n]); // epoch 1 wrote nothing and ended where it began
  expect(ask(2)).toEqual([0, 2, 20n]);
  expect(ask(3)).toEqual([0, -1, -1n]);
  expect(ask(0, 5)).toEqual([ERROR.UNKNOWN_TOPIC_OR_PARTITION, -1, -1n]);
});

describe("group offsets from outside of membership", () => {
  const commit = (offset: bigint, more: object = {}) => ({
    groupId: "g",
    topics: [
      {
        name: "t",
        partitions: [{ partitionIndex: 0, committedOffset: offset, committedMetadata: "m", ...more }],
      },
    ],
  });

  test("what is committed is read back, in every shape of the request", () => {
    const { cluster, client } = world();
    const topicId = cluster.topic("t").id;
    expect(
      client.ask("OffsetCommit", 7, commit(41n, { committedLeaderEpoch: 3 })).topics[0]!.partitions[0]!
        .errorCode,
    ).toBe(0);
    const one = client.ask("OffsetFetch", 7, {
      groupId: "g",
      topics: [{ name: "t", partitionIndexes: [0, 1] }],
    });
    expect(one.topics[0]!.partitions).toMatchObject([
      { partitionIndex: 0, committedOffset: 41n, committedLeaderEpoch: 3, metadata: "m", errorCode: 0 },
      { partitionIndex: 1, committedOffset: -1n, committedLeaderEpoch: -1, metadata: "", errorCode: 0 },
    ]);
    const many = client.ask("OffsetFetch", 9, { groups: [{ groupId: "g", topics: null }] });
    expect(many.groups[0]!.topics[0]).toMatchObject({ name: "t", partitions: [{ committedOffset: 41n }] });
    const byId = client.ask("OffsetFetch", 10, {
      groups: [{ groupId: "g", topics: [{ topicId, partitionIndexes: [0] }] }],
    });
    expect(byId.groups[0]!.topics[0]).toMatchObject({ topicId, partitions: [{ committedOffset: 41n }] });
  });

  test("by id from v10 on; a topic that is gone takes its offsets along", () => {
    const { cluster, client } = world();
    const topicId = cluster.topic("t").id;
    const partitions = [{ partitionIndex: 0, committedOffset: 5n, committedMetadata: null }];
    const send = () =>
      client.ask("OffsetCommit", 10, { groupId: "g", topics: [{ topicId, partitions }] }).topics[0]!
        .partitions[0]!;
    expect(send().errorCode).toBe(0);
    expect(cluster.committed("g", "t", 0)?.offset).toBe(5n);
    cluster.recreateTopic("t");
    expect(cluster.committed("g", "t", 0)).toBeUndefined();
    expect(send().errorCode).toBe(ERROR.UNKNOWN_TOPIC_ID);
    const read = client.ask("OffsetFetch", 10, {
      groups: [{ groupId: "g", topics: [{ topicId, partitionIndexes: [0] }] }],
    });
    expect(read.groups[0]!.topics[0]!.partitions[0]).toMatchObject({
      errorCode: ERROR.UNKNOWN_TOPIC_ID,
      committedOffset: -1n,
    });
  });

  test("refusals: members, generations, no group, an unknown topic, a fault", () => {
    const { cluster, client } = world();
    const code = (body: object) => client.ask("OffsetCommit", 7, body).topics[0]!.partitions[0]!.errorCode;
    expect(code({ ...commit(1n), groupId: "" })).toBe(ERROR.INVALID_GROUP_ID);
    expect(code({ ...commit(1n), generationIdOrMemberEpoch: 3, memberId: "m" })).toBe(
      ERROR.UNKNOWN_MEMBER_ID,
    );
    expect(code(commit(1n, { partitionIndex: 7 }))).toBe(ERROR.UNKNOWN_TOPIC_OR_PARTITION);
    cluster.failPartition("t", 0, ERROR.NOT_LEADER_OR_FOLLOWER, { api: "OffsetCommit" });
    expect([code(commit(1n)), code(commit(1n))]).toEqual([6, 0]);
    cluster.groupsWithMembers.add("g");
    expect(code(commit(2n))).toBe(ERROR.UNKNOWN_MEMBER_ID);
    cluster.groupsWithMembers.clear();
    cluster.topic("t").error = ERROR.TOPIC_AUTHORIZATION_FAILED;
    expect(code(commit(2n))).toBe(29);
    cluster.deleteTopic("t");
    expect(code(commit(2n))).toBe(ERROR.UNKNOWN_TOPIC_OR_PARTITION);
    expect(cluster.committed("g", "t", 0)).toBeUndefined();
  });

  test("only the coordinator answers; FindCoordinator names it, one key or many", () => {
    const { cluster } = world({ brokers: 3 });
    const home = cluster.coordinatorOf("g")!.id;
    const away = new DirectClient(cluster, (home % 3) + 1);
    expect(away.ask("FindCoordinator", 3, { key: "g" })).toMatchObject({ errorCode: 0, nodeId: home });
    expect(away.ask("FindCoordinator", 4, { coordinatorKeys: ["g"] }).coordinators).toMatchObject([
      { key: "g", nodeId: home },
    ]);
    expect(away.ask("OffsetCommit", 7, commit(1n)).topics[0]!.partitions[0]!.errorCode).toBe(
      ERROR.NOT_COORDINATOR,
    );
    expect(away.ask("OffsetFetch", 7, { groupId: "g", topics: null }).errorCode).toBe(ERROR.NOT_COORDINATOR);
    expect(
      away.ask("OffsetFetch", 8, { groups: [{ groupId: "g", topics: null }] }).groups[0]!.errorCode,
    ).toBe(16);
    const old = away.ask("OffsetFetch", 1, { groupId: "g", topics: [{ name: "t", partitionIndexes: [0] }] });
    expect(old.topics[0]!.partitions[0]!.errorCode).toBe(ERROR.NOT_COORDINATOR);
    for (const broker of cluster.brokers) broker.alive = false;
    expect(away.ask("FindCoordinator", 3, { key: "g" }).errorCode).toBe(ERROR.COORDINATOR_NOT_AVAILABLE);
  });
});

describe("Produce and friends", () => {
  const produce = (records: Uint8Array, index = 0) => ({
    acks: -1,
    topicData: [{ name: "t", partitionData: [{ index, records }] }],
  });

  test("whole batches are appended with offsets of the log, anything else is corrupt", () => {
    const { cluster, client } = world();
    const two = Buffer.concat([batch(3), batch(2)]);
    const answer = (records: Uint8Array) =>
      client.ask("Produce", 9, produce(records)).responses[0]!.partitionResponses[0]!;
    expect(answer(two)).toMatchObject({ errorCode: 0, baseOffset: 0n });
    expect(answer(batch(1))).toMatchObject({ errorCode: 0, baseOffset: 5n });
    expect(cluster.log("t", 0).entries.map((e) => [e.base, e.next])).toEqual([
      [0n, 3n],
      [3n, 5n],
      [5n, 6n],
    ]);
    for (const bad of [new Uint8Array(0), two.subarray(0, 70), two.subarray(0, two.length - 1)]) {
      expect(answer(bad).errorCode).toBe(ERROR.CORRUPT_MESSAGE);
    }
    expect(
      client.ask("Produce", 9, produce(batch(1), 4)).responses[0]!.partitionResponses[0]!.errorCode,
    ).toBe(3);
  });

  test("acks 0 gets no answer, and the connection goes on", () => {
    const { cluster, client } = world();
    client.send("Produce", 9, { ...produce(batch(1)), acks: 0 });
    expect(client.answers.length).toBe(0);
    expect(client.ask("Metadata", 1, { topics: [] }).topics).toEqual([]);
    expect(cluster.log("t", 0).end).toBe(1n);
  });

  test("topics are made with an id, once", () => {
    const { cluster, client } = world();
    const topics = [{ name: "new", numPartitions: 4, replicationFactor: 1 }];
    expect(client.ask("CreateTopics", 7, { topics, validateOnly: true }).topics[0]!.errorCode).toBe(0);
    expect(cluster.topics.has("new")).toBe(false);
    const made = client.ask("CreateTopics", 7, { topics }).topics[0]!;
    expect([made.errorCode, made.topicId]).toEqual([0, cluster.topic("new").id]);
    expect(cluster.topic("new").partitions.length).toBe(4);
    expect(client.ask("CreateTopics", 7, { topics }).topics[0]!.errorCode).toBe(ERROR.TOPIC_ALREADY_EXISTS);
    cluster.addPartitions("new", 2);
    expect(cluster.topic("new").partitions.length).toBe(6);
  });

  test("producers get ids, and a transactional id raises its epoch", () => {
    const { client } = world();
    expect(client.ask("InitProducerId", 4, { transactionalId: null }).producerId).toBe(1000n);
    expect(client.ask("InitProducerId", 4, { transactionalId: null }).producerId).toBe(1001n);
    const first = client.ask("InitProducerId", 4, { transactionalId: "x" });
    const second = client.ask("InitProducerId", 4, { transactionalId: "x" });
    expect([first.producerId, first.producerEpoch]).toEqual([1002n, 0]);
    expect([second.producerId, second.producerEpoch]).toEqual([1002n, 1]);
  });
});

test("the trace holds decoded requests, up to its limit", () => {
  const { cluster, client } = world({ traceLimit: 2 });
  for (const name of ["a", "b", "c"]) client.ask("Metadata", 1, { topics: [{ name }] });
  expect(cluster.requests("Metadata").map((r) => r.body.topics![0]!.name)).toEqual(["b", "c"]);
  expect(cluster.trace[0]).toMatchObject({ node: 1, atMs: 0, request: { clientId: "test", version: 1 } });
});

test("mistakes of a test are told at once", () => {
  const { cluster } = world();
  expect(() => cluster.broker(9)).toThrow("no broker 9");
  expect(() => cluster.topic("x")).toThrow("no topic x");
  expect(() => cluster.partition("t", 9)).toThrow("no partition t/9");
});

/** Goal: `twg inspect kafka` shows what the brokers tell, for people and for programs. Method: the command against the test brokers on real sockets. */
import { afterEach, expect, test } from "bun:test";
import { ERROR } from "../../src/adapters/kafka/wire/errors.ts";
import { systemClock } from "../../src/adapters/system/clock.ts";
import { type InspectKafkaOptions, runInspectKafka } from "../../src/commands/inspect-kafka.ts";
import { buildBatch } from "../brokers/kafka/batch-builder.ts";
import { FakeCluster } from "../brokers/kafka/cluster.ts";
import { type Listening, listenCluster } from "../brokers/kafka/sockets.ts";
import { fakeCli, fileWith } from "./fake-cli.ts";

let listening: Listening | null = null;
afterEach(() => {
  listening?.close();
  listening = null;
});

function bench(topics = 'topics = ["orders"]') {
  const cluster = new FakeCluster({ clock: systemClock, brokers: 2 });
  cluster.createTopic("orders", { partitions: 2 });
  cluster.createTopic("other");
  const records = Array.from({ length: 8 }, (_, i) => ({ value: `${i}` }));
  cluster.append("orders", 0, buildBatch({ records }));
  cluster.append("orders", 1, buildBatch({ records }));
  cluster.commit("g", "orders", 0, { offset: 6n, leaderEpoch: 0, metadata: null });
  cluster.topic("orders").configs.set("retention.ms", "604800000");
  listening = listenCluster(cluster);
  const config = fileWith(`
[pipeline]
name = "orders"
[source]
type = "kafka"
bootstrap = ${JSON.stringify(listening.bootstrap)}
${topics}
group = "g"
[[sink]]
name = "raw"
type = "parquet"
path = "./data"
`);
  return {
    cluster,
    async run(more: Partial<InspectKafkaOptions> = {}) {
      const cli = fakeCli();
      const options = { config, topic: [], all: false, groups: false, timeout: 20_000, json: false, ...more };
      return { code: await runInspectKafka(options, cli), out: cli.stdout() };
    },
  };
}

test("the members of the group: state, protocol, where each runs and what it reads", async () => {
  const b = bench();
  expect((await b.run()).out).toContain("no members (classic, Empty)");
  b.cluster.consumerGroup("g").heartbeat({
    groupId: "g",
    memberId: "m-1",
    memberEpoch: 0,
    instanceId: null,
    rackId: null,
    rebalanceTimeoutMs: 5_000,
    subscribedTopicNames: ["orders"],
    subscribedTopicRegex: null,
    serverAssignor: null,
    topicPartitions: [],
  });
  const { out } = await b.run();
  const lines = out.split("\n").map((l) => l.replace(/ +/g, " ").trim());
  expect(lines).toContain("1 members (consumer, Stable, uniform)");
  expect(lines).toContain("m-1 127.0.0.1 twg orders/0,1");
  expect(JSON.parse((await b.run({ json: true })).out).members).toMatchObject({
    type: "consumer",
    members: [{ memberId: "m-1", epoch: 1, partitions: [{ topic: "orders", partitions: [0, 1] }] }],
  });
});

test("of a pattern: the topics that match", async () => {
  const { code, out } = await bench('topics_pattern = "o[rt].*s|oth.*"').run();
  expect(code).toBe(0);
  expect(out.match(/^topic \S+/gm)?.map((l) => l.trim())).toEqual(["topic orders", "topic other"]);
  const narrow = await bench('topics_pattern = "o.*s"').run();
  expect(narrow.out.match(/^topic \S+/gm)).toEqual(["topic orders"]);
});

test("the pipeline's topics with the lag of its group, as a table", async () => {
  const { code, out } = await bench().run();
  expect(code).toBe(0);
  const lines = out.split("\n").map((l) => l.replace(/ +/g, " ").trim());
  expect(lines).toContain("topic orders retention.ms=604800000");
  expect(lines).toContain("PARTITION LEADER REPLICAS IN SYNC EARLIEST LATEST COMMITTED LAG");
  expect(lines).toContain("0 1 1,2 1,2 0 8 6 2");
  // Nothing committed: all of it is behind.
  expect(lines).toContain("1 2 2,1 2,1 0 8 - 8");
  expect(lines).toContain("group g: 10 records behind");
});

test("everything, for programs: offsets as text", async () => {
  const { code, out } = await bench().run({ json: true, all: true, groups: true });
  expect(code).toBe(0);
  const seen = JSON.parse(out);
  expect(seen).toMatchObject({
    cluster: "test-cluster",
    group: "g",
    brokers: [{ id: 1 }, { id: 2 }],
    groups: [{ group: "g", state: "Empty", type: "classic" }],
    topics: [{ name: "orders" }, { name: "other" }],
  });
  expect(seen.topics[0].partitions[0]).toMatchObject({
    partition: 0,
    leader: 1,
    isr: [1, 2],
    earliest: "0",
    latest: "8",
    committed: "6",
    lag: "2",
  });
});

test("a topic that is missing and a partition without a leader: exit 1, and it says which", async () => {
  const b = bench();
  const missing = await b.run({ topic: ["nowhere"] });
  expect([missing.code, missing.out.includes("UNKNOWN_TOPIC_OR_PARTITION")]).toEqual([1, true]);
  b.cluster.moveLeader("orders", 1, -1);
  const leaderless = await b.run();
  expect([leaderless.code, /^ *1 +none /m.test(leaderless.out)]).toEqual([1, true]);
});

test("brokers that never answer end at the time-out, refusals with their code", async () => {
  const b = bench();
  b.cluster.script.on({
    api: "ListGroups",
    times: 9,
    action: { do: "error", code: ERROR.GROUP_AUTHORIZATION_FAILED },
  });
  expect(b.run({ groups: true })).rejects.toMatchObject({ code: "kafka.group_denied" });
  await b.run({ groups: true }).catch(() => {});
  b.cluster.script.clear();
  b.cluster.script.on({ api: "OffsetFetch", times: 9, action: { do: "stall" } });
  expect(await b.run({ timeout: 300 }).catch((f) => f.code)).toBe("kafka.timeout");
});

/**
 * Goal: a topic that cannot hold coverage, that is read itself, that is missing, too narrow or another than before is
 * refused with its code. Method: the test cluster in simulated time, one fault each.
 */
import { expect, test } from "bun:test";
import { prepareSink } from "../../../../src/adapters/kafka/sink/prepare.ts";
import { prepareTargets, type TopicRules } from "../../../../src/adapters/kafka/sink/targets.ts";
import { ERROR } from "../../../../src/adapters/kafka/wire/errors.ts";
import { asFailure, Failure } from "../../../../src/core/failure/failure.ts";
import { FakeSinkBench } from "./fake-bench.ts";

const RULES: TopicRules = {
  topic: "copy.{topic}",
  create: false,
  same: false,
  coverageTopic: "cov",
  coverageReplicas: 1,
};
const stream = (topic: string, partition = 0, cluster = "sink") => `kafka/${cluster}/${topic}/0/${partition}`;

function world(rules: Partial<TopicRules> = {}) {
  const bench = new FakeSinkBench(1);
  const client = bench.client();
  const all = { ...RULES, ...rules };
  const code = (work: Promise<unknown>) =>
    bench.run(
      work.then(
        () => "none",
        (e: unknown) => (e instanceof Failure ? e.code : String(e)),
      ),
    );
  const targets = async (streams: readonly string[], known: ReadonlyMap<string, string> = new Map()) => {
    await client.refresh([], client.life);
    return prepareTargets(client, all, streams, known, bench.clock, client.life);
  };
  const prepare = () => prepareSink(client, bench.settings, all, bench.clock);
  return { bench, code, targets, prepare };
}

test("the coverage topic is made compacted, with two partitions; the next start finds it", async () => {
  const { bench, code, prepare } = world();
  expect(await code(prepare())).toBe("none");
  const made = bench.cluster.topics.get("cov");
  expect([made?.partitions.length, made?.configs.get("cleanup.policy")]).toEqual([2, "compact"]);
  expect(await code(prepare())).toBe("none");
  expect(bench.cluster.requests("CreateTopics").length).toBe(1);
});

test.each([
  ["delete", 2],
  ["compact,delete", 2],
  [null, 2],
  ["compact", 1],
])("a coverage topic with the policy %p and %p partitions is refused", async (policy, partitions) => {
  const { bench, code, prepare } = world();
  const topic = bench.cluster.createTopic("cov", { partitions });
  if (policy !== null) topic.configs.set("cleanup.policy", policy);
  expect(await code(prepare())).toBe("kafka.coverage_topic");
});

test("brokers that are down are waited for as long as a connection may take; a sink beside another may try again", async () => {
  const { bench, prepare } = world();
  for (const b of bench.cluster.brokers) bench.cluster.kill(b.id);
  const failure = await bench.run(prepare().then(() => null, asFailure));
  expect([failure?.code, failure?.retry]).toEqual(["kafka.unreachable", true]);
});

test("a topic that is read is not written, of the same cluster", async () => {
  const same = world({ topic: "{topic}" });
  same.bench.cluster.createTopic("orders");
  expect(await same.code(same.targets([stream("orders")]))).toBe("kafka.sink_is_source");
  expect(await same.code(same.targets([stream("orders", 0, "another")]))).toBe("none");
  const fixed = world({ topic: "orders" });
  fixed.bench.cluster.createTopic("orders");
  expect(await fixed.code(fixed.targets([stream("returns"), stream("orders")]))).toBe("kafka.sink_is_source");
  expect(await fixed.code(fixed.targets([stream("cov")]))).toBe("kafka.sink_is_source");
});

test("a topic that is missing is refused, or made where that is wanted", async () => {
  const strict = world();
  expect(await strict.code(strict.targets([stream("returns")]))).toBe("kafka.unknown_topic");
  const making = world({ create: true });
  expect(await making.code(making.targets([stream("returns")]))).toBe("none");
  expect(making.bench.cluster.topics.has("copy.returns")).toBe(true);
});

test("a topic that is gone, or another than the one that was written to, is refused", async () => {
  const { bench, code, targets } = world({ create: true });
  const known = await bench.run(targets([stream("orders")]));
  expect([...known]).toEqual([["copy.orders", bench.cluster.topics.get("copy.orders")!.id]]);
  expect(await code(targets([stream("orders")], known))).toBe("none");
  bench.cluster.topics.delete("copy.orders");
  expect(await code(targets([stream("orders")], known))).toBe("kafka.sink_recreated");
  bench.cluster.createTopic("copy.orders", { partitions: 4 });
  expect(await code(targets([stream("orders")], known))).toBe("kafka.sink_recreated");
});

test("the same partition needs as many of them; a right that is missing is said so", async () => {
  const same = world({ same: true });
  expect(await same.code(same.targets([stream("orders", 3)]))).toBe("none");
  expect(await same.code(same.targets([stream("orders", 4)]))).toBe("kafka.unknown_partition");
  const denied = world();
  denied.bench.cluster.topic("copy.orders").error = ERROR.TOPIC_AUTHORIZATION_FAILED;
  expect(await denied.code(denied.targets([stream("orders")]))).toBe("kafka.topic_denied");
});

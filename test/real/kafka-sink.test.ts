/**
 * Goal: the contract of the Kafka sink over real brokers, of both transaction protocols: what the test cluster is held to,
 * they do. Method: the contract's processes with real clients, one topic each test.
 */
import { libduckdbPath } from "../../src/adapters/duckdb/embedded.ts";
import { loadNative } from "../../src/adapters/duckdb/native.ts";
import { createTopics } from "../../src/adapters/kafka/admin.ts";
import { KafkaClient } from "../../src/adapters/kafka/client.ts";
import { createNet } from "../../src/adapters/net/net.ts";
import { systemChance } from "../../src/adapters/system/chance.ts";
import { systemClock } from "../../src/adapters/system/clock.ts";
import { systemSaslCrypto } from "../../src/adapters/system/sasl-crypto.ts";
import { committedValues } from "../contract/committed-values.ts";
import { kafkaOrder } from "../contract/kafka-order.ts";
import { kafkaSinkContract, MOST_BYTES, type SinkBench } from "../contract/kafka-sink-contract.ts";
import { KAFKA_LEASE_MS, kafkaWindows, WINDOW_STREAM } from "../contract/kafka-windows.ts";
import { orderContract } from "../contract/order-contract.ts";
import { pipelineOrderContract } from "../contract/pipeline-order.ts";
import { windowContract } from "../contract/window-contract.ts";
import { demandBrokers } from "../e2e/demand-brokers.ts";
import { CLUSTERS, fresh, type Served } from "../e2e/real-kafka.ts";
import { until } from "../e2e/until.ts";

demandBrokers("the Kafka sink");

const parts = {
  net: createNet(systemClock),
  clock: systemClock,
  chance: systemChance,
  crypto: systemSaslCrypto,
  codecs: loadNative(libduckdbPath()),
};
const PARTITIONS = 4;

async function benchOf(served: Served): Promise<SinkBench> {
  const pipeline = fresh("contract");
  const target = `copy.${pipeline}`;
  const settings = {
    bootstrap: served.plain.map((b) => {
      const [host = "", port = "0"] = b.split(":");
      return { host, port: Number(port) };
    }),
    clientId: "twg-test",
    version: "0",
    tls: null,
    sasl: null,
    dialTimeoutMs: 5_000,
    requestTimeoutMs: 20_000,
    maxResponseBytes: 1 << 24,
    connectTimeoutMs: 20_000,
  };
  const clients: KafkaClient[] = [];
  const client = () => {
    const made = new KafkaClient(settings, parts);
    clients.push(made);
    return made;
  };
  const admin = client();
  const { signal } = new AbortController();
  // The rows are years old by their timestamps, and by those retention goes: a broker would delete what just landed.
  const kept = { "retention.ms": "-1" };
  const created = async (name: string, partitions: number, configs: Readonly<Record<string, string>>) => {
    await createTopics(admin, [{ name, partitions, replicas: 1, configs: { ...kept, ...configs } }], signal);
    await until("the topic", async () => {
      await admin.refresh([name], signal);
      return (admin.metadata.topics.get(name)?.partitions.size ?? 0) === partitions;
    });
  };
  await created(target, PARTITIONS, { "max.message.bytes": String(MOST_BYTES) });
  return {
    settings,
    pipeline,
    target,
    client,
    parts: () => parts,
    run: (work) => work,
    values: (topic = target, partitions = PARTITIONS) =>
      committedValues(client(), topic, partitions, parts.codecs),
    compacted: async () => {
      const topic = `compacted.${pipeline}`;
      await created(topic, 1, { "cleanup.policy": "compact" });
      return topic;
    },
    close: async () => {
      for (const c of clients) c.close();
    },
  };
}

for (const served of CLUSTERS) kafkaSinkContract(`Kafka ${served.version}`, () => benchOf(served));

for (const served of CLUSTERS)
  orderContract(
    `topics of Kafka ${served.version}`,
    kafkaOrder(
      () => benchOf(served),
      () => systemClock,
    ),
    true,
  );

for (const served of CLUSTERS)
  pipelineOrderContract(`topics of Kafka ${served.version}`, () => benchOf(served));

for (const served of CLUSTERS)
  windowContract(`topics of Kafka ${served.version}`, WINDOW_STREAM, async () => {
    let passed = 0;
    const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + passed };
    return kafkaWindows(await benchOf(served), clock, async () => {
      passed += KAFKA_LEASE_MS + 1;
    });
  });

/**
 * Goal: `twg doctor` and `twg inspect coverage` tell what there is to know of a Kafka sink, and leave it alone. Method: the
 * commands against the test brokers on real sockets, one fault at a time; coverage records written by hand.
 */
import { afterEach, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { KafkaClient } from "../../src/adapters/kafka/client.ts";
import { columnsOf } from "../../src/adapters/kafka/producer/columns.ts";
import { KafkaProducer } from "../../src/adapters/kafka/producer/producer.ts";
import { ERROR } from "../../src/adapters/kafka/wire/errors.ts";
import { systemClock } from "../../src/adapters/system/clock.ts";
import { runDoctor } from "../../src/commands/doctor.ts";
import { kafkaRecordParts } from "../../src/commands/kafka-parts.ts";
import { runCli } from "../../src/commands/program.ts";
import type { Finding } from "../../src/core/ports/doctor.ts";
import { FakeCluster } from "../brokers/kafka/cluster.ts";
import { type Listening, listenCluster } from "../brokers/kafka/sockets.ts";
import { fakeCli, fileWith } from "./fake-cli.ts";

let listening: Listening | null = null;
afterEach(() => {
  listening?.close();
  listening = null;
});

function world(sink = "") {
  const cluster = new FakeCluster({ clock: systemClock, clusterId: "c1" });
  cluster.createTopic("orders", { partitions: 2 });
  cluster.createTopic("copy.orders", { partitions: 2 });
  listening = listenCluster(cluster);
  const { bootstrap } = listening;
  const config = fileWith(`[pipeline]
name = "p"
[source]
type = "kafka"
bootstrap = ${JSON.stringify(bootstrap)}
topics = ["orders"]
[[sink]]
name = "raw"
type = "kafka"
bootstrap = ${JSON.stringify(bootstrap)}
${sink === "" ? 'topic = "copy.{topic}"' : sink}
`);
  const doctor = async () => {
    const cli = fakeCli({});
    const code = await runDoctor({ config, json: true, strict: false, timeout: 20_000 }, cli);
    const { findings } = JSON.parse(cli.stdout()) as { findings: Finding[] };
    const mine = findings.filter((f) => f.check.startsWith("kafka_sink."));
    const told = mine.map((f) => `${f.check} ${f.verdict} ${f.code ?? ""}`.trim()).sort();
    return { code, told, mine };
  };
  return { cluster, bootstrap, config, doctor };
}

const BOOTSTRAP = "kafka_sink.bootstrap ok";
const COVERAGE = "kafka_sink.coverage ok";
const RIGHTS = "kafka_sink.transactions ok";

test("all well: nothing is made and nothing written", async () => {
  const { cluster, doctor } = world();
  const { code, told } = await doctor();
  expect({ code, told }).toEqual({ code: 0, told: [BOOTSTRAP, COVERAGE, "kafka_sink.topic ok", RIGHTS] });
  expect([...cluster.topics.keys()].sort()).toEqual(["copy.orders", "orders"]);
  expect(cluster.partition("copy.orders", 0).log.end).toBe(0n);
  expect(cluster.requests("Produce")).toEqual([]);
});

test("what weakens the promise is a warning", async () => {
  const { cluster, doctor } = world();
  const { configs } = cluster.topic("copy.orders");
  configs.set("min.insync.replicas", "1").set("message.timestamp.type", "LogAppendTime");
  const { code, told } = await doctor();
  expect(code).toBe(0);
  expect(told).toContain("kafka_sink.durability warning");
  expect(told).toContain("kafka_sink.timestamps warning");
});

test("a topic that is read, one that is missing, one that may not be written, coverage that could be forgotten", async () => {
  const loop = await world('topic = "{topic}"').doctor();
  expect(loop.told).toContain("kafka_sink.loop warning");
  listening?.close();
  const missing = await world('topic = "x.{topic}"').doctor();
  expect([missing.code, missing.told]).toEqual([
    3,
    [BOOTSTRAP, COVERAGE, "kafka_sink.topic failed kafka.unknown_topic", RIGHTS],
  ]);
  listening?.close();
  const made = await world('topic = "x.{topic}"\ncreate = true').doctor();
  expect([made.code, made.told]).toEqual([0, [BOOTSTRAP, COVERAGE, "kafka_sink.topic ok", RIGHTS]]);
  listening?.close();
  const denied = world();
  denied.cluster.script.on({
    api: "AddPartitionsToTxn",
    action: {
      do: "respond",
      body: () => ({
        resultsByTopicV3AndBelow: [
          {
            name: "copy.orders",
            resultsByPartition: [{ partitionIndex: 0, partitionErrorCode: ERROR.TOPIC_AUTHORIZATION_FAILED }],
          },
        ],
      }),
    },
  });
  expect((await denied.doctor()).told).toContain("kafka_sink.transactions failed kafka.topic_denied");
  listening?.close();
  const forgetful = world();
  forgetful.cluster.createTopic("_twg_coverage.p.raw", { partitions: 2 });
  expect((await forgetful.doctor()).told).toContain("kafka_sink.coverage failed kafka.coverage_topic");
});

test("brokers that are down end the look", async () => {
  const { cluster, doctor } = world();
  cluster.kill(1);
  const { code, told } = await doctor();
  expect([code, told.length]).toEqual([3, 1]);
  expect(told[0]).toContain("kafka_sink.bootstrap failed");
});

test("coverage is shown from its topic; without one nothing has landed", async () => {
  const { cluster, bootstrap, config } = world();
  const looked = async () => {
    const cli = fakeCli({});
    await runCli(["inspect", "coverage", "-c", config, "--json"], cli);
    return (JSON.parse(cli.stdout()) as { places: unknown[] }).places;
  };
  expect(await looked()).toEqual([]);
  cluster.createTopic("_twg_coverage.p.raw", { partitions: 2 });
  const path = join(import.meta.dir, "../golden/state/kafka-sink-v1.json");
  const golden = JSON.parse(readFileSync(path, "utf8")) as Record<string, Record<string, string>>;
  const [host = "", port = ""] = bootstrap[0]!.split(":");
  const client = new KafkaClient(
    {
      bootstrap: [{ host, port: Number(port) }],
      clientId: "t",
      version: "0",
      tls: null,
      sasl: null,
      dialTimeoutMs: 5_000,
      requestTimeoutMs: 5_000,
      maxResponseBytes: 1 << 20,
    },
    kafkaRecordParts(),
  );
  const producer = new KafkaProducer(client, {}, kafkaRecordParts());
  const { signal } = new AbortController();
  await producer.start(signal);
  for (const [partition, entries] of Object.entries(golden)) {
    const records = Object.entries(entries).map(([key, value]) => ({ key, value }));
    const sent = await producer.send("_twg_coverage.p.raw", columnsOf(records), {
      partition: Number(partition),
      signal,
    });
    await sent.done;
  }
  await producer.close(signal);
  client.close();
  const [place] = (await looked()) as { place: string; rows: number; streams: { topic: string }[] }[];
  expect(place).toMatchObject({ place: "topic _twg_coverage.p.raw, sink raw of p", rows: 22 });
  expect(place?.streams.length).toBe(2);
});

/**
 * Idempotent produce with acks all, beside bench/peers/librdkafka and franz-go: COUNT records of SIZE letters without a key.
 *
 *   bun bench/subjects/produce.ts BOOTSTRAP TOPIC COUNT SIZE CODEC       prints one JSON line
 */
import { loadRuntime } from "../../src/adapters/duckdb/embedded.ts";
import { KafkaClient } from "../../src/adapters/kafka/client.ts";
import { consumerSettings } from "../../src/adapters/kafka/consumer.ts";
import type { ProducerOptions } from "../../src/adapters/kafka/producer/options.ts";
import { KafkaProducer } from "../../src/adapters/kafka/producer/producer.ts";
import { kafkaRecordParts } from "../../src/commands/kafka-parts.ts";
import { lettersOf } from "./letters.ts";

const [bootstrap = "", topic = "", count = "0", size = "0", codec = "none"] = process.argv.slice(2);
const values = { ...lettersOf(Number(size)), key: null, headers: null, timestamps: null };
loadRuntime();
const signal = new AbortController().signal;
const parts = kafkaRecordParts();
const start = process.cpuUsage();
const began = performance.now();
const client = new KafkaClient(consumerSettings({ bootstrap: [bootstrap], topics: [topic] }), parts);
const compression = codec as NonNullable<ProducerOptions["compression"]>;
const producer = new KafkaProducer(client, { compression }, parts);
await producer.start(signal);
const all: Promise<readonly { readonly rows: number }[]>[] = [];
for (let sent = 0; sent < Number(count); sent += values.rows) {
  all.push((await producer.send(topic, values, { signal })).done);
}
await producer.flush(signal);
let records = 0;
for (const placed of await Promise.all(all)) for (const p of placed) records += p.rows;
const seconds = (performance.now() - began) / 1000;
await producer.close(signal);
client.close();
console.log(JSON.stringify({ records, seconds, startup_cpu: (start.user + start.system) / 1e6 }));

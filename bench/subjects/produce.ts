/**
 * Idempotent produce with acks all, beside bench/peers/librdkafka and franz-go: COUNT records of SIZE letters without a key.
 *
 *   bun bench/subjects/produce.ts BOOTSTRAP TOPIC COUNT SIZE CODEC       prints one JSON line
 */
import { KafkaClient } from "../../src/adapters/kafka/client.ts";
import { consumerSettings } from "../../src/adapters/kafka/consumer.ts";
import type { ProducerOptions } from "../../src/adapters/kafka/producer/options.ts";
import { KafkaProducer } from "../../src/adapters/kafka/producer/producer.ts";
import type { RecordColumns } from "../../src/adapters/kafka/wire/records/record-writer.ts";
import { kafkaRecordParts } from "../../src/commands/kafka-parts.ts";

const DISTINCT = 1000;

/** The same letters as the peers', by the same generator. */
function columns(size: number): RecordColumns {
  const data = new Uint8Array(DISTINCT * size);
  let state = 1;
  for (let i = 0; i < data.length; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    data[i] = 97 + ((state >>> 24) % 26);
  }
  const offsets = Int32Array.from({ length: DISTINCT + 1 }, (_, i) => i * size);
  const value = { offsets, data, validity: new Uint8Array(0), nullCount: 0 };
  return { rows: DISTINCT, key: null, value, headers: null, timestamps: null };
}

const [bootstrap = "", topic = "", count = "0", size = "0", codec = "none"] = process.argv.slice(2);
const values = columns(Number(size));
const signal = new AbortController().signal;
const parts = kafkaRecordParts();
const start = process.cpuUsage();
const began = performance.now();
const client = new KafkaClient(consumerSettings({ bootstrap: [bootstrap], topics: [topic] }), parts);
const compression = codec as NonNullable<ProducerOptions["compression"]>;
const producer = new KafkaProducer(client, { compression }, parts);
await producer.start(signal);
const all: Promise<readonly { readonly rows: number }[]>[] = [];
for (let sent = 0; sent < Number(count); sent += DISTINCT) {
  all.push((await producer.send(topic, values, { signal })).done);
}
await producer.flush(signal);
let records = 0;
for (const placed of await Promise.all(all)) for (const p of placed) records += p.rows;
const seconds = (performance.now() - began) / 1000;
await producer.close(signal);
client.close();
console.log(JSON.stringify({ records, seconds, startup_cpu: (start.user + start.system) / 1e6 }));

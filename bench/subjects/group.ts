/**
 * A member of a fresh group, alone in it: when the first record comes, and how fast the rest. Stands beside
 * bench/peers/librdkafka/group.c, franz-go and Java, and prints the like. With BENCH_HASH=1 the hash of all values as well.
 *
 *   bun bench/subjects/group.ts BOOTSTRAP TOPIC COUNT GROUP
 */
import { loadRuntime } from "../../src/adapters/duckdb/embedded.ts";
import { consumerSettings, KafkaConsumer } from "../../src/adapters/kafka/consumer.ts";
import { kafkaRecordParts } from "../../src/commands/kafka-parts.ts";
import { hashOf } from "./hash.ts";

const [bootstrap = "", topic = "", count = "0", group = ""] = process.argv.slice(2);
const hashed = process.env["BENCH_HASH"] === "1";
loadRuntime();
const parts = kafkaRecordParts();
const began = performance.now();
const settings = consumerSettings({
  bootstrap: [bootstrap],
  topics: [topic],
  group,
  group_protocol: "classic",
});
const consumer = new KafkaConsumer(settings, parts);
let records = 0;
let bytes = 0;
let first = 0;
let hash = 0n;
for await (const { rows, value } of consumer.batches(new AbortController().signal)) {
  if (records === 0 && rows > 0) first = (performance.now() - began) / 1000;
  records += rows;
  bytes += value.offsets[rows]! - value.offsets[0]!;
  if (hashed) hash += hashOf(rows, value);
  if (records >= Number(count)) break;
}
const seconds = (performance.now() - began) / 1000;
console.log(JSON.stringify({ records, bytes, first, seconds, hash: hash.toString(16).padStart(16, "0") }));
process.exit(0);

/**
 * A member of a fresh group, alone in it: when the first record comes, and how fast the rest. Stands beside
 * bench/peers/librdkafka/group.c and franz-go, and prints the like.
 *
 *   bun bench/subjects/group.ts BOOTSTRAP TOPIC COUNT GROUP
 */
import { consumerSettings, KafkaConsumer } from "../../src/adapters/kafka/consumer.ts";
import { kafkaRecordParts } from "../../src/commands/kafka-parts.ts";

const [bootstrap = "", topic = "", count = "0", group = ""] = process.argv.slice(2);
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
for await (const batch of consumer.batches(new AbortController().signal)) {
  if (records === 0 && batch.rows > 0) first = (performance.now() - began) / 1000;
  records += batch.rows;
  bytes += batch.value.offsets[batch.rows]! - batch.value.offsets[0]!;
  if (records >= Number(count)) break;
}
console.log(JSON.stringify({ records, bytes, first, seconds: (performance.now() - began) / 1000 }));
process.exit(0);

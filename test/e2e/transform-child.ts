/**
 * Copies a topic to another in transactions, positions included, until it is killed or has nothing more to do.
 * Arguments: bootstrap, source topic, target topic, group. Prints `committed` after each transaction, `caught up` once all
 * that was there at its start is copied.
 */
import { committedOffsets, describeCluster, watermarks } from "../../src/adapters/kafka/admin.ts";
import { KafkaClient } from "../../src/adapters/kafka/client.ts";
import { consumerSettings, KafkaConsumer } from "../../src/adapters/kafka/consumer.ts";
import { KafkaProducer } from "../../src/adapters/kafka/producer/producer.ts";
import { kafkaRecordParts } from "../../src/commands/kafka-parts.ts";

const [bootstrap = "", source = "", target = "", group = ""] = process.argv.slice(2);
const parts = kafkaRecordParts();
const signal = new AbortController().signal;
const settings = consumerSettings({
  bootstrap: bootstrap.split(","),
  topics: [source],
  isolation: "read_committed",
  partition_max_bytes: "16KiB",
});
const client = new KafkaClient(settings, parts);
const options = { transactionalId: group, lingerMs: 1, batchBytes: 2_000, compression: "lz4" } as const;
const producer = new KafkaProducer(client, options, parts);
await producer.start(signal);
const { topics } = await describeCluster(client, [source], signal);
const left = new Map<number, bigint>();
for (const { partition, latest } of await watermarks(client, topics, signal))
  left.set(partition, latest ?? 0n);
const committed = await committedOffsets(client, group, signal);
for (const { partition, offset } of committed) if (offset >= left.get(partition)!) left.delete(partition);
const consumer = new KafkaConsumer(settings, parts, {
  position: (f) => committed.find((c) => c.partition === f.partition)?.offset ?? null,
});
if (left.size > 0) {
  for await (const batch of consumer.batches(signal)) {
    const { partition } = batch.stream;
    producer.begin();
    await producer.send(target, batch, { partition, signal });
    const offset = { topic: source, partition, offset: batch.span.next, leaderEpoch: -1, metadata: null };
    const proof = { group, generation: -1, memberId: "", instanceId: null };
    await producer.sendOffsets(proof, [offset], signal);
    await producer.commit(signal);
    console.log("committed");
    if (batch.span.next >= (left.get(partition) ?? 0n)) left.delete(partition);
    if (left.size === 0) break;
  }
}
console.log("caught up");
await producer.close(signal);
client.close();

/**
 * Goal: what our producer writes is read as it was meant, once, by clients that are not ours. Method: records of every
 * shape go to real brokers in every compression, in transactions that are committed and aborted, and while brokers are
 * killed; librdkafka and Kafka's own consumer read the topic back, and every field of every record is compared.
 */
import { afterEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { columnsOf, type OneRecord } from "../../src/adapters/kafka/producer/columns.ts";
import type { ProducerOptions } from "../../src/adapters/kafka/producer/options.ts";
import { SeededChance } from "../sim/chance.ts";
import { demandBrokers } from "./demand-brokers.ts";
import { type Opened, realProducer } from "./kafka-producer-parts.ts";
import { asRead, type Read, readByJava, readByLibrdkafka } from "./read-topic.ts";
import {
  admin,
  CLUSTERS,
  commitsOf,
  createTopic,
  fresh,
  killNode,
  type Offsets,
  type Served,
  upNodes,
} from "./real-kafka.ts";

const LIMIT = 120_000;
const PARTITIONS = 3;
const CODECS = ["none", "gzip", "snappy", "lz4", "zstd"] as const;
/** By environment for long runs. */
const KILL_RECORDS = Number(process.env.TWG_PRODUCER_RECORDS ?? 20_000);
const COPY_RECORDS = Number(process.env.TWG_COPY_RECORDS ?? 3_000);
const COPY_KILLS = Number(process.env.TWG_COPY_KILLS ?? 5);
const signal = new AbortController().signal;

demandBrokers("producer");

const opened: Opened[] = [];
async function produce(served: Served, options: ProducerOptions) {
  const it = await realProducer(served.plain, options, signal);
  opened.push(it);
  return it.producer;
}
afterEach(async () => {
  for (const it of opened.splice(0)) await it.close();
});

const NOW = Date.now();

/** Records of every shape; sizes grow by powers up to `largest`. */
function corpus(chance: SeededChance, largest: number): OneRecord[] {
  const text = (n: number) =>
    Buffer.from(chance.bytes(Math.min(n, 4096)))
      .toString("base64")
      .repeat(Math.ceil(n / 4096))
      .slice(0, n);
  const shapes: OneRecord[] = [
    { value: null, key: "tombstone", timestamp: NOW },
    { value: "", key: "", timestamp: NOW },
    { value: "no key", timestamp: NOW - 1 },
    { value: null, timestamp: NOW - 40 * 86_400_000 },
    { value: new Uint8Array([0]), key: new Uint8Array([255, 0]), timestamp: 0 },
    {
      value: "h",
      headers: [
        ["a", "1"],
        ["a", null],
        ["a", ""],
        ["é", new Uint8Array([0, 255])],
      ],
      timestamp: NOW,
    },
    { value: "h", key: "k", headers: [["", "no name"]], timestamp: NOW },
  ];
  for (let size = 1; size <= largest; size *= 8)
    shapes.push({ value: text(size), key: text(size % 200), timestamp: NOW - size });
  shapes.push({ value: chance.bytes(largest), key: "random", timestamp: NOW });
  const many = Array.from({ length: 2_000 }, (_, i) => ({
    value: `record ${i} ${text(i % 300)}`,
    key: i % 3 === 0 ? null : `key-${i % 50}`,
    timestamp: NOW + (i % 7) - 3,
  }));
  return [...shapes, ...many];
}

for (const served of CLUSTERS) {
  describe(`Kafka ${served.version}`, () => {
    test(
      "every compression, every shape of record, 1 byte to 10 MB",
      async () => {
        const topic = fresh("shapes");
        await createTopic(served, topic, {
          partitions: PARTITIONS,
          config: { "max.message.bytes": "12000000" },
        });
        const sent: Read[] = [];
        const next = [0, 0, 0];
        for (const [i, compression] of CODECS.entries()) {
          const producer = await produce(served, {
            compression,
            maxRecordBytes: 11_000_000,
            batchBytes: 100_000,
          });
          const records = corpus(
            new SeededChance(i),
            compression === "lz4" && served === CLUSTERS[0] ? 10_000_000 : 100_000,
          );
          const calls = [];
          for (let p = 0; p < PARTITIONS; p++) {
            const mine = records.filter((_, k) => k % PARTITIONS === p);
            for (const r of mine) sent.push(asRead(r, p, next[p]!++));
            calls.push(await producer.send(topic, columnsOf(mine, NOW), { partition: p, signal }));
          }
          for (const call of calls) await call.done;
        }
        sent.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
        expect(await readByLibrdkafka(served, topic, "read_uncommitted")).toEqual(sent);
        expect(await readByJava(served, topic, "read_uncommitted")).toEqual(sent);
      },
      LIMIT,
    );

    test(
      "transactions: what was aborted nobody sees, and the group's offsets go with what was committed",
      async () => {
        const topic = fresh("txn");
        const group = `g-${topic}`;
        await createTopic(served, topic, { partitions: PARTITIONS });
        const producer = await produce(served, { transactionalId: topic, compression: "zstd" });
        const kept: string[] = [];
        for (let t = 0; t < 12; t++) {
          const aborted = t % 3 === 1;
          producer.begin();
          for (let p = 0; p <= t % PARTITIONS; p++) {
            const values = Array.from({ length: 20 }, (_, i) => `${t}-${p}-${i}`);
            if (!aborted) kept.push(...values);
            await producer.send(topic, columnsOf(values.map((value) => ({ value }))), {
              partition: p,
              signal,
            });
          }
          const offset = { topic, partition: 0, offset: BigInt(t + 1), leaderEpoch: -1, metadata: null };
          const proof = { group, generation: -1, memberId: "", instanceId: null };
          await producer.sendOffsets(proof, [offset], signal);
          if (aborted) await producer.abortTransaction(signal);
          else await producer.commit(signal);
          // The last ones tell of all: each commits its own number.
          if (t >= 9)
            expect(await commitsOf(served, topic, group)).toMatchObject({ "0": aborted ? t : t + 1 });
        }
        // A transaction without records or offsets, both ways.
        producer.begin();
        await producer.commit(signal);
        producer.begin();
        await producer.abortTransaction(signal);
        const wanted = kept.map((v) => asRead({ value: v }, 0, 0)[4]).sort();
        const librdkafka = await readByLibrdkafka(served, topic, "read_committed");
        expect(librdkafka.map((r) => r[4]).sort()).toEqual(wanted);
        expect(await readByJava(served, topic, "read_committed")).toEqual(librdkafka);
      },
      LIMIT,
    );

    test(
      "a producer that takes over the transactional id fences the former one and aborts its transaction",
      async () => {
        const topic = fresh("fence");
        await createTopic(served, topic);
        const first = await produce(served, { transactionalId: topic });
        first.begin();
        await (await first.send(topic, columnsOf([{ value: "of the first" }]), { signal })).done;
        const second = await produce(served, { transactionalId: topic });
        second.begin();
        await second.send(topic, columnsOf([{ value: "of the second" }]), { signal });
        await second.commit(signal);
        expect(first.commit(signal)).rejects.toMatchObject({ code: "kafka.producer_fenced" });
        await Bun.sleep(0);
        const read = await readByLibrdkafka(served, topic, "read_committed");
        expect(read.map((r) => r[4])).toEqual([asRead({ value: "of the second" }, 0, 0)[4]]);
      },
      LIMIT,
    );

    test(
      "a batch that the topic finds too large is halved until it fits; a record that does not fails alone",
      async () => {
        const topic = fresh("split");
        await createTopic(served, topic, { config: { "max.message.bytes": "5000" } });
        const producer = await produce(served, { lingerMs: 50 });
        const value = (i: number) => `${i}`.padEnd(900, "x");
        const records = Array.from({ length: 100 }, (_, i) => ({ value: value(i) }));
        await (await producer.send(topic, columnsOf(records), { signal })).done;
        const alone = await producer.send(topic, columnsOf([{ value: "y".repeat(9_000) }]), { signal });
        expect(alone.done).rejects.toMatchObject({ code: "kafka.record_too_large" });
        await (await producer.send(topic, columnsOf([{ value: "after" }]), { signal })).done;
        const read = await readByLibrdkafka(served, topic, "read_uncommitted");
        const wanted = [...records.map((r) => r.value), "after"].map((v) => asRead({ value: v }, 0, 0)[4]);
        expect(read.map((r) => r[4])).toEqual(wanted);
      },
      LIMIT,
    );
  });
}

/** Whether it was killed; false: it was done before. */
async function copyUntilKilled(
  argv: readonly string[],
  transactions: number,
  delayMs: number,
): Promise<boolean> {
  const script = join(import.meta.dir, "transform-child.ts");
  const child = Bun.spawn([process.execPath, script, ...argv], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
  });
  let text = "";
  for await (const chunk of child.stdout) {
    text += new TextDecoder().decode(chunk);
    if (text.split("committed").length > transactions) break;
  }
  await Bun.sleep(delayMs);
  child.kill("SIGKILL");
  await child.exited;
  return !text.includes("caught up");
}

for (const served of CLUSTERS) {
  test(
    `consume, transform, produce, killed again and again: read_committed readers see each once (Kafka ${served.version})`,
    async () => {
      const source = fresh("from");
      const target = fresh("to");
      for (const topic of [source, target]) await createTopic(served, topic, { partitions: PARTITIONS });
      const values = Array.from({ length: COPY_RECORDS }, (_, i) => `${i}`.padEnd(100, "."));
      const producer = await produce(served, { batchBytes: 2_000 });
      for (let p = 0; p < PARTITIONS; p++) {
        const mine = values.filter((_, i) => i % PARTITIONS === p).map((value) => ({ value }));
        await (await producer.send(source, columnsOf(mine), { partition: p, signal })).done;
      }
      const chance = new SeededChance(3);
      const argv = [served.plain.join(","), source, target, `g-${target}`];
      let kills = 0;
      while (
        await copyUntilKilled(
          argv,
          kills < COPY_KILLS ? 1 + chance.int(3) : Number.POSITIVE_INFINITY,
          chance.int(8),
        )
      )
        kills++;
      expect(kills).toBeGreaterThanOrEqual(Math.min(3, COPY_KILLS));
      const read = await readByLibrdkafka(served, target, "read_committed");
      for (let p = 0; p < PARTITIONS; p++) {
        const wanted = values
          .filter((_, i) => i % PARTITIONS === p)
          .map((value) => asRead({ value }, p, 0)[4]);
        expect(read.filter((r) => r[0] === p).map((r) => r[4])).toEqual(wanted);
      }
    },
    LIMIT,
  );
}

const three = CLUSTERS.filter((c) => c.plain.length >= 3);
for (const served of three) {
  test(
    `leaders killed in turn while records are sent: each is there once, in its order (Kafka ${served.version})`,
    async () => {
      const topic = fresh("kills");
      await createTopic(served, topic, { partitions: PARTITIONS, config: { "min.insync.replicas": "2" } });
      const producer = await produce(served, { lingerMs: 2, batchBytes: 4_000, compression: "lz4" });
      const deliveries = [];
      let restarted = Promise.resolve();
      try {
        for (let i = 0; i < KILL_RECORDS; ) {
          const records = Array.from({ length: 50 }, (_, k) => ({ value: `${i + k}` }));
          deliveries.push(
            await producer.send(topic, columnsOf(records), { partition: (i / 50) % PARTITIONS, signal }),
          );
          i += 50;
          if (i % 8_000 === 4_000) {
            await restarted;
            const leaders = await admin<Offsets>(served, "leaders", { topic });
            const victim = leaders[String(Math.floor(i / 8_000) % PARTITIONS)]!;
            await killNode(served, victim);
            restarted = upNodes(served, [victim]);
          }
          await Bun.sleep(1);
        }
        for (const d of deliveries) await d.done;
      } finally {
        await restarted;
        await upNodes(served, [1, 2, 3]);
      }
      const read = await readByLibrdkafka(served, topic, "read_uncommitted", KILL_RECORDS);
      const wanted: (string | null)[] = [];
      for (let p = 0; p < PARTITIONS; p++)
        for (let i = 0; i < KILL_RECORDS; i++)
          if (Math.floor(i / 50) % PARTITIONS === p) wanted.push(asRead({ value: `${i}` }, p, 0)[4]);
      expect(read.map((r) => r[4])).toEqual(wanted);
    },
    LIMIT,
  );
}

/**
 * Goal: positions in a transaction are the group's only from a member that has the partition still (KIP-447), and a group
 * is described as it is. Method: two of our consumers in a group of real brokers; what a member knew of itself before the
 * group formed anew is used after it, as a process does that was asleep.
 */
import { describe, expect, test } from "bun:test";
import { describeGroup, type GroupDescription } from "../../src/adapters/kafka/admin-groups.ts";
import { consumerSettings, KafkaConsumer } from "../../src/adapters/kafka/consumer.ts";
import { columnsOf } from "../../src/adapters/kafka/producer/columns.ts";
import { kafkaRecordParts } from "../../src/commands/kafka-parts.ts";
import { demandBrokers } from "./demand-brokers.ts";
import { realClient, realProducer } from "./kafka-producer-parts.ts";
import { commitsOf, createTopic, fresh, MAIN, type Served } from "./real-kafka.ts";
import { until } from "./until.ts";

demandBrokers("transactions of a group");

const LIMIT = 60_000;
const served = MAIN as Served;

/** Reads on until it is stopped, and commits nothing by itself. */
function member(topic: string, group: string, group_protocol: string) {
  const life = new AbortController();
  const source = {
    bootstrap: served.plain,
    topics: [topic],
    group,
    group_protocol,
    session_timeout_ms: "6s",
  };
  const consumer = new KafkaConsumer(
    consumerSettings({ ...source, client_id: "twg-e2e" }),
    kafkaRecordParts(),
    {
      commits: false,
    },
  );
  const reading = (async () => {
    for await (const _ of consumer.batches(life.signal));
  })();
  return {
    consumer,
    stop: () => {
      life.abort();
      return reading;
    },
  };
}

const partitionsOf = (d: GroupDescription | null) =>
  d === null ? [] : d.members.map((m) => (m.partitions ?? []).flatMap((t) => t.partitions));

describe.skipIf(MAIN === null)("positions in a transaction", () => {
  for (const protocol of ["classic", "consumer"] as const) {
    test(
      `${protocol}: of a member that lost the partition are refused, its successor's are taken`,
      async () => {
        const signal = new AbortController().signal;
        const topic = fresh("proof");
        const group = `g-${topic}`;
        await createTopic(served, topic, { partitions: 2 });
        const client = realClient(served.plain);
        expect(await describeGroup(client, group, signal)).toBeNull();
        const { producer, close } = await realProducer(served.plain, { transactionalId: topic }, signal);
        const a = member(topic, group, protocol);
        const described = (shares: number[]) =>
          until(`shares of ${shares}`, async () => {
            const d = await describeGroup(client, group, signal);
            const sizes = partitionsOf(d).map((p) => p.length);
            return Bun.deepEquals(sizes.sort(), shares) ? d : null;
          });
        const before = (await described([2]))!;
        expect(before).toMatchObject({
          type: protocol,
          state: "Stable",
          protocol: protocol === "classic" ? "cooperative-sticky" : "uniform",
          members: [{ clientId: "twg-e2e", host: "127.0.0.1" }],
        });
        const old = await a.consumer.groupMetadata(signal);
        expect(old.memberId).toBe(before.members[0]!.memberId);
        const b = member(topic, group, protocol);
        const after = (await described([1, 1]))!;
        const theirs = after.members.find((m) => m.memberId !== old.memberId)!;
        const partition = theirs.partitions![0]!.partitions[0]!;
        const offset = (next: bigint) => ({
          topic,
          partition,
          offset: next,
          leaderEpoch: -1,
          metadata: null,
        });
        const send = async () => {
          producer.begin();
          await producer.send(topic, columnsOf([{ value: "copy" }]), { partition, signal });
        };
        await send();
        const refused = await producer.sendOffsets(old, [offset(7n)], signal).catch((e) => e);
        expect(refused.code).toBe("kafka.transaction_failed");
        expect(refused.message).toMatch(/ILLEGAL_GENERATION|STALE_MEMBER_EPOCH/);
        await producer.abortTransaction(signal);
        const committed = await commitsOf(served, topic, group);
        expect(Object.values(committed).every((at) => at !== 7)).toBe(true);
        await send();
        await producer.sendOffsets(await b.consumer.groupMetadata(signal), [offset(3n)], signal);
        await producer.commit(signal);
        expect((await commitsOf(served, topic, group))[partition]).toBe(3);
        await Promise.all([a.stop(), b.stop()]);
        await close();
        client.close();
      },
      LIMIT,
    );
  }
});

/**
 * Goal: whatever connections, leaders and brokers do, an idempotent producer's records are in the log once and in
 * order, and a transaction's either all or not at all. Method: the producer against the test cluster, which judges
 * sequences as Kafka does, in simulated time; faults come by seed, and the logs are read when all is over.
 */
import { expect, test } from "bun:test";
import { columnsOf } from "../../../../src/adapters/kafka/producer/columns.ts";
import { ERROR } from "../../../../src/adapters/kafka/wire/errors.ts";
import type { Failure } from "../../../../src/core/failure/failure.ts";
import { ProducerBench } from "./producer-bench.ts";

const rows = (from: number, count: number, name = "") =>
  columnsOf(Array.from({ length: count }, (_, i) => ({ value: `<${name}${from + i}>` })));
const texts = (from: number, count: number, name = "") =>
  Array.from({ length: count }, (_, i) => `<${name}${from + i}>`);
const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => "done",
    (f: Failure) => f.code,
  );

/** One fault by chance, at any time. */
function trouble(b: ProducerBench): void {
  const { cluster, chance } = b;
  const node = 1 + chance.int(3);
  const partition = chance.int(3);
  const kinds = [
    () => cluster.cutConnections(node),
    () => cluster.moveLeader("t", partition, node),
    () =>
      cluster.failPartition("t", partition, [6, 7, 19, 20, 3, 5][chance.int(6)]!, {
        api: "Produce",
        times: 1 + chance.int(3),
      }),
    () =>
      cluster.script.on({
        api: "Produce",
        action: { do: "drop", when: chance.next() < 0.5 ? "before" : "after" },
      }),
    () => cluster.script.on({ api: "Produce", action: { do: "delay", ms: chance.int(5_000) } }),
    () => {
      cluster.kill(node);
      b.clock.after(chance.int(3_000), () => cluster.revive(node));
    },
  ];
  kinds[chance.int(kinds.length)]!();
}

const SEEDS = Number(process.env["TWG_PRODUCER_SEEDS"] ?? 12);

test(
  `${SEEDS} seeds of faults: once, in order, and every call says so`,
  async () => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      const b = new ProducerBench(seed, { brokers: 3 });
      const producer = b.producer({ lingerMs: b.chance.int(20), batchBytes: 100 + b.chance.int(400) });
      await b.run(producer.start(b.signal));
      const end = b.time.nowMs + 20_000;
      const troubles = () => {
        trouble(b);
        if (b.time.nowMs < end) b.clock.after(b.chance.int(1_500), troubles);
      };
      troubles();
      const calls: Promise<unknown>[] = [];
      for (let i = 0; i < 900; i += 9) {
        const delivery = await b.run(
          producer.send("t", rows(i, 9), { partition: (i / 9) % 3, signal: b.signal }),
        );
        calls.push(delivery.done);
        await b.time.runUntil(() => false, b.time.nowMs + b.chance.int(300));
      }
      await b.run(Promise.all(calls));
      for (let p = 0; p < 3; p++) {
        const wanted = Array.from({ length: 34 }, (_, k) => (3 * k + p) * 9)
          .filter((i) => i < 900)
          .flatMap((i) => texts(i, 9));
        expect([seed, ...b.texts(p)]).toEqual([seed, ...wanted]);
      }
      await b.run(producer.close(b.signal));
    }
  },
  60_000 + 2_000 * SEEDS,
);

test(
  `${SEEDS} seeds of faults in transactions: a committed one is there whole, an aborted one not at all`,
  async () => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      const b = new ProducerBench(1_000 + seed, { brokers: 3 });
      const producer = b.producer({ transactionalId: "x", lingerMs: 3 });
      await b.run(producer.start(b.signal));
      const wanted: string[][] = [[], [], []];
      let committed = 0n;
      for (let t = 0; t < 12; t++) {
        if (b.chance.next() < 0.7) trouble(b);
        producer.begin();
        for (let p = 0; p < 3; p++)
          await b.run(producer.send("t", rows(t * 10, 4), { partition: p, signal: b.signal }));
        const offset = { topic: "t", partition: 0, offset: BigInt(t + 1), leaderEpoch: -1, metadata: null };
        const proof = { group: "g", generation: -1, memberId: "", instanceId: null };
        await b.run(producer.sendOffsets(proof, [offset], b.signal));
        if (b.chance.next() < 0.3) await b.run(producer.abortTransaction(b.signal));
        else {
          await b.run(producer.commit(b.signal));
          committed = BigInt(t + 1);
          for (let p = 0; p < 3; p++) wanted[p]!.push(...texts(t * 10, 4));
        }
      }
      expect([seed, b.texts(0), b.texts(1), b.texts(2)]).toEqual([seed, ...wanted]);
      expect(b.cluster.committed("g", "t", 0)?.offset ?? 0n).toBe(committed);
      await b.run(producer.close(b.signal));
    }
  },
  60_000 + 2_000 * SEEDS,
);

test("memory is bounded: a call waits for room, and goes on when there is some", async () => {
  const b = new ProducerBench(1);
  const producer = b.producer({ bufferBytes: 20_000, batchBytes: 4_000, compression: "none" });
  await b.run(producer.start(b.signal));
  const columns = columnsOf(Array.from({ length: 2_000 }, (_, i) => ({ value: `<${i}>`.padEnd(100) })));
  b.cluster.script.on({ api: "Produce", times: 3, action: { do: "delay", ms: 2_000 } });
  let highest = 0;
  const watch = () => {
    highest = Math.max(highest, producer.held);
    b.clock.after(1, watch);
  };
  watch();
  const delivery = await b.run(producer.send("t", columns, { partition: 0, signal: b.signal }));
  await b.run(delivery.done);
  expect(b.texts(0)).toEqual(texts(0, 2_000));
  // One batch may be above the budget.
  expect(highest).toBeGreaterThan(15_000);
  expect(highest).toBeLessThanOrEqual(20_000 + 4_100);
});

test("a call that is given up while it waits for room leaves the others alone", async () => {
  const b = new ProducerBench(2);
  const producer = b.producer({ bufferBytes: 8_000, batchBytes: 4_000 });
  await b.run(producer.start(b.signal));
  b.cluster.script.on({ api: "Produce", action: { do: "delay", ms: 2_000 } });
  const first = await b
    .run(
      producer.send("t", columnsOf(Array.from({ length: 80 }, () => ({ value: "x".repeat(100) }))), {
        partition: 0,
        signal: b.signal,
      }),
      1_000,
    )
    .catch(() => null);
  const given = new AbortController();
  const second = codeOf(producer.send("t", rows(0, 1), { partition: 0, signal: given.signal }));
  given.abort();
  expect(await b.run(second)).toBe("internal.cancelled");
  expect(first === null || Array.isArray(await b.run(first.done))).toBe(true);
  const third = await b.run(producer.send("t", rows(7, 1), { partition: 0, signal: b.signal }));
  await b.run(third.done);
  expect(b.texts(0)).toEqual(["<7>"]);
});

test("records without a key are spread; with one they stay together", async () => {
  const b = new ProducerBench(3);
  const producer = b.producer({ batchBytes: 300 });
  await b.run(producer.start(b.signal));
  const free = await b.run(producer.send("t", rows(0, 500), { signal: b.signal }));
  await b.run(free.done);
  const counts = [0, 1, 2].map((p) => b.texts(p).length);
  expect(counts.reduce((x, y) => x + y)).toBe(500);
  expect(Math.min(...counts)).toBeGreaterThan(80);
  const keyed = columnsOf(Array.from({ length: 50 }, (_, i) => ({ key: "same", value: `<k${i}>` })));
  const placed = await b.run((await b.run(producer.send("t", keyed, { signal: b.signal }))).done);
  expect(new Set(placed.map((p) => p.partition)).size).toBe(1);
});

test("a topic that is not there, a partition that is not there, a topic that is denied", async () => {
  const b = new ProducerBench(4);
  const producer = b.producer({ deliveryTimeoutMs: 5_000 });
  await b.run(producer.start(b.signal));
  expect(await b.run(codeOf(producer.send("nowhere", rows(0, 1), { signal: b.signal })))).toBe(
    "kafka.unknown_topic",
  );
  expect(await b.run(codeOf(producer.send("t", rows(0, 1), { partition: 9, signal: b.signal })))).toBe(
    "kafka.unknown_partition",
  );
  b.cluster.createTopic("secret");
  b.cluster.topic("secret").error = ERROR.TOPIC_AUTHORIZATION_FAILED;
  expect(await b.run(codeOf(producer.send("secret", rows(0, 1), { signal: b.signal })))).toBe(
    "kafka.topic_denied",
  );
});

test("nobody answers: the records fail in time, and say that nothing was written", async () => {
  const b = new ProducerBench(5, { brokers: 3 });
  const producer = b.producer({ deliveryTimeoutMs: 10_000 });
  await b.run(producer.start(b.signal));
  await b.run((await b.run(producer.send("t", rows(0, 1), { partition: 0, signal: b.signal }))).done);
  for (const node of [1, 2, 3]) b.cluster.kill(node, { elect: false });
  const late = await b.run(producer.send("t", rows(1, 1), { partition: 1, signal: b.signal }));
  expect(await b.run(codeOf(late.done))).toBe("kafka.delivery_timeout");
});

test("acks of the leader alone, and of nobody", async () => {
  const b = new ProducerBench(6);
  for (const [i, acks] of (["leader", "none"] as const).entries()) {
    const producer = b.producer({ acks });
    await b.run(producer.start(b.signal));
    const delivery = await b.run(producer.send("t", rows(i, 1), { partition: i, signal: b.signal }));
    const [placed] = await b.run(delivery.done);
    expect(placed!.offset).toBe(acks === "none" ? -1n : 0n);
    await b.run(producer.flush(b.signal));
    await b.time.runUntil(() => false, b.time.nowMs + 100);
    expect(b.texts(i)).toEqual([`<${i}>`]);
    await b.run(producer.close(b.signal));
  }
  expect(() => b.producer({ acks: "leader", idempotent: true })).toThrow(
    expect.objectContaining({ code: "config.conflict" }),
  );
});

test("the second with a transactional id fences the first", async () => {
  const b = new ProducerBench(7);
  const first = b.producer({ transactionalId: "x" });
  await b.run(first.start(b.signal));
  first.begin();
  await b.run(first.send("t", rows(0, 1, "first-"), { partition: 0, signal: b.signal }));
  const second = b.producer({ transactionalId: "x" });
  await b.run(second.start(b.signal));
  expect(await b.run(codeOf(first.commit(b.signal)))).toBe("kafka.producer_fenced");
  expect(await codeOf(first.send("t", rows(1, 1), { signal: b.signal }))).toBe("kafka.producer_fenced");
  second.begin();
  await b.run(second.send("t", rows(0, 1, "second-"), { partition: 0, signal: b.signal }));
  await b.run(second.commit(b.signal));
  expect(b.texts(0)).toEqual(["<second-0>"]);
});

test("a commit whose outcome nobody tells is not called one, and the producer ends there", async () => {
  const b = new ProducerBench(8);
  const producer = b.producer({ transactionalId: "x", deliveryTimeoutMs: 5_000 });
  await b.run(producer.start(b.signal));
  producer.begin();
  await b.run(producer.send("t", rows(0, 1), { partition: 0, signal: b.signal }));
  await b.run(producer.flush(b.signal));
  b.cluster.script.on({ api: "EndTxn", times: 1_000, action: { do: "drop", when: "after" } });
  expect(await b.run(codeOf(producer.commit(b.signal)))).toBe("kafka.transaction_unknown");
  expect(() => producer.begin()).toThrow(expect.objectContaining({ code: "kafka.transaction_unknown" }));
});

test("a batch that failed spoils its transaction: it cannot be committed, and after the abort the next can", async () => {
  const b = new ProducerBench(9);
  const producer = b.producer({ transactionalId: "x" });
  await b.run(producer.start(b.signal));
  producer.begin();
  await b.run(producer.send("t", rows(0, 1), { partition: 0, signal: b.signal }));
  b.cluster.failPartition("t", 1, ERROR.INVALID_RECORD, { api: "Produce" });
  await b.run(producer.send("t", rows(1, 1), { partition: 1, signal: b.signal }));
  expect(await b.run(codeOf(producer.commit(b.signal)))).toBe("kafka.record_refused");
  await b.run(producer.abortTransaction(b.signal));
  producer.begin();
  await b.run(producer.send("t", rows(2, 1), { partition: 1, signal: b.signal }));
  await b.run(producer.commit(b.signal));
  expect([b.texts(0), b.texts(1)]).toEqual([[], ["<2>"]]);
});

test("a member that lost its place cannot commit its offsets (KIP-447)", async () => {
  const b = new ProducerBench(10);
  const producer = b.producer({ transactionalId: "x" });
  await b.run(producer.start(b.signal));
  producer.begin();
  await b.run(producer.send("t", rows(0, 1), { partition: 0, signal: b.signal }));
  const proof = { group: "g", generation: 3, memberId: "gone", instanceId: null };
  const offset = { topic: "t", partition: 0, offset: 1n, leaderEpoch: -1, metadata: null };
  expect(await b.run(codeOf(producer.sendOffsets(proof, [offset], b.signal)))).toBe(
    "kafka.transaction_failed",
  );
  expect(await b.run(codeOf(producer.commit(b.signal)))).toBe("kafka.transaction_failed");
  await b.run(producer.close(b.signal));
  expect(b.texts(0)).toEqual([]);
});

test("closed at once: what has no outcome fails, and nothing hangs", async () => {
  const b = new ProducerBench(11);
  const producer = b.producer({ lingerMs: 60_000 });
  await b.run(producer.start(b.signal));
  const delivery = await b.run(producer.send("t", rows(0, 3), { partition: 0, signal: b.signal }));
  producer.abort();
  expect(await codeOf(delivery.done)).toBe("internal.cancelled");
  expect(producer.held).toBe(0);
  expect(await codeOf(producer.flush(b.signal))).toBe("done");
});

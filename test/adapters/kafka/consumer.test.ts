/**
 * Goal: without the pipeline every record comes once and in order, positions are committed for what is done and for
 * nothing else, also when partitions go to another member; who keeps a batch for too long is told and never reads another
 * one in it. Method: the test cluster in simulated time.
 */
import { expect, test } from "bun:test";
import { libduckdbPath } from "../../../src/adapters/duckdb/embedded.ts";
import { loadNative } from "../../../src/adapters/duckdb/native.ts";
import {
  type ConsumerOptions,
  consumerSettings,
  KafkaConsumer,
} from "../../../src/adapters/kafka/consumer.ts";
import type { ConsumerBatch } from "../../../src/adapters/kafka/lent-batch.ts";
import { ERROR } from "../../../src/adapters/kafka/wire/errors.ts";
import { systemSaslCrypto } from "../../../src/adapters/system/sasl-crypto.ts";
import { asFailure } from "../../../src/core/failure/failure.ts";
import type { RawBatch } from "../../../src/core/records/raw-batch.ts";
import { buildBatch } from "../../brokers/kafka/batch-builder.ts";
import { memoryNet } from "../../brokers/kafka/memory-net.ts";
import { ProducerBench } from "./producer/producer-bench.ts";

const codecs = loadNative(libduckdbPath());
const text = new TextDecoder();

function consumerOf(
  b: ProducerBench,
  source: Record<string, unknown> = {},
  options: ConsumerOptions = {},
): KafkaConsumer {
  const chance = b.chance.fork();
  const settings = consumerSettings({ bootstrap: b.cluster.bootstrap, topics: ["t"], ...source });
  const net = memoryNet(b.cluster, { clock: b.clock, chance });
  return new KafkaConsumer(
    settings,
    { net, clock: b.clock, chance, crypto: systemSaslCrypto, codecs },
    options,
  );
}

const valuesOf = ({ value, rows }: RawBatch): string[] =>
  Array.from({ length: rows }, (_, i) =>
    text.decode(value.data.subarray(value.offsets[i], value.offsets[i + 1])),
  );

function fill(b: ProducerBench, partition: number, from: number, count: number): void {
  for (let i = from; i < from + count; i += 5)
    b.cluster.append(
      "t",
      partition,
      buildBatch({ records: Array.from({ length: 5 }, (_, k) => ({ value: `${partition}-${i + k}` })) }),
    );
}

const wanted = (partition: number, from: number, to: number) =>
  Array.from({ length: to - from }, (_, i) => `${partition}-${from + i}`);

/** Reads until `count` records are done, or `signal` aborts; what was read, by partition. */
async function read(
  consumer: KafkaConsumer,
  signal: AbortSignal,
  count: number,
  seen: string[][] = [[], [], []],
): Promise<string[][]> {
  for await (const batch of consumer.batches(signal)) {
    seen[batch.stream.partition]!.push(...valuesOf(batch));
    if (seen.flat().length >= count) break;
  }
  return seen;
}

test("everything once, in order, with little room ahead", async () => {
  const b = new ProducerBench(1, { brokers: 2 });
  for (let p = 0; p < 3; p++) fill(b, p, 0, 100);
  const consumer = consumerOf(b, { partition_max_bytes: "1KiB" }, { aheadBytes: 2_000 });
  const seen = await b.run(read(consumer, b.signal, 300));
  expect(seen).toEqual([wanted(0, 0, 100), wanted(1, 0, 100), wanted(2, 0, 100)]);
});

test("a batch that is done is committed, the one in hand is not, and the next reader goes on there", async () => {
  const b = new ProducerBench(2);
  fill(b, 0, 0, 20);
  const source = { group: "g", partition_max_bytes: "1KiB" };
  const batches: string[][] = [];
  const some = async () => {
    for await (const batch of consumerOf(b, source).batches(b.signal)) {
      batches.push(valuesOf(batch));
      fill(b, 0, 20 * batches.length, 20);
      if (batches.length === 3) break;
    }
  };
  await b.run(some());
  const done = batches.slice(0, 2).flat().length;
  expect(b.cluster.committed("g", "t", 0)?.offset).toBe(BigInt(done));
  const rest = await b.run(read(consumerOf(b, source), b.signal, 80 - done));
  expect([...batches.slice(0, 2).flat(), ...rest[0]!]).toEqual(wanted(0, 0, 80));
});

test("a position of the caller's own comes before every other", async () => {
  const b = new ProducerBench(3);
  fill(b, 1, 0, 20);
  const consumer = consumerOf(b, {}, { position: (f) => (f.partition === 1 ? 13n : null) });
  expect((await b.run(read(consumer, b.signal, 7)))[1]).toEqual(wanted(1, 13, 20));
  const late = consumerOf(b, { start: "latest" });
  const reading = read(late, b.signal, 5);
  await b.time.runUntil(() => false, b.time.nowMs + 5_000);
  fill(b, 1, 20, 5);
  expect((await b.run(reading))[1]).toEqual(wanted(1, 20, 25));
});

test("two members share the partitions, and each record is done once though one comes later and leaves early", async () => {
  const b = new ProducerBench(4, { brokers: 2 });
  const source = { group: "g", group_protocol: "classic", partition_max_bytes: "1KiB" };
  const [first, second] = [new AbortController(), new AbortController()];
  const seen: string[][] = [[], [], []];
  const one = read(consumerOf(b, source), first.signal, Number.POSITIVE_INFINITY, seen);
  const feed = (from: number) => {
    for (let p = 0; p < 3; p++) fill(b, p, from, 20);
  };
  const wait = (ms: number) => b.time.runUntil(() => false, b.time.nowMs + ms);
  feed(0);
  await wait(5_000);
  const two = read(consumerOf(b, source), second.signal, Number.POSITIVE_INFINITY, seen);
  feed(20);
  await wait(20_000);
  expect(b.cluster.classicGroup("g").members.length).toBe(2);
  feed(40);
  await wait(5_000);
  second.abort();
  await b.run(two);
  feed(60);
  await wait(20_000);
  first.abort();
  await b.run(one);
  expect(seen).toEqual([wanted(0, 0, 80), wanted(1, 0, 80), wanted(2, 0, 80)]);
});

test("who may commit a batch: a member proves itself, and not for a partition that it lost meanwhile", async () => {
  const b = new ProducerBench(8);
  fill(b, 0, 0, 20);
  const source = { group: "g", group_protocol: "classic", session_timeout_ms: "6s" };
  const consumer = consumerOf(b, source, { commits: false });
  const none = await consumerOf(b)
    .groupMetadata(b.signal)
    .catch((f) => f.code);
  expect(none).toBe("config.missing");
  const seen: unknown[] = [];
  const reading = async () => {
    for await (const _ of consumer.batches(b.signal)) {
      seen.push(await consumer.groupMetadata(b.signal));
      // Out, and in again as another member, with the batch still in hand.
      const error = { do: "error", code: ERROR.UNKNOWN_MEMBER_ID } as const;
      b.cluster.script.on({ api: "Heartbeat", action: error });
      await b.time.runUntil(() => b.cluster.classicGroup("g").generation > 1, b.time.nowMs + 20_000);
      seen.push(await consumer.groupMetadata(b.signal).catch((f) => f.code));
      break;
    }
  };
  await b.run(reading());
  expect(seen).toEqual([
    { group: "g", generation: 1, memberId: "g-member-1", instanceId: null },
    "kafka.partition_lost",
  ]);
  expect(b.cluster.committed("g", "t", 0)).toBeUndefined();
});

test("a partition is given up when the batch in hand is done, not before", async () => {
  const b = new ProducerBench(7, { brokers: 2 });
  const source = { group: "g", group_protocol: "classic", partition_max_bytes: "1KiB" };
  const life = new AbortController();
  const seen: string[][] = [[], [], []];
  const slow = async () => {
    for await (const batch of consumerOf(b, source).batches(life.signal)) {
      if (batch.rows > 0) await new Promise<void>((resolve) => b.clock.after(4_000, resolve));
      seen[batch.stream.partition]!.push(...valuesOf(batch));
    }
  };
  for (let p = 0; p < 3; p++) fill(b, p, 0, 15);
  const one = slow();
  await b.time.runUntil(() => seen.flat().length > 0, b.time.nowMs + 60_000);
  const two = read(consumerOf(b, source), life.signal, Number.POSITIVE_INFINITY, seen);
  await b.time.runUntil(() => seen.flat().length >= 45, b.time.nowMs + 120_000);
  await b.time.runUntil(() => false, b.time.nowMs + 30_000);
  expect(b.cluster.classicGroup("g").members.length).toBe(2);
  life.abort();
  await b.run(Promise.all([one, two]));
  expect(seen).toEqual([wanted(0, 0, 15), wanted(1, 0, 15), wanted(2, 0, 15)]);
});

test("what ends the source ends the loop with its failure; retention is accepted where the options say so", async () => {
  const b = new ProducerBench(5);
  fill(b, 0, 0, 40);
  b.cluster.advanceLogStart("t", 0, 20n);
  const at = { position: () => 3n };
  const stopped = read(consumerOf(b, {}, at), b.signal, 1).catch((f) => f.code);
  expect(await b.run(stopped)).toBe("kafka.offset_out_of_range");
  const on = consumerOf(
    b,
    { on_out_of_range: "earliest" },
    { position: (f) => (f.partition === 0 ? 3n : 0n) },
  );
  expect((await b.run(read(on, b.signal, 20)))[0]).toEqual(wanted(0, 20, 40));
});

test("damaged bytes end the loop with their place, behind what could be read", async () => {
  const b = new ProducerBench(6);
  fill(b, 0, 0, 5);
  b.cluster.append("t", 0, buildBatch({ records: [{ value: "bad" }], crcError: 1 }));
  const seen: string[][] = [[], [], []];
  const failure = await b.run(read(consumerOf(b), b.signal, 99, seen).catch((f) => f));
  expect(failure).toMatchObject({ code: "kafka.crc" });
  expect(seen[0]).toEqual(wanted(0, 0, 5));
});

test("a batch that is kept for too long throws, its arrays are empty, and a copy stays what it was", async () => {
  const b = new ProducerBench(9);
  fill(b, 0, 0, 200);
  const consumer = consumerOf(b, { partition_max_bytes: "1KiB" });
  const code = (look: () => unknown): unknown => {
    try {
      return look();
    } catch (e) {
      return asFailure(e).code;
    }
  };
  const kept: {
    batch: RawBatch;
    column: RawBatch["value"];
    arrays: ArrayLike<unknown>[];
    copy: RawBatch;
    clone: RawBatch;
    values: string[];
  }[] = [];
  const seen: string[] = [];
  const reading = async () => {
    for await (const batch of consumer.batches(b.signal)) {
      const { value, offsets, runs } = batch;
      const values = valuesOf(batch);
      const arrays = [offsets, value.offsets, value.data, value.data.subarray(2), runs.end];
      seen.push(...values);
      kept.push({ batch, column: value, arrays, values, copy: batch.copy(), clone: structuredClone(batch) });
      if (seen.length >= 200) break;
    }
  };
  await b.run(reading());
  expect(seen).toEqual(wanted(0, 0, 200));
  expect(kept.length).toBeGreaterThan(2);
  for (const { batch, column, arrays, copy, clone, values } of kept) {
    expect(valuesOf(copy)).toEqual(values);
    expect(valuesOf(clone)).toEqual(values);
    expect(Object.keys(clone)).toEqual(Object.keys(copy));
    expect(copy.value.data.length).toBe(values.join("").length);
    const columns = ["offsets", "timestamps", "key", "value", "headers", "runs"] as const;
    for (const name of columns) expect(code(() => batch[name])).toBe("kafka.batch_over");
    for (const name of ["offsets", "data", "validity", "nullCount"] as const) {
      expect(code(() => column[name])).toBe("kafka.batch_over");
    }
    expect(code(() => (batch as ConsumerBatch).copy())).toBe("kafka.batch_over");
    expect(arrays.map((a) => a.length)).toEqual([0, 0, 0, 0, 0]);
  }
});

test("who sends a batch's memory away to a Worker reads the next ones all the same", async () => {
  const b = new ProducerBench(10);
  const records = Array.from({ length: 4 }, (_, i) => ({
    key: i === 2 ? null : `k${i}`,
    value: i === 3 ? null : `v${i}`,
    headers: [["h", "x"]] as [string, string][],
  }));
  for (let i = 0; i < 20; i++) b.cluster.append("t", 0, buildBatch({ records }));
  const consumer = consumerOf(b, { partition_max_bytes: "1KiB" });
  const seen: RawBatch[] = [];
  let rows = 0;
  const reading = async () => {
    for await (const batch of consumer.batches(b.signal)) {
      const { offsets, timestamps, key, value, headers, runs } = batch;
      const columns = [key, value, headers.keys, headers.values].flatMap((c) => [
        c.offsets,
        c.data,
        c.validity,
      ]);
      const arrays = [offsets, timestamps, headers.offsets, ...columns, ...Object.values(runs)];
      const transfer = arrays.flatMap((a) => (ArrayBuffer.isView(a) ? [a.buffer as ArrayBuffer] : []));
      seen.push(structuredClone(batch, { transfer }));
      rows += batch.rows;
      if (rows >= 80) break;
    }
  };
  await b.run(reading());
  expect(seen.length).toBeGreaterThan(1);
  for (const batch of seen) {
    expect(valuesOf(batch)).toEqual(
      Array.from({ length: batch.rows }, (_, i) => ["v0", "v1", "v2", ""][i % 4]!),
    );
    expect(batch.key.nullCount).toBe(batch.rows / 4);
    expect(batch.key.validity[0]).toBe(0b10111011);
    expect(batch.value.validity[0]).toBe(0b01110111);
    expect(batch.headers.entries).toBe(batch.rows);
    expect(batch.headers.offsets[batch.rows]).toBe(batch.rows);
    expect(batch.runs.end[batch.runs.count - 1]).toBe(batch.rows);
  }
});

test("a commit is told once an interval, and what is left when the loop ends", async () => {
  const b = new ProducerBench(11);
  fill(b, 0, 0, 400);
  const source = { group: "g", partition_max_bytes: "1KiB" };
  let batches = 0;
  const some = async () => {
    for await (const batch of consumerOf(b, source).batches(b.signal)) {
      if (batch.span.next >= 400n) break;
      batches++;
    }
  };
  await b.run(some());
  expect(batches).toBeGreaterThan(5);
  expect(b.cluster.requests("OffsetCommit").length).toBe(2);
  const committed = b.cluster.committed("g", "t", 0)!.offset;
  expect(committed).toBeGreaterThan(0n);
  // Of the batch in hand nothing was told.
  const rest = await b.run(read(consumerOf(b, source), b.signal, 400 - Number(committed)));
  expect(rest[0]).toEqual(wanted(0, Number(committed), 400));
});

test("with an interval of 0 a batch is committed before the next one comes", async () => {
  const b = new ProducerBench(12);
  fill(b, 0, 0, 60);
  const consumer = consumerOf(b, { group: "g", partition_max_bytes: "1KiB" }, { commitIntervalMs: 0 });
  let done = 0n;
  const reading = async () => {
    for await (const { span } of consumer.batches(b.signal)) {
      expect(b.cluster.committed("g", "t", 0)?.offset ?? 0n).toBe(done);
      done = span.next;
      if (done === 60n) break;
    }
  };
  await b.run(reading());
});

test("a caller that never waits leaves turns to timers and sockets", async () => {
  const b = new ProducerBench(13);
  fill(b, 0, 0, 300);
  const chance = b.chance.fork();
  let now = 0;
  let turns = 0;
  // A clock on which every look takes 30 ms.
  const slow = {
    now: () => b.clock.now(),
    monotonic: () => (now += 30),
    after: (ms: number, fn: () => void) => {
      if (ms === 0) turns++;
      return b.clock.after(ms, fn);
    },
  };
  const settings = consumerSettings({
    bootstrap: b.cluster.bootstrap,
    topics: ["t"],
    partition_max_bytes: "1KiB",
  });
  const net = memoryNet(b.cluster, { clock: b.clock, chance });
  const consumer = new KafkaConsumer(settings, {
    net,
    clock: slow,
    chance,
    crypto: systemSaslCrypto,
    codecs,
  });
  await b.run(read(consumer, b.signal, 300));
  expect(turns).toBeGreaterThan(2);
});

test("what was done is told before its partition goes, however long the interval is", async () => {
  const b = new ProducerBench(14, { brokers: 2 });
  const source = { group: "g", group_protocol: "classic", partition_max_bytes: "1KiB" };
  const rarely = { commitIntervalMs: 3_600_000 };
  const life = new AbortController();
  const seen: string[][] = [[], [], []];
  for (let p = 0; p < 3; p++) fill(b, p, 0, 100);
  const one = read(consumerOf(b, source, rarely), life.signal, Number.POSITIVE_INFINITY, seen);
  await b.time.runUntil(() => seen.flat().length >= 300, b.time.nowMs + 60_000);
  const two = read(consumerOf(b, source, rarely), life.signal, Number.POSITIVE_INFINITY, seen);
  await b.time.runUntil(() => b.cluster.classicGroup("g").members.length === 2, b.time.nowMs + 60_000);
  for (let p = 0; p < 3; p++) fill(b, p, 100, 20);
  await b.time.runUntil(() => false, b.time.nowMs + 30_000);
  life.abort();
  await b.run(Promise.all([one, two]));
  expect(seen).toEqual([wanted(0, 0, 120), wanted(1, 0, 120), wanted(2, 0, 120)]);
});

/** Goal: the test broker's Fetch behaves as a leader of Kafka does. Method: raw requests in memory on a clock of the test. */
import { describe, expect, test } from "bun:test";
import { ERROR } from "../../../src/adapters/kafka/wire/errors.ts";
import type { FetchRequest } from "../../../src/adapters/kafka/wire/messages/fetch.ts";
import type { Draft } from "../../../src/adapters/kafka/wire/protocol.ts";
import { buildBatch } from "./batch-builder.ts";
import type { FakeCluster } from "./cluster.ts";
import { type World, world } from "./direct-client.ts";

const batch = (values: number, bytes = 10) =>
  buildBatch({ records: Array.from({ length: values }, () => ({ value: "x".repeat(bytes) })) });

interface Ask {
  readonly offset?: bigint;
  readonly partitions?: readonly number[];
  readonly maxBytes?: number;
  readonly partitionMaxBytes?: number;
  readonly minBytes?: number;
  readonly maxWaitMs?: number;
  readonly committed?: boolean;
  readonly epoch?: number;
  readonly lastEpoch?: number;
  readonly session?: readonly [id: number, epoch: number];
  readonly topicId?: string;
  readonly forget?: readonly number[];
}

function request(ask: Ask): Draft<FetchRequest> {
  const named = ask.topicId === undefined ? { topic: "t" } : { topicId: ask.topicId };
  const partitions = (ask.partitions ?? [0]).map((partition) => ({
    partition,
    fetchOffset: ask.offset ?? 0n,
    partitionMaxBytes: ask.partitionMaxBytes ?? 1 << 20,
    currentLeaderEpoch: ask.epoch ?? -1,
    lastFetchedEpoch: ask.lastEpoch ?? -1,
  }));
  return {
    maxWaitMs: ask.maxWaitMs ?? 0,
    minBytes: ask.minBytes ?? 1,
    maxBytes: ask.maxBytes ?? 1 << 24,
    isolationLevel: ask.committed ? 1 : 0,
    sessionId: ask.session?.[0] ?? 0,
    sessionEpoch: ask.session?.[1] ?? -1,
    topics: partitions.length === 0 ? [] : [{ ...named, partitions }],
    forgottenTopicsData: ask.forget === undefined ? [] : [{ ...named, partitions: ask.forget }],
  };
}

const fetch = ({ client }: World, ask: Ask, version = 12) => client.ask("Fetch", version, request(ask));
const first = (w: World, ask: Ask, version = 12) => fetch(w, ask, version).responses[0]!.partitions[0]!;

/** Base offsets of the whole batches in the bytes, and how many bytes are left over. */
function bases(records: Uint8Array | null): { bases: number[]; rest: number } {
  const found: number[] = [];
  const bytes = records ?? new Uint8Array(0);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 0;
  while (bytes.length - at >= 12 && 12 + view.getInt32(at + 8) <= bytes.length - at) {
    found.push(Number(view.getBigInt64(at)));
    at += 12 + view.getInt32(at + 8);
  }
  return { bases: found, rest: bytes.length - at };
}

function fill(cluster: FakeCluster, batches: number, partition = 0): void {
  for (let i = 0; i < batches; i++) cluster.append("t", partition, batch(5));
}

describe("what is read", () => {
  test("from the batch that holds the offset, with watermark, stable offset and log start", () => {
    const w = world();
    fill(w.cluster, 3);
    w.cluster.advanceLogStart("t", 0, 2n);
    const p = first(w, { offset: 7n });
    expect(bases(p.records)).toEqual({ bases: [5, 10], rest: 0 });
    expect([p.highWatermark, p.lastStableOffset, p.logStartOffset, p.errorCode]).toEqual([15n, 15n, 2n, 0]);
    expect(p.abortedTransactions).toBeNull();
  });

  test("nothing behind the high watermark", () => {
    const w = world();
    fill(w.cluster, 3);
    w.cluster.log("t", 0).heldWatermark = 10n;
    expect(bases(first(w, {}).records).bases).toEqual([0, 5]);
    expect(first(w, { offset: 12n }).errorCode).toBe(0);
  });

  test("an offset outside of the log is refused with no watermark", () => {
    const w = world();
    fill(w.cluster, 1);
    w.cluster.advanceLogStart("t", 0, 2n);
    for (const offset of [1n, 6n]) {
      const p = first(w, { offset });
      expect([p.errorCode, p.highWatermark]).toEqual([ERROR.OFFSET_OUT_OF_RANGE, -1n]);
    }
    expect(first(w, { offset: 5n }).errorCode).toBe(0);
  });

  test("raw bytes as they are, holes and offsets over 2^53 included", () => {
    const w = world();
    const base = 2n ** 53n + 1n;
    w.cluster.log("t", 0).appendRaw(Uint8Array.of(1, 2, 3), base, base + 5n);
    expect([...first(w, { offset: base + 4n }).records!]).toEqual([1, 2, 3]);
    expect([...first(w, { offset: 17n }).records!]).toEqual([1, 2, 3]);
    expect(first(w, { offset: base + 5n }).highWatermark).toBe(base + 5n);
  });
});

describe("limits (KIP-74)", () => {
  test("the last batch is cut at the partition's limit", () => {
    const w = world();
    fill(w.cluster, 3);
    const size = batch(5).length;
    const seen = bases(first(w, { partitionMaxBytes: 2 * size + 7 }).records);
    expect(seen).toEqual({ bases: [0, 5], rest: 7 });
  });

  test("a first batch over the limits comes whole, but only for one partition", () => {
    const w = world({}, 2);
    fill(w.cluster, 2, 0);
    fill(w.cluster, 2, 1);
    const [a, b] = fetch(w, { partitions: [0, 1], maxBytes: 1, partitionMaxBytes: 1 }).responses[0]!
      .partitions;
    expect(bases(a!.records)).toEqual({ bases: [0], rest: 0 });
    expect(b!.records!.length).toBe(0);
  });

  test("the response's limit counts over partitions", () => {
    const w = world({}, 2);
    fill(w.cluster, 1, 0);
    fill(w.cluster, 3, 1);
    const size = batch(5).length;
    const [a, b] = fetch(w, { partitions: [0, 1], maxBytes: 3 * size }).responses[0]!.partitions;
    expect([bases(a!.records).bases.length, bases(b!.records).bases.length]).toEqual([1, 2]);
  });
});

describe("long poll", () => {
  test("waits for min bytes and answers as soon as they are there", () => {
    const w = world();
    const size = batch(5).length;
    w.client.send("Fetch", 12, request({ maxWaitMs: 500, minBytes: size + 1 }));
    fill(w.cluster, 1);
    expect(w.client.answer("Fetch")).toBeNull();
    w.clock.advance(100);
    fill(w.cluster, 1);
    expect(bases(w.client.answer("Fetch")!.responses[0]!.partitions[0]!.records).bases).toEqual([0, 5]);
    expect(w.clock.waiting).toBe(0);
  });

  test("answers with what there is when the time is over, and not before", () => {
    const w = world();
    w.client.send("Fetch", 12, request({ maxWaitMs: 500 }));
    w.clock.advance(499);
    expect(w.client.answer("Fetch")).toBeNull();
    w.clock.advance(1);
    expect(w.client.answer("Fetch")!.responses[0]!.partitions[0]!.records!.length).toBe(0);
  });

  test("holds up later requests of the connection, as brokers answer in order", () => {
    const w = world();
    w.client.send("Fetch", 12, request({ maxWaitMs: 500 }));
    w.client.send("Metadata", 1, { topics: [] });
    expect(w.client.answers.length).toBe(0);
    w.clock.advance(500);
    expect(w.client.answers.length).toBe(2);
  });

  test("is given up with its connection", () => {
    const w = world();
    w.client.send("Fetch", 12, request({ maxWaitMs: 500 }));
    w.client.server.gone();
    expect(w.clock.waiting).toBe(0);
    fill(w.cluster, 1);
    expect(w.client.answers.length).toBe(0);
  });

  test("ends at once when the leader moves away", () => {
    const w = world({ brokers: 2 });
    w.client.send("Fetch", 16, request({ maxWaitMs: 500, topicId: w.cluster.topic("t").id, epoch: 0 }));
    w.cluster.moveLeader("t", 0, 2);
    const answer = w.client.answer("Fetch")!;
    const p = answer.responses[0]!.partitions[0]!;
    expect(p.errorCode).toBe(ERROR.NOT_LEADER_OR_FOLLOWER);
    expect(p.currentLeader).toEqual({ leaderId: 2, leaderEpoch: 1 });
    expect(answer.nodeEndpoints).toEqual([{ nodeId: 2, host: "127.0.0.1", port: 9093, rack: null }]);
  });
});

describe("epochs", () => {
  test("an older epoch is fenced, a newer one unknown", () => {
    const w = world();
    w.cluster.moveLeader("t", 0, 1);
    expect(first(w, { epoch: 0 }).errorCode).toBe(ERROR.FENCED_LEADER_EPOCH);
    expect(first(w, { epoch: 1 }).errorCode).toBe(0);
    expect(first(w, { epoch: 2 }).errorCode).toBe(ERROR.UNKNOWN_LEADER_EPOCH);
  });

  test("a client that has read past a truncation is told where its epoch ended", () => {
    const w = world();
    fill(w.cluster, 3); // epoch 0, offsets 0 to 14
    w.cluster.truncate("t", 0, 10n); // epoch 1 begins at 10
    const p = first(w, { offset: 15n, lastEpoch: 0 });
    expect(p.divergingEpoch).toEqual({ epoch: 0, endOffset: 10n });
    expect([p.errorCode, p.records!.length]).toEqual([0, 0]);
    expect(first(w, { offset: 10n, lastEpoch: 0 }).divergingEpoch.endOffset).toBe(-1n);
  });
});

describe("transactions", () => {
  const transactional = (producerId: bigint) =>
    buildBatch({
      records: [{ value: "t" }],
      transactional: true,
      producerId,
      producerEpoch: 0,
      baseSequence: 0,
    });

  test("readers of committed data stop at the first open transaction and get the aborted ones listed", () => {
    const w = world();
    w.cluster.append("t", 0, transactional(7n)); // 0
    w.cluster.append("t", 0, transactional(8n)); // 1
    w.cluster.endTransaction("t", 0, "abort", 7n); // 2
    const open = first(w, { committed: true });
    expect([open.lastStableOffset, open.highWatermark]).toEqual([1n, 3n]);
    expect(bases(open.records).bases).toEqual([0]);
    w.cluster.endTransaction("t", 0, "commit", 8n); // 3
    const done = first(w, { committed: true });
    expect(bases(done.records).bases).toEqual([0, 1, 2, 3]);
    expect(done.abortedTransactions).toEqual([{ producerId: 7n, firstOffset: 0n }]);
    expect(first(w, { committed: true, offset: 3n }).abortedTransactions).toEqual([]);
    expect(first(w, { committed: false }).abortedTransactions).toBeNull();
  });
});

describe("topic ids (KIP-516)", () => {
  test("from v13 on topics are named by id alone; a recreated topic has another", () => {
    const w = world();
    fill(w.cluster, 1);
    const topicId = w.cluster.topic("t").id;
    expect(first(w, { topicId }, 13).errorCode).toBe(0);
    w.cluster.recreateTopic("t");
    expect(w.cluster.topic("t").id).not.toBe(topicId);
    expect(first(w, { topicId }, 13).errorCode).toBe(ERROR.UNKNOWN_TOPIC_ID);
  });

  test("a cluster without ids knows none", () => {
    const w = world({ profile: "zero-topic-ids" });
    expect(first(w, { topicId: w.cluster.topic("t").id }, 13).errorCode).toBe(ERROR.UNKNOWN_TOPIC_ID);
    expect(first(w, {}, 12).errorCode).toBe(0);
  });

  test("by name below v13, with the older error", () => {
    const w = world();
    w.cluster.deleteTopic("t");
    expect(first(w, {}, 12).errorCode).toBe(ERROR.UNKNOWN_TOPIC_OR_PARTITION);
  });
});

describe("sessions (KIP-227)", () => {
  test("an incremental response leaves out what has no news", () => {
    const w = world({}, 2);
    fill(w.cluster, 1, 0);
    const opened = fetch(w, { partitions: [0, 1], session: [0, 0] });
    expect(opened.sessionId).toBeGreaterThan(0);
    expect(opened.responses[0]!.partitions.length).toBe(2);
    const id = opened.sessionId;
    // Partition 0 is told to go on at 5; nothing is new then.
    expect(fetch(w, { partitions: [0], offset: 5n, session: [id, 1] }).responses).toEqual([]);
    fill(w.cluster, 1, 1);
    const news = fetch(w, { partitions: [], session: [id, 2] });
    expect(news.sessionId).toBe(id);
    expect(news.responses[0]!.partitions.map((p) => p.partitionIndex)).toEqual([1]);
  });

  test("a moved log start and an error are news, and after an error the partition is told again", () => {
    const w = world();
    fill(w.cluster, 2);
    const id = fetch(w, { session: [0, 0], offset: 10n }).sessionId;
    w.cluster.advanceLogStart("t", 0, 5n);
    expect(fetch(w, { partitions: [], session: [id, 1] }).responses[0]!.partitions[0]!.logStartOffset).toBe(
      5n,
    );
    w.cluster.failPartition("t", 0, ERROR.NOT_LEADER_OR_FOLLOWER, { api: "Fetch" });
    expect(fetch(w, { partitions: [], session: [id, 2] }).responses[0]!.partitions[0]!.errorCode).toBe(6);
    expect(fetch(w, { partitions: [], session: [id, 3] }).responses[0]!.partitions[0]!.errorCode).toBe(0);
    expect(fetch(w, { partitions: [], session: [id, 4] }).responses).toEqual([]);
  });

  test("wrong epochs, unknown ids and another way to name topics are refused for the whole request", () => {
    const w = world();
    const id = fetch(w, { session: [0, 0] }).sessionId;
    expect(fetch(w, { partitions: [], session: [id, 2] }).errorCode).toBe(ERROR.INVALID_FETCH_SESSION_EPOCH);
    expect(fetch(w, { partitions: [], session: [id + 1, 1] }).errorCode).toBe(
      ERROR.FETCH_SESSION_ID_NOT_FOUND,
    );
    const topicId = w.cluster.topic("t").id;
    expect(fetch(w, { topicId, session: [id, 1] }, 13).errorCode).toBe(ERROR.FETCH_SESSION_TOPIC_ID_ERROR);
    w.cluster.broker(1).sessions.evictAll();
    expect(fetch(w, { partitions: [], session: [id, 1] }).errorCode).toBe(ERROR.FETCH_SESSION_ID_NOT_FOUND);
  });

  test("forgotten partitions are read no more; an empty session is closed", () => {
    const w = world({}, 2);
    const id = fetch(w, { partitions: [0, 1], session: [0, 0] }).sessionId;
    fill(w.cluster, 1, 0);
    fill(w.cluster, 1, 1);
    const left = fetch(w, { partitions: [], session: [id, 1], forget: [0] });
    expect(left.responses[0]!.partitions.map((p) => p.partitionIndex)).toEqual([1]);
    expect(fetch(w, { partitions: [], session: [id, 2], forget: [1] }).sessionId).toBe(0);
    expect(w.cluster.broker(1).sessions.open).toEqual([]);
  });

  test("epoch -1 closes the session, epoch 0 opens another in its place", () => {
    const w = world();
    const id = fetch(w, { session: [0, 0] }).sessionId;
    const next = fetch(w, { session: [id, 0] }).sessionId;
    expect(w.cluster.broker(1).sessions.open.map((s) => s.id)).toEqual([next]);
    expect(fetch(w, { session: [next, -1] }).sessionId).toBe(0);
    expect(w.cluster.broker(1).sessions.open).toEqual([]);
  });

  test("without a free slot a client gets no session; below v7 there are none", () => {
    const w = world({ sessionSlots: 1 });
    expect(fetch(w, { session: [0, 0] }).sessionId).toBeGreaterThan(0);
    expect(fetch(w, { session: [0, 0] }).sessionId).toBe(0);
    expect(fetch(w, { session: [0, 0] }, 6).sessionId).toBe(0);
  });

  test("what was served moves behind the others", () => {
    const w = world({}, 2);
    fill(w.cluster, 4, 0);
    fill(w.cluster, 4, 1);
    const id = fetch(w, { partitions: [0, 1], session: [0, 0], maxBytes: 1 }).sessionId;
    const order = [1, 2, 3].map(
      (epoch) =>
        fetch(w, { partitions: [], session: [id, epoch], maxBytes: 1 }).responses[0]!.partitions.find(
          (p) => p.records!.length > 0,
        )!.partitionIndex,
    );
    expect(order).toEqual([0, 1, 0]);
  });
});

/**
 * Goal: sequences, order and outcomes hold whatever a broker answers and however late. Method: the machine alone, over
 * a time that the test moves and answers that the test makes up; each case names the fault that it stands for.
 */
import { expect, test } from "bun:test";
import { libduckdbPath } from "../../../../src/adapters/duckdb/embedded.ts";
import { loadNative } from "../../../../src/adapters/duckdb/native.ts";
import type { PendingBatch } from "../../../../src/adapters/kafka/producer/batch.ts";
import { columnsOf } from "../../../../src/adapters/kafka/producer/columns.ts";
import { Delivery } from "../../../../src/adapters/kafka/producer/delivery.ts";
import { ProduceMachine } from "../../../../src/adapters/kafka/producer/machine.ts";
import type { ProducerRules } from "../../../../src/adapters/kafka/producer/machine-ports.ts";
import { rulesOf } from "../../../../src/adapters/kafka/producer/options.ts";
import { sequenceAfter } from "../../../../src/adapters/kafka/producer/partition-queue.ts";
import { produceVerdict } from "../../../../src/adapters/kafka/producer/verdict.ts";
import { ERROR } from "../../../../src/adapters/kafka/wire/errors.ts";
import type { Failure } from "../../../../src/core/failure/failure.ts";

const codecs = loadNative(libduckdbPath());

class Bench {
  now = 0;
  readonly spoiled: string[] = [];
  readonly machine: ProduceMachine;
  #offset = 0n;

  /** `known`: the broker has confirmed something of this producer before. */
  constructor(rules: Partial<ProducerRules> = {}, known = true) {
    const all = { ...rulesOf({}), lingerMs: 0, ...rules };
    this.machine = new ProduceMachine(all, codecs, {
      spoiled: (f, fatal) => this.spoiled.push(`${f.code}${fatal ? " fatal" : ""}`),
      settled: () => {},
      pause: () => 100,
    });
    if (all.idempotent) this.machine.identify({ id: 9n, epoch: 0 });
    if (known) this.machine.queue("t", 0).known(0);
  }

  give(...values: string[]): Delivery {
    const delivery = new Delivery();
    const columns = columnsOf(values.map((value) => ({ value })));
    for (let i = 0; i < columns.rows; i++)
      this.machine.append(this.machine.queue("t", 0), columns, i, delivery, this.now, 0);
    delivery.complete();
    return delivery;
  }

  /** The next batch to the broker, null if there is none now. */
  take(): PendingBatch | null {
    return this.machine.take([...this.machine.active()], this.now)[0] ?? null;
  }

  answer(batch: PendingBatch, errorCode: number, more: { offset?: bigint; logStart?: bigint } = {}) {
    const baseOffset = errorCode === 0 ? (more.offset ?? this.#offset) : -1n;
    if (errorCode === 0) this.#offset = baseOffset + BigInt(batch.count);
    const answer = {
      errorCode,
      baseOffset,
      logStartOffset: more.logStart ?? 0n,
      errorMessage: null,
      recordErrors: [],
    };
    return this.machine.answered(batch, answer, this.now);
  }
}

/** Producer id, epoch, first sequence and count, as they stand in the bytes. */
function stampOf(batch: PendingBatch | null) {
  const view = new DataView(batch!.bytes!.buffer, batch!.bytes!.byteOffset);
  return {
    id: view.getBigInt64(43),
    epoch: view.getInt16(51),
    sequence: view.getInt32(53),
    count: view.getInt32(57),
  };
}

const codeOf = (d: Delivery) =>
  d.done.then(
    () => "written",
    (f: Failure) => f.code,
  );

test("a batch waits for its linger time, and not when somebody waits for it", () => {
  const b = new Bench({ lingerMs: 5 });
  b.give("a");
  expect([b.take(), b.machine.wakeAt(0)]).toEqual([null, 5]);
  const release = b.machine.hurry();
  b.give("b");
  expect(stampOf(b.take()).count).toBe(2);
  release();
  release();
  b.give("c");
  expect(b.take()).toBeNull();
  b.now = 5;
  expect(stampOf(b.take())).toEqual({ id: 9n, epoch: 0, sequence: 2, count: 1 });
});

test("a full batch is closed, and a call that spans several gets all its offsets", async () => {
  const b = new Bench({ batchBytes: 200 });
  const d = b.give(..."abcdefgh".split("").map((c) => c.repeat(60)));
  const sizes: number[] = [];
  for (let batch = b.take(); batch !== null; batch = b.take()) {
    sizes.push(batch.count);
    b.answer(batch, 0);
  }
  expect(sizes.reduce((x, y) => x + y)).toBe(8);
  expect(sizes.length).toBeGreaterThan(2);
  expect(await d.done).toEqual([{ partition: 0, offset: 0n, rows: 8 }]);
  expect([b.machine.held, b.machine.idle]).toEqual([0, true]);
});

test("at most five batches of a partition are under way", () => {
  const b = new Bench();
  const taken = Array.from({ length: 6 }, (_, i) => {
    b.give(`${i}`);
    return b.take();
  });
  expect(taken.map((t) => t?.sequence ?? -1)).toEqual([0, 1, 2, 3, 4, -1]);
  b.answer(taken[0]!, 0);
  expect(b.take()!.sequence).toBe(5);
});

test("a broker that does not know the producer takes any first sequence: until it has confirmed one, one is under way", () => {
  const b = new Bench({}, false);
  b.give("a");
  const first = b.take()!;
  b.give("b");
  expect(b.take()).toBeNull();
  b.answer(first, ERROR.REQUEST_TIMED_OUT);
  b.now = 100;
  expect(b.take()).toBe(first);
  expect(b.take()).toBeNull();
  b.answer(first, 0);
  // With the second one that waited.
  b.give("c");
  const [second] = [b.take()!, b.give("d")];
  expect([second.sequence, second.count, b.take()!.sequence]).toEqual([1, 2, 3]);
});

test("after a long silence, and under another producer id, it is the same again", () => {
  const b = new Bench();
  const two = () => {
    b.give("a");
    const first = b.take()!;
    b.give("b");
    const second = b.take();
    b.answer(first, 0);
    const rest = second ?? b.take()!;
    b.answer(rest, 0);
    return second !== null;
  };
  expect(two()).toBe(true);
  b.now = 600_000;
  expect([two(), two()]).toEqual([false, true]);
  b.machine.identify({ id: 10n, epoch: 0 });
  expect([two(), two()]).toEqual([false, true]);
});

test("a lost connection: the same bytes again in their order, one at a time until one is written", () => {
  const b = new Bench();
  const sent = ["a", "b", "c"].map((v) => {
    b.give(v);
    return b.take()!;
  });
  const bytes = sent.map((s) => Buffer.from(s.bytes!).toString("hex"));
  // The answers come in any order.
  for (const i of [1, 2, 0]) b.machine.lost(sent[i]!, b.now);
  expect(b.take()).toBeNull();
  b.now = 100;
  const again = b.take()!;
  expect([again === sent[0], b.take()]).toEqual([true, null]);
  b.answer(again, ERROR.DUPLICATE_SEQUENCE_NUMBER);
  const rest = [b.take()!, b.take()!];
  expect(rest).toEqual([sent[1]!, sent[2]!]);
  expect([again, ...rest].map((s) => Buffer.from(s.bytes ?? []).toString("hex")).slice(1)).toEqual(
    bytes.slice(1),
  );
});

test("no record of a batch that may have been written is stamped anew (franz-go 1217, librdkafka 4736)", async () => {
  const b = new Bench({ deliveryTimeoutMs: 1_000 });
  const first = b.give("a");
  const one = b.take()!;
  const second = b.give("b");
  const two = b.take()!;
  b.machine.lost(one, 0);
  b.machine.lost(two, 0);
  b.now = 1_000;
  b.machine.expire(b.now);
  expect(await codeOf(first)).toBe("kafka.delivery_unknown");
  expect(await codeOf(second)).toBe("kafka.delivery_unknown");
  // A third one follows in sequence: the broker knows whether there is a hole.
  b.give("c");
  expect(stampOf(b.take())).toMatchObject({ epoch: 0, sequence: 2 });
});

test("two calls in one batch are told their own offsets", async () => {
  const b = new Bench();
  const [first, second] = [b.give("a", "b"), b.give("c")];
  b.answer(b.take()!, 0, { offset: 40n });
  expect(await first.done).toEqual([{ partition: 0, offset: 40n, rows: 2 }]);
  expect(await second.done).toEqual([{ partition: 0, offset: 42n, rows: 1 }]);
});

test("a hole after a batch that was given up: the next epoch, from 0, without a loss reported", async () => {
  const b = new Bench({ deliveryTimeoutMs: 1_000 });
  b.give("confirmed");
  b.answer(b.take()!, 0, { offset: 5n });
  b.give("a");
  b.machine.lost(b.take()!, 0);
  b.now = 1_000;
  b.machine.expire(b.now);
  const d = b.give("b");
  b.answer(b.take()!, ERROR.OUT_OF_ORDER_SEQUENCE_NUMBER);
  b.now = 2_100 - 1_000;
  const again = b.take()!;
  expect(stampOf(again)).toEqual({ id: 9n, epoch: 1, sequence: 0, count: 1 });
  b.answer(again, 0, { offset: 7n });
  expect(await d.done).toEqual([{ partition: 0, offset: 7n, rows: 1 }]);
});

test("out of order for one behind another that failed is no loss: both again, with their sequences", () => {
  const b = new Bench();
  b.give("a");
  const one = b.take()!;
  b.give("b");
  const two = b.take()!;
  b.answer(one, ERROR.REQUEST_TIMED_OUT);
  b.answer(two, ERROR.OUT_OF_ORDER_SEQUENCE_NUMBER);
  b.now = 200;
  expect([b.take(), b.take()]).toEqual([one, null]);
  b.answer(one, 0);
  expect(b.take()).toBe(two);
  expect(stampOf(two)).toMatchObject({ epoch: 0, sequence: 1 });
});

test("out of order although what came before was confirmed: the broker lost it, and that is said", async () => {
  const b = new Bench();
  b.give("a");
  b.answer(b.take()!, 0, { offset: 41n });
  const lost = b.give("b");
  b.answer(b.take()!, ERROR.OUT_OF_ORDER_SEQUENCE_NUMBER);
  expect(await codeOf(lost)).toBe("kafka.sequence_lost");
  b.now = 500;
  b.give("c");
  expect(stampOf(b.take())).toMatchObject({ epoch: 1, sequence: 0 });
});

test("a producer that retention made forgotten goes on under the next epoch (KIP-360)", async () => {
  const b = new Bench();
  b.give("a");
  b.answer(b.take()!, 0, { offset: 41n });
  const d = b.give("b");
  b.answer(b.take()!, ERROR.UNKNOWN_PRODUCER_ID, { logStart: 42n });
  b.now = 100;
  const again = b.take()!;
  expect(stampOf(again)).toMatchObject({ epoch: 1, sequence: 0 });
  b.answer(again, 0, { offset: 42n });
  expect(await codeOf(d)).toBe("written");
});

test("epochs run out at 32767: another producer id is asked for", () => {
  const b = new Bench();
  b.machine.identify({ id: 9n, epoch: 32767 });
  b.give("a");
  b.answer(b.take()!, ERROR.INVALID_PRODUCER_EPOCH);
  b.now = 100;
  expect([b.machine.identity, b.take()]).toEqual([null, null]);
  b.machine.identify({ id: 10n, epoch: 0 });
  expect(stampOf(b.take())).toMatchObject({ id: 10n, epoch: 0, sequence: 0 });
});

test("sequences go on at 0 behind 2^31 - 1 (franz-go 1.5.3)", () => {
  expect(sequenceAfter(0x7fffffff, 1)).toBe(0);
  expect(sequenceAfter(0x7ffffffe, 5)).toBe(3);
});

test("a topic that is unknown for a while keeps its sequence (librdkafka 1.9.0)", () => {
  const b = new Bench();
  b.give("a");
  b.answer(b.take()!, 0);
  b.give("b");
  const batch = b.take()!;
  expect(b.answer(batch, ERROR.UNKNOWN_TOPIC_OR_PARTITION)).toBe("refresh");
  b.now = 100;
  expect(b.take()).toBe(batch);
  expect(stampOf(batch)).toMatchObject({ epoch: 0, sequence: 1 });
});

test("too large: halves with the sequences of the whole, and one record that is too large fails", async () => {
  const b = new Bench();
  const d = b.give("a", "b", "c", "d", "e");
  b.answer(b.take()!, ERROR.MESSAGE_TOO_LARGE);
  const first = b.take()!;
  expect(stampOf(first)).toMatchObject({ sequence: 0, count: 2 });
  b.answer(first, 0, { offset: 10n });
  const second = b.take()!;
  expect(stampOf(second)).toMatchObject({ sequence: 2, count: 3 });
  b.answer(second, ERROR.MESSAGE_TOO_LARGE);
  const third = b.take()!;
  b.answer(third, ERROR.MESSAGE_TOO_LARGE);
  const fourth = b.take()!;
  b.answer(fourth, 0, { offset: 12n });
  expect(await codeOf(d)).toBe("kafka.record_too_large");
  expect(b.machine.idle).toBe(true);
});

test("a record above the limit is refused before it is taken", () => {
  const b = new Bench({ maxRecordBytes: 100 });
  expect(() => b.give("x".repeat(101))).toThrow(expect.objectContaining({ code: "kafka.record_too_large" }));
  for (const timestamp of [2 ** 60, Number.NaN, 1.5])
    expect(() => columnsOf([{ value: "", timestamp }])).toThrow(
      expect.objectContaining({ code: "kafka.record_refused" }),
    );
});

test("times too far apart for one batch stand in two", () => {
  const b = new Bench();
  const columns = columnsOf([
    { value: "a", timestamp: -(2 ** 52) },
    { value: "b", timestamp: 2 ** 52 },
  ]);
  const d = new Delivery();
  for (let i = 0; i < 2; i++) b.machine.append(b.machine.queue("t", 0), columns, i, d, 0, 0);
  expect([b.take()!.count, b.take()!.count]).toEqual([1, 1]);
});

test("without sequences one batch at a time is under way, so that none overtakes (sarama 3644)", () => {
  const b = new Bench({ idempotent: false, acks: 1 });
  b.give("a");
  const one = b.take()!;
  b.give("b");
  expect(b.take()).toBeNull();
  b.machine.lost(one, 0);
  b.now = 100;
  expect(b.take()).toBe(one);
  expect(stampOf(one)).toMatchObject({ id: -1n, epoch: -1, sequence: -1 });
});

test("acks 0: handed over is all that is known", async () => {
  const b = new Bench({ idempotent: false, acks: 0 });
  const d = b.give("a");
  b.machine.handedOver(b.take()!, 0);
  expect(await d.done).toEqual([{ partition: 0, offset: -1n, rows: 1 }]);
});

test("never sent in time: nothing was written, and that is what it says", async () => {
  const b = new Bench({ deliveryTimeoutMs: 1_000 });
  const d = b.give("a");
  expect(b.machine.wakeAt(0)).toBe(1_000);
  b.now = 1_000;
  expect(b.take()).toBeNull();
  expect(await codeOf(d)).toBe("kafka.delivery_timeout");
});

test("a failed batch spoils its transaction, a sequence that is refused too: no epoch is raised inside of it (librdkafka 3575)", async () => {
  const b = new Bench({ transactional: true });
  b.give("a");
  b.answer(b.take()!, 0);
  const d = b.give("b");
  b.answer(b.take()!, ERROR.OUT_OF_ORDER_SEQUENCE_NUMBER);
  expect(await codeOf(d)).toBe("kafka.transaction_failed");
  b.give("c");
  b.answer(b.take()!, ERROR.PRODUCER_FENCED);
  expect(b.spoiled).toEqual(["kafka.transaction_failed", "kafka.producer_fenced fatal"]);
});

test("what was not sent can be dropped, what was sent cannot", async () => {
  const b = new Bench();
  const sent = b.give("a");
  const batch = b.take()!;
  const waiting = b.give("b");
  const why = { code: "kafka.transaction_failed" } as Failure;
  b.machine.dropUnsent(why);
  b.answer(batch, 0);
  expect([await codeOf(sent), await codeOf(waiting)]).toEqual(["written", "kafka.transaction_failed"]);
  const third = b.give("c");
  b.take();
  b.machine.dropAll(why);
  expect([await codeOf(third), b.machine.held, b.machine.idle]).toEqual([
    "kafka.transaction_failed",
    0,
    true,
  ]);
});

test("a record that the broker names is named", async () => {
  const b = new Bench();
  const d = b.give("a", "b");
  const recordErrors = [{ batchIndex: 1, batchIndexErrorMessage: "no schema" }];
  const answer = {
    errorCode: ERROR.INVALID_RECORD,
    baseOffset: -1n,
    logStartOffset: 0n,
    errorMessage: null,
    recordErrors,
  };
  b.machine.answered(b.take()!, answer, 0);
  expect(d.done).rejects.toMatchObject({
    code: "kafka.record_refused",
    at: "t/0",
    message: expect.stringContaining("record 1 of 2: no schema"),
  });
  await codeOf(d);
});

test.each([
  [ERROR.NONE, "written"],
  [ERROR.REQUEST_TIMED_OUT, "again"],
  [20, "again"], // NOT_ENOUGH_REPLICAS_AFTER_APPEND: it may be there
  [ERROR.NOT_LEADER_OR_FOLLOWER, "refresh"],
  [ERROR.CORRUPT_MESSAGE, "again"],
  [ERROR.TOPIC_AUTHORIZATION_FAILED, "refused"],
  [ERROR.TRANSACTION_ABORTABLE, "abortable"],
  [4711, "refused"],
] as const)("error %i means %s", (code, verdict) => {
  expect(produceVerdict(code)).toBe(verdict);
});

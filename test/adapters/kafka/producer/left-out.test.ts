/**
 * Goal: records that a broker never takes are left out of a transaction where whoever sent them allows it, exactly these; all
 * others are written once, in order, under sequences without a hole. Method: the machine alone against a partition with a
 * broker's rules (refuse what is unfit before looking at the sequence, then the sequence, then repetitions), answers that
 * come late or are lost, over seeds.
 */
import { describe, expect, test } from "bun:test";
import { libduckdbPath } from "../../../../src/adapters/duckdb/embedded.ts";
import { loadNative } from "../../../../src/adapters/duckdb/native.ts";
import type { PendingBatch } from "../../../../src/adapters/kafka/producer/batch.ts";
import { columnsOf } from "../../../../src/adapters/kafka/producer/columns.ts";
import { Delivery } from "../../../../src/adapters/kafka/producer/delivery.ts";
import { ProduceMachine } from "../../../../src/adapters/kafka/producer/machine.ts";
import { rulesOf } from "../../../../src/adapters/kafka/producer/options.ts";
import { ERROR } from "../../../../src/adapters/kafka/wire/errors.ts";
import type { Failure } from "../../../../src/core/failure/failure.ts";
import { SeededChance } from "../../../sim/chance.ts";

const INVALID_TIMESTAMP = 32;
const codecs = loadNative(libduckdbPath());

/** One partition of a broker that knows nothing of the producer yet. */
class Log {
  readonly written: string[] = [];
  readonly #bases = new Map<number, bigint>();
  #expected = 0;

  append(batch: PendingBatch, unfit: number): number {
    const { buffer, byteOffset, length } = batch.bytes!;
    const view = new DataView(buffer, byteOffset, length);
    const sequence = view.getInt32(53);
    const texts =
      Buffer.from(buffer, byteOffset, length)
        .toString("latin1")
        .match(/<[a-z]+\d+>/g) ?? [];
    if (texts.some((t) => t.startsWith("<bad"))) return unfit;
    if (this.#bases.has(sequence)) return ERROR.DUPLICATE_SEQUENCE_NUMBER;
    if (sequence !== this.#expected) return ERROR.OUT_OF_ORDER_SEQUENCE_NUMBER;
    this.#bases.set(sequence, BigInt(this.written.length));
    this.written.push(...texts);
    this.#expected = sequence + batch.count;
    return ERROR.NONE;
  }
}

interface Told {
  readonly spoiled: string[];
  readonly leftOut: string[];
  failure: Failure | null;
}

/** `lose`: of 100 answers to batches without such a record. `allowed`: so many may be left out. */
function run(
  seed: number,
  texts: readonly string[],
  over: { lose?: number; unfit?: number; allowed?: number } = {},
) {
  const { lose = 0, unfit = ERROR.MESSAGE_TOO_LARGE, allowed = Number.POSITIVE_INFINITY } = over;
  const chance = new SeededChance(seed);
  const log = new Log();
  const told: Told = { spoiled: [], leftOut: [], failure: null };
  const rules = { ...rulesOf({ transactionalId: "x", batchBytes: 200 + (seed % 5) * 150 }), lingerMs: 0 };
  const machine = new ProduceMachine(rules, codecs, {
    spoiled: (f) => told.spoiled.push(f.code),
    settled: () => {},
    pause: () => 1,
  });
  machine.identify({ id: 9n, epoch: 0 });
  const queue = machine.queue("t", 0);
  let now = 0;
  const deliveries: Delivery[] = [];
  const inFlight: PendingBatch[] = [];
  for (let from = 0; from < texts.length; from += 7) {
    const part = texts.slice(from, from + 7);
    const delivery = new Delivery((row) => {
      if (told.leftOut.length >= allowed) return false;
      told.leftOut.push(part[row]!);
      return true;
    });
    const columns = columnsOf(part.map((value) => ({ value })));
    for (let i = 0; i < part.length; i++) machine.append(queue, columns, i, delivery, now, 0);
    delivery.complete();
    deliveries.push(delivery);
  }
  const waiting: { batch: PendingBatch; code: number | null }[] = [];
  for (let step = 0; step < 20_000 && !machine.idle && told.spoiled.length === 0; step++) {
    now++;
    const batch = chance.next() < 0.7 ? machine.take([...machine.active()], now)[0] : undefined;
    if (batch !== undefined) {
      inFlight.push(batch);
      const code = log.append(batch, unfit);
      waiting.push({ batch, code: code !== unfit && chance.next() * 100 < lose ? null : code });
    }
    // In the order of the requests, as one connection answers them.
    const answered = chance.next() < 0.5 ? waiting.shift() : undefined;
    if (answered === undefined) continue;
    const of = { baseOffset: 0n, logStartOffset: 0n, errorMessage: null, recordErrors: [] };
    if (answered.code === null) machine.lost(answered.batch, now);
    else machine.answered(answered.batch, { ...of, errorCode: answered.code }, now);
  }
  return { log, told, machine, deliveries };
}

const textsOf = (chance: SeededChance, count: number, bad: number): string[] =>
  Array.from({ length: count }, (_, i) => `${chance.next() * 100 < bad ? "<bad" : "<r"}${i}>`);

describe("records that are left out", () => {
  test.each<[string, number]>([
    ["too large", ERROR.MESSAGE_TOO_LARGE],
    ["without a key in a compacted topic", ERROR.INVALID_RECORD],
    ["with a time that the topic does not take", INVALID_TIMESTAMP],
  ])("%s: all others are written once and in order", async (_, unfit) => {
    for (let seed = 0; seed < 60; seed++) {
      const texts = textsOf(new SeededChance(seed + 1000), 60, 3 + (seed % 4) * 15);
      const { log, told, machine, deliveries } = run(seed, texts, { unfit, lose: (seed % 3) * 10 });
      // One may be told before another that stands before it: a request of theirs was answered first.
      expect({
        seed,
        ...told,
        leftOut: told.leftOut.toSorted(),
        idle: machine.idle,
        held: machine.held,
      }).toEqual({
        ...{ seed, spoiled: [], failure: null, idle: true, held: 0 },
        leftOut: texts.filter((t) => t.startsWith("<bad")).toSorted(),
      });
      expect(log.written).toEqual(texts.filter((t) => t.startsWith("<r")));
      const placed = await Promise.all(deliveries.map((d) => d.done));
      expect(placed.flat().reduce((n, p) => n + p.rows, 0)).toBe(log.written.length);
    }
  });

  test("one more than is allowed fails its call and spoils the transaction", async () => {
    const { told, deliveries } = run(3, ["<r0>", "<bad1>", "<r2>", "<bad3>"], { allowed: 1 });
    expect([told.leftOut, told.spoiled]).toEqual([["<bad1>"], ["kafka.record_too_large"]]);
    expect(await deliveries[0]!.done.catch((f: Failure) => f.code)).toBe("kafka.record_too_large");
  });

  test.each([
    ["its answer was lost", null, []],
    ["its leader moved", ERROR.NOT_LEADER_OR_FOLLOWER, []],
    ["it waited for replicas in vain", ERROR.REQUEST_TIMED_OUT, []],
    ["the transaction before was not over", ERROR.CONCURRENT_TRANSACTIONS, [0]],
  ])("what may have been written is not left out, however it is refused later: %s", (_, before, leaves) => {
    const machine = new ProduceMachine(rulesOf({ transactionalId: "x", lingerMs: 0 }), codecs, {
      spoiled: () => {},
      settled: () => {},
      pause: () => 1,
    });
    machine.identify({ id: 9n, epoch: 0 });
    const leftOut: number[] = [];
    const delivery = new Delivery((row) => leftOut.push(row) > 0);
    machine.append(machine.queue("t", 0), columnsOf([{ value: "a" }]), 0, delivery, 0, 0);
    const take = (now: number) => machine.take([...machine.active()], now)[0]!;
    const of = { baseOffset: -1n, logStartOffset: 0n, errorMessage: null, recordErrors: [] };
    if (before === null) machine.lost(take(0), 0);
    else machine.answered(take(0), { ...of, errorCode: before }, 0);
    machine.answered(take(10), { ...of, errorCode: ERROR.MESSAGE_TOO_LARGE }, 10);
    delivery.complete();
    expect([leftOut, machine.idle]).toEqual([leaves, true]);
    if (leaves.length === 0) expect(delivery.done).rejects.toMatchObject({ code: "kafka.record_too_large" });
  });

  test("a call that does not say so fails as a whole, as before", () => {
    const machine = new ProduceMachine(rulesOf({ transactionalId: "x", lingerMs: 0 }), codecs, {
      spoiled: () => {},
      settled: () => {},
      pause: () => 1,
    });
    machine.identify({ id: 9n, epoch: 0 });
    const delivery = new Delivery();
    const columns = columnsOf([{ value: "a" }, { value: "b" }]);
    for (let i = 0; i < 2; i++) machine.append(machine.queue("t", 0), columns, i, delivery, 0, 0);
    const batch = machine.take([...machine.active()], 0)[0]!;
    const of = { baseOffset: -1n, logStartOffset: 0n, errorMessage: null, recordErrors: [] };
    machine.answered(batch, { ...of, errorCode: ERROR.INVALID_RECORD }, 0);
    delivery.complete();
    expect(machine.idle).toBe(true);
    expect(delivery.done).rejects.toMatchObject({ code: "kafka.record_refused" });
  });
});

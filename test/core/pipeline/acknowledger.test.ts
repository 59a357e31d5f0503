/**
 * Goal: the source is told what is durable, one message at a time, nothing twice, and an outage of it costs neither
 * records nor a storm of retries. Method: the real ledger, a scripted source, simulated time.
 */
import { beforeEach, describe, expect, test } from "bun:test";
import { Ledger } from "../../../src/core/delivery/ledger.ts";
import { Failure } from "../../../src/core/failure/failure.ts";
import type { TwgEvent } from "../../../src/core/observe/events.ts";
import { Acknowledger } from "../../../src/core/pipeline/acknowledger.ts";
import { SimTime } from "../../sim/clock.ts";
import { FakeSource, Gate, key, span } from "./fakes.ts";

let time: SimTime;
let journal: string[];
let source: FakeSource;
let ledger: Ledger;
let events: TwgEvent[];
let acks: Acknowledger;

const settle = (ms = 0) => time.runUntil(() => false, time.nowMs + ms);
const down = () => new Failure("net.refused", "down");

function covered(partition: number, from: number, next: number): void {
  ledger.deliver(partition, 0, BigInt(from), BigInt(next));
  ledger.seal([span(partition, from, next)]);
  ledger.commit([span(partition, from, next)]);
}

beforeEach(() => {
  time = new SimTime();
  journal = [];
  events = [];
  source = new FakeSource(journal);
  ledger = new Ledger();
  for (const p of [0, 1])
    ledger.begin({ stream: p, key: key(p), position: 0n, acknowledged: null, covered: [] });
  acks = new Acknowledger({
    clock: time.clock(null),
    source,
    ledger,
    observer: { emit: (e) => void events.push(e) },
    hook: (point) => void journal.push(point),
  });
});

describe("an acknowledgement", () => {
  test("carries all streams that have come on, between its two points, and is told", async () => {
    covered(0, 0, 10);
    covered(1, 0, 3);
    acks.kick();
    await settle();
    expect(journal).toEqual(["before_acknowledge", "acknowledge 0@10 1@3", "after_acknowledge"]);
    expect(ledger.states().map((s) => s.acknowledged)).toEqual([10n, 3n]);
    expect(events).toMatchObject([
      {
        e: "source.acknowledged",
        marks: [
          { topic: "t", partition: 0, next: 10n },
          { partition: 1, next: 3n },
        ],
      },
    ]);
  });

  test("leaves out what the source does not read yet: it counts only once it was told (seed 405456)", async () => {
    covered(0, 0, 10);
    covered(1, 0, 3);
    source.unread.add(1);
    acks.kick();
    await settle();
    expect(ledger.states().map((s) => s.acknowledged)).toEqual([10n, 0n]);
    expect(events).toMatchObject([{ e: "source.acknowledged", marks: [{ partition: 0, next: 10n }] }]);
    acks.kick();
    await settle();
    expect(events).toHaveLength(1);
    source.unread.clear();
    acks.kick();
    await settle();
    expect(source.acks.at(-1)).toEqual([{ stream: 1, next: 3n }]);
    expect(ledger.states().map((s) => s.acknowledged)).toEqual([10n, 3n]);
  });

  test("of nothing is not sent", async () => {
    acks.kick();
    await acks.flush();
    await settle();
    expect(journal).toEqual([]);
  });

  test("is one at a time: what is covered meanwhile goes together in the next", async () => {
    const gate = new Gate();
    source.ackFaults.push(gate);
    covered(0, 0, 10);
    acks.kick();
    await settle();
    for (const [from, next] of [
      [10, 20],
      [20, 30],
    ] as const) {
      covered(0, from, next);
      acks.kick();
    }
    await settle();
    expect(source.acks).toEqual([]);
    gate.open();
    await settle();
    expect(source.acks.map((a) => a.map((m) => m.next))).toEqual([[10n], [30n]]);
  });

  test("that becomes due in the very turn in which another ends is not forgotten", async () => {
    // Covered and kicked at each turn of the job queue after the answer: one of them meets the end of the round.
    for (let turn = 0; turn < 12; turn++) {
      const from = 10 * turn;
      covered(0, from, from + 5);
      acks.kick();
      for (let i = 0; i < turn; i++) await Promise.resolve();
      covered(0, from + 5, from + 10);
      acks.kick();
      await settle();
      expect(ledger.state(0).acknowledged).toBe(BigInt(from + 10));
    }
  });
});

describe("while the source does not take them", () => {
  test("the same marks are sent again after a second, and nothing counts as acknowledged", async () => {
    source.ackFaults.push(down(), down());
    covered(0, 0, 10);
    acks.kick();
    await settle(999);
    expect(ledger.state(0).acknowledged).toBe(0n);
    expect(journal.filter((j) => j.startsWith("ack"))).toEqual(["acknowledge 0@10"]);
    await settle(2000);
    expect(journal.filter((j) => j.startsWith("ack"))).toEqual(Array(3).fill("acknowledge 0@10"));
    expect(ledger.state(0).acknowledged).toBe(10n);
    expect(events.map((e) => e.e)).toEqual([
      "source.acknowledge_failed",
      "source.acknowledge_failed",
      "source.acknowledged",
    ]);
  });

  test("many that become due start one chain of retries, not one each", async () => {
    source.ackFaults.push(...Array.from({ length: 500 }, down));
    for (let i = 0; i < 50; i++) {
      covered(0, i, i + 1);
      acks.kick();
      await settle(10);
    }
    const before = journal.filter((j) => j.startsWith("ack")).length;
    await settle(10_000);
    const sent = journal.filter((j) => j.startsWith("ack")).length - before;
    expect(sent).toBeGreaterThanOrEqual(9);
    expect(sent).toBeLessThanOrEqual(11);
  });

  test("closing ends the retries", async () => {
    source.ackFaults.push(down());
    covered(0, 0, 10);
    acks.kick();
    await settle();
    acks.close();
    acks.kick();
    await settle(10_000);
    expect(journal.filter((j) => j.startsWith("ack"))).toHaveLength(1);
  });
});

describe("at a stop", () => {
  test("what is under way is waited for, the rest is sent once, and a failure is not waited out", async () => {
    const gate = new Gate();
    source.ackFaults.push(gate, down());
    covered(0, 0, 10);
    acks.kick();
    await settle();
    covered(1, 0, 5);
    let flushed = false;
    const flush = acks.flush().then(() => {
      flushed = true;
    });
    await settle();
    expect(flushed).toBe(false);
    gate.open();
    await flush;
    expect(journal.filter((j) => j.startsWith("ack"))).toEqual(["acknowledge 0@10", "acknowledge 1@5"]);
    expect(ledger.states().map((s) => s.acknowledged)).toEqual([10n, 0n]);
  });

  test("what becomes durable meanwhile is not waited for, however much that is", async () => {
    const gates = Array.from({ length: 20 }, () => new Gate());
    source.ackFaults.push(...gates);
    covered(0, 0, 10);
    acks.kick();
    await settle();
    covered(1, 0, 5);
    acks.kick();
    let answers = -1;
    const flush = acks.flush().then(() => {
      answers = ledger
        .states()
        .map((s) => Number(s.acknowledged))
        .indexOf(5);
    });
    // By each answer another stretch has become durable.
    for (const [i, gate] of gates.slice(0, 5).entries()) {
      covered(0, 10 + i, 11 + i);
      acks.kick();
      gate.open();
      await settle();
    }
    expect(answers).toBe(1);
    for (const gate of gates) gate.open();
    await flush;
  });
});

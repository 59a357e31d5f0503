/**
 * Goal: a member of a KIP-848 group does the right thing about every answer. Method: the machine alone, fed by hand;
 * each test names the public report that it stands for, where there is one.
 */
import { describe, expect, test } from "bun:test";
import type { AssignedPartition } from "../../../../src/adapters/kafka/assignors/assignor.ts";
import { ConsumerGroupMember } from "../../../../src/adapters/kafka/session/group-consumer.ts";
import type { GroupCall, GroupListener } from "../../../../src/adapters/kafka/session/group-machine.ts";
import { ERROR } from "../../../../src/adapters/kafka/wire/errors.ts";
import { Failure } from "../../../../src/core/failure/failure.ts";

const PAUSE = 200;
const INTERVAL = 1_000;
const ID = "topic-id";

class Bench implements GroupListener {
  readonly machine: ConsumerGroupMember;
  now = 0;
  readonly log: string[] = [];
  readonly asks: { readonly id: number; readonly call: GroupCall }[] = [];
  failure: Failure | null = null;

  constructor(instanceId: string | null = null) {
    this.machine = new ConsumerGroupMember(
      {
        group: "g",
        memberId: "m",
        instanceId,
        topics: ["t"],
        rackId: null,
        serverAssignor: null,
        rebalanceTimeoutMs: 10_000,
        pauses: { next: () => PAUSE, reset: () => {} },
      },
      this,
    );
    this.machine.topics(["t"], [{ name: "t", id: ID, partitions: 4 }], 0);
    this.machine.start(0);
  }

  ask(id: number, call: GroupCall): void {
    this.asks.push({ id, call });
  }
  coordinatorLost(): void {
    this.log.push("coordinator lost");
  }
  count(): void {}
  wantMetadata(): void {
    this.log.push("metadata");
  }
  assigned(list: readonly AssignedPartition[]): void {
    this.log.push(`assigned ${list.map((p) => p.partition)}`);
  }
  revoke(list: readonly AssignedPartition[]): void {
    this.log.push(`revoke ${list.map((p) => p.partition)}`);
  }
  lost(list: readonly AssignedPartition[]): void {
    this.log.push(`lost ${list.map((p) => p.partition)}`);
  }
  confirmed(): void {}
  told(): void {}
  ended(failure: Failure): void {
    this.failure = failure;
  }

  news(): string[] {
    return this.log.splice(0);
  }

  get sent() {
    return (this.asks.at(-1)!.call as Extract<GroupCall, { api: "ConsumerGroupHeartbeat" }>).body;
  }

  /** The answer to the last heartbeat; partitions null: unchanged. */
  answer(epoch: number, partitions: readonly number[] | null, over: object = {}): void {
    const assignment =
      partitions === null
        ? null
        : { topicPartitions: partitions.length === 0 ? [] : [{ topicId: ID, partitions }] };
    const body = {
      errorCode: 0,
      errorMessage: null,
      memberEpoch: epoch,
      heartbeatIntervalMs: INTERVAL,
      assignment,
    };
    const answer = { api: "ConsumerGroupHeartbeat", version: 1, body: { ...body, ...over } };
    this.machine.answered(this.asks.at(-1)!.id, answer as never, this.now);
  }

  wait(): void {
    this.now = this.machine.wakeAt ?? this.now;
    this.machine.tick(this.now);
  }
}

const owned = (partitions: readonly number[]) => [{ topicId: ID, partitions }];

describe("a membership", () => {
  test("begins with everything said, and then says only what has changed", () => {
    const b = new Bench();
    expect(b.sent).toMatchObject({
      memberEpoch: 0,
      subscribedTopicNames: ["t"],
      topicPartitions: [],
      rebalanceTimeoutMs: 10_000,
    });
    expect(b.machine.membership).toBeNull();
    b.answer(3, [0, 1]);
    expect(b.news()).toEqual(["assigned 0,1"]);
    expect(b.machine.membership).toEqual({ memberId: "m", epoch: 3 });
    // What it owns now the broker waits for: at once.
    expect(b.machine.wakeAt).toBe(0);
    b.wait();
    expect(b.sent).toMatchObject({ memberEpoch: 3, topicPartitions: owned([0, 1]) });
    expect(b.sent.subscribedTopicNames).toBeUndefined();
    b.answer(3, null);
    b.wait();
    expect([b.now, b.sent.topicPartitions]).toEqual([INTERVAL, null]);
  });

  test("gives up first, says so, and gets what is new only then (librdkafka #5541)", () => {
    const b = new Bench();
    b.answer(3, [0, 1]);
    b.wait();
    b.answer(3, [1, 2]);
    expect(b.news()).toEqual(["assigned 0,1", "revoke 0"]);
    b.wait();
    // Still held: the broker must not give it to anybody yet.
    expect(b.sent.topicPartitions).toBeNull();
    b.answer(3, null);
    b.machine.released(b.now);
    expect(b.news()).toEqual(["assigned 2"]);
    b.wait();
    expect(b.sent.topicPartitions).toEqual(owned([1, 2]));
  });

  test("one heartbeat is under way at a time, however soon the next is wanted (KAFKA-19222)", () => {
    const b = new Bench();
    b.answer(3, [0]);
    b.wait();
    b.machine.heartbeatSoon(b.now);
    expect(b.machine.wakeAt).toBeNull();
    b.machine.tick(b.now);
    expect(b.asks.length).toBe(2);
  });

  test("whose heartbeat got lost says everything again, since the broker may not have heard it", () => {
    const b = new Bench();
    b.answer(3, [0]);
    b.wait();
    b.machine.failed(b.asks.at(-1)!.id, new Failure("kafka.timeout", "late", { retry: true }), b.now);
    expect(b.news()).toEqual(["assigned 0", "coordinator lost"]);
    b.wait();
    expect(b.sent).toMatchObject({
      memberEpoch: 3,
      topicPartitions: owned([0]),
      subscribedTopicNames: ["t"],
    });
  });

  test("of a topic that metadata does not know yet holds it back, and gives nothing up for it", () => {
    const b = new Bench();
    const assignment = { topicPartitions: [...owned([0]), { topicId: "new-id", partitions: [0] }] };
    b.answer(3, null, { assignment });
    expect(b.news()).toEqual(["metadata", "assigned 0"]);
    b.machine.topics(
      ["t", "u"],
      [
        { name: "t", id: ID, partitions: 4 },
        { name: "u", id: "new-id", partitions: 1 },
      ],
      b.now,
    );
    expect(b.news()).toEqual(["assigned 0"]);
  });
});

describe("a member that is out", () => {
  for (const code of [ERROR.FENCED_MEMBER_EPOCH, ERROR.UNKNOWN_MEMBER_ID]) {
    test(`(${code}) loses everything, also what it was giving up, and joins from the start`, () => {
      const b = new Bench();
      b.answer(3, [0, 1]);
      b.wait();
      b.answer(3, [1]);
      b.news();
      b.wait();
      b.answer(0, null, { errorCode: code });
      expect(b.news()).toEqual(["lost 1,0"]);
      expect(b.machine.membership).toBeNull();
      b.wait();
      expect(b.sent).toMatchObject({ memberEpoch: 0, topicPartitions: [], subscribedTopicNames: ["t"] });
      b.machine.released(b.now);
      expect(b.news()).toEqual([]);
    });
  }

  test("because its instance id is held waits for that to end", () => {
    const b = new Bench("i");
    b.answer(0, null, { errorCode: ERROR.UNRELEASED_INSTANCE_ID });
    expect(b.failure).toBeNull();
    b.wait();
    expect([b.now, b.sent.memberEpoch, b.sent.instanceId]).toEqual([PAUSE, 0, "i"]);
  });

  test("by an error that will not pass ends, with the broker's own words", () => {
    const b = new Bench();
    b.answer(0, null, { errorCode: 112, errorMessage: "no assignor x" });
    expect(b.failure).toMatchObject({ code: "kafka.group_refused" });
    expect(b.failure?.message).toContain("no assignor x");
    expect(b.machine.wakeAt).toBeNull();
  });
});

describe("leaving", () => {
  for (const [instanceId, epoch] of [
    [null, -1],
    ["i", -2],
  ] as const) {
    test(`${instanceId === null ? "for good" : "for a while, as a static member"}: epoch ${epoch}, and late answers mean nothing`, () => {
      const b = new Bench(instanceId);
      b.answer(3, [0]);
      b.wait();
      expect(b.machine.leave()).toMatchObject({ body: { memberEpoch: epoch, memberId: "m" } });
      b.news();
      b.answer(4, [0, 1]);
      expect(b.news()).toEqual([]);
      expect(b.machine.wakeAt).toBeNull();
    });
  }
});

/**
 * Goal: a member of a classic group does the right thing about every answer and every delay. Method: the machine alone,
 * fed by hand; each test names the public report that it stands for, where there is one.
 */
import { describe, expect, test } from "bun:test";
import type { AssignedPartition } from "../../../../src/adapters/kafka/assignors/assignor.ts";
import { ASSIGNORS, type AssignorName } from "../../../../src/adapters/kafka/assignors/table.ts";
import {
  ClassicGroupMember,
  type ClassicOptions,
} from "../../../../src/adapters/kafka/session/group-classic.ts";
import type { GroupCall, GroupListener } from "../../../../src/adapters/kafka/session/group-machine.ts";
import {
  decodeAssignment,
  decodeSubscription,
  encodeAssignment,
} from "../../../../src/adapters/kafka/wire/consumer-protocol.ts";
import { ERROR } from "../../../../src/adapters/kafka/wire/errors.ts";
import { Failure } from "../../../../src/core/failure/failure.ts";

const PAUSE = 200;

class Bench implements GroupListener {
  readonly machine: ClassicGroupMember;
  now = 0;
  /** What happened, in words. */
  readonly log: string[] = [];
  readonly asks: { readonly id: number; readonly call: GroupCall }[] = [];
  failure: Failure | null = null;

  constructor(assignors: readonly AssignorName[], over: Partial<ClassicOptions> = {}) {
    this.machine = new ClassicGroupMember(
      {
        group: "g",
        instanceId: null,
        topics: ["t"],
        assignors: assignors.map((a) => ASSIGNORS[a]),
        rackId: null,
        sessionTimeoutMs: 6_000,
        heartbeatIntervalMs: 1_000,
        rebalanceTimeoutMs: 10_000,
        pauses: { next: () => PAUSE, reset: () => {} },
        ...over,
      },
      this,
    );
    this.machine.start(0);
  }

  ask(id: number, call: GroupCall): void {
    this.asks.push({ id, call });
    this.log.push(call.api);
  }
  coordinatorLost(): void {
    this.log.push("coordinator lost");
  }
  count(topics: readonly string[]): void {
    this.log.push(`count ${topics}`);
  }
  wantMetadata(): void {}
  assigned(list: readonly AssignedPartition[]): void {
    this.log.push(`assigned ${list.map((p) => p.partition)}`);
  }
  revoke(list: readonly AssignedPartition[]): void {
    this.log.push(`revoke ${list.map((p) => p.partition)}`);
  }
  lost(list: readonly AssignedPartition[]): void {
    this.log.push(`lost ${list.map((p) => p.partition)}`);
  }
  confirmed(_id: number, epoch: number): void {
    this.log.push(`confirmed ${epoch}`);
  }
  told(): void {}
  ended(failure: Failure): void {
    this.failure = failure;
  }

  /** What happened since the last call. */
  news(): string[] {
    return this.log.splice(0);
  }

  get last() {
    return this.asks.at(-1)!;
  }

  #answer(api: GroupCall["api"], version: number, body: object, id = this.last.id): void {
    this.machine.answered(id, { api, version, body } as never, this.now);
  }

  joined(generation: number, over: object = {}, version = 9): void {
    const body = { errorCode: 0, generationId: generation, leader: "other", memberId: "m", members: [] };
    this.#answer("JoinGroup", version, {
      ...body,
      protocolName: "cooperative-sticky",
      skipAssignment: false,
      ...over,
    });
  }

  synced(partitions: readonly number[], errorCode = 0): void {
    const assignment = encodeAssignment(partitions.length === 0 ? [] : [{ topic: "t", partitions }]);
    this.#answer("SyncGroup", 5, { errorCode, assignment });
  }

  beat(errorCode: number, id = this.last.id): void {
    this.#answer("Heartbeat", 4, { errorCode }, id);
  }

  /** To the machine's next point in time. */
  wait(): void {
    this.now = this.machine.wakeAt ?? this.now;
    this.machine.tick(this.now);
  }

  get subscription() {
    const { call } = this.asks.findLast((a) => a.call.api === "JoinGroup")!;
    return decodeSubscription(
      (call as Extract<GroupCall, { api: "JoinGroup" }>).body.protocols![0]!.metadata!,
    );
  }
}

function stable(
  partitions: readonly number[],
  assignors: readonly AssignorName[] = ["cooperative-sticky"],
): Bench {
  const b = new Bench(assignors);
  b.joined(3);
  b.synced(partitions);
  b.news();
  return b;
}

describe("joining", () => {
  test("with the id that the broker hands out, at once", () => {
    const b = new Bench(["cooperative-sticky"]);
    b.joined(-1, { errorCode: ERROR.MEMBER_ID_REQUIRED, memberId: "mine" });
    expect(b.news()).toEqual(["JoinGroup", "JoinGroup"]);
    expect((b.last.call.body as { memberId: string }).memberId).toBe("mine");
  });

  test("a coordinator that moved, or is loading, is asked again after a pause", () => {
    const b = new Bench(["cooperative-sticky"]);
    b.joined(-1, { errorCode: ERROR.NOT_COORDINATOR });
    expect(b.news()).toEqual(["JoinGroup", "coordinator lost"]);
    b.wait();
    expect([b.now, ...b.news()]).toEqual([PAUSE, "JoinGroup"]);
    b.machine.failed(b.last.id, new Failure("kafka.timeout", "late", { retry: true }), b.now);
    b.wait();
    expect(b.news()).toEqual(["coordinator lost", "JoinGroup"]);
  });

  test("what will not pass ends it: a denial by name, any other refusal with its hint", () => {
    const denied = new Bench(["range"]);
    denied.joined(-1, { errorCode: ERROR.GROUP_AUTHORIZATION_FAILED });
    expect(denied.failure?.code).toBe("kafka.group_denied");
    const refused = new Bench(["range"]);
    refused.joined(-1, { errorCode: 26 });
    expect(refused.failure).toMatchObject({ code: "kafka.group_refused" });
    expect(refused.failure?.hint).toContain("session_timeout_ms");
  });

  test("the leader assigns what there is, to every member, user data included (platformatic #284, #320)", () => {
    const b = new Bench(["range"]);
    const metadata = b.subscription;
    const mine = (b.last.call.body as { protocols: { metadata: Uint8Array }[] }).protocols[0]!.metadata;
    const members = ["m", "n"].map((memberId) => ({ memberId, groupInstanceId: null, metadata: mine }));
    members.push({ memberId: "odd", groupInstanceId: null, metadata: new Uint8Array([0, 1, 255]) });
    b.joined(1, { leader: "m", members, protocolName: "range" });
    expect(metadata.topics).toEqual(["t"]);
    expect(b.news()).toEqual(["JoinGroup", "count t"]);
    b.machine.counted(new Map([["t", 3]]), new Map(), 0);
    const { assignments } = b.last.call.body as {
      assignments: { memberId: string; assignment: Uint8Array }[];
    };
    const of = Object.fromEntries(
      assignments.map((a) => [a.memberId, decodeAssignment(a.assignment).assignedPartitions]),
    );
    expect(of).toEqual({
      m: [{ topic: "t", partitions: [0, 1] }],
      n: [{ topic: "t", partitions: [2] }],
      odd: [],
    });
    // version, list, and four bytes of "no user data" even where nothing is assigned.
    expect(assignments[2]!.assignment).toEqual(new Uint8Array([0, 3, 0, 0, 0, 0, 255, 255, 255, 255]));
  });

  test("a static leader that came back assigns nothing, and watches the topics all the same (KIP-814)", () => {
    const b = new Bench(["cooperative-sticky"], { instanceId: "i" });
    const topic = (partitions: number) => [{ name: "t", id: "x", partitions }];
    b.machine.topics(["t"], topic(2), 0);
    b.joined(4, { leader: "m", skipAssignment: true });
    expect((b.last.call.body as { assignments: unknown[] }).assignments).toEqual([]);
    b.synced([0, 1]);
    b.news();
    b.machine.topics(["t"], topic(2), 0);
    expect(b.news()).toEqual([]);
    b.machine.topics(["t"], topic(3), 0);
    expect(b.news()).toEqual(["JoinGroup"]);
  });

  test("an assignment without bytes is an empty one (kafkajs #567); one of a foreign topic is not taken", () => {
    const b = new Bench(["cooperative-sticky"]);
    b.joined(3);
    b.machine.answered(
      b.last.id,
      { api: "SyncGroup", version: 5, body: { errorCode: 0, assignment: new Uint8Array(0) } } as never,
      0,
    );
    expect(b.machine.membership).toEqual({ memberId: "m", epoch: 3 });
    const c = new Bench(["cooperative-sticky"]);
    c.joined(3);
    const assignment = encodeAssignment([{ topic: "foreign", partitions: [0] }]);
    c.machine.answered(
      c.last.id,
      { api: "SyncGroup", version: 5, body: { errorCode: 0, assignment } } as never,
      0,
    );
    expect(c.machine.membership).toBeNull();
    c.wait();
    expect(c.last.call.api).toBe("JoinGroup");
  });
});

describe("a cooperative rebalance", () => {
  test("keeps everything while the group forms, gives up what goes, and joins once more", () => {
    const b = stable([0, 1, 2]);
    b.wait();
    b.beat(ERROR.REBALANCE_IN_PROGRESS);
    expect(b.news()).toEqual(["Heartbeat", "confirmed 3", "JoinGroup"]);
    expect(b.subscription).toMatchObject({
      ownedPartitions: [{ topic: "t", partitions: [0, 1, 2] }],
      generationId: 3,
    });
    // Between join and sync no commit goes out (franz-go v1.13.2).
    expect(b.machine.membership).toBeNull();
    b.joined(4);
    b.synced([0, 1]);
    expect(b.news()).toEqual(["SyncGroup", "confirmed 4", "revoke 2"]);
    expect(b.machine.membership).toEqual({ memberId: "m", epoch: 4 });
    // A slow publish does not end the session.
    b.wait();
    b.beat(0);
    expect(b.news()).toEqual(["Heartbeat", "confirmed 4"]);
    b.machine.released(b.now);
    expect(b.news()).toEqual(["JoinGroup"]);
    expect(b.subscription).toMatchObject({
      ownedPartitions: [{ topic: "t", partitions: [0, 1] }],
      generationId: 4,
    });
  });

  // KAFKA-13419, KAFKA-14016: the next round must know what we own, and since when.
  test("that starts again before its sync keeps what is owned, and its generation", () => {
    const b = stable([0, 1]);
    b.wait();
    b.beat(ERROR.REBALANCE_IN_PROGRESS);
    b.joined(4);
    b.synced([], ERROR.REBALANCE_IN_PROGRESS);
    expect(b.last.call.api).toBe("JoinGroup");
    expect(b.subscription).toMatchObject({
      ownedPartitions: [{ topic: "t", partitions: [0, 1] }],
      generationId: 3,
    });
  });

  test("gives and takes at once", () => {
    const b = stable([0]);
    b.wait();
    b.beat(ERROR.REBALANCE_IN_PROGRESS);
    b.joined(4);
    b.synced([1]);
    expect(b.news().slice(-2)).toEqual(["revoke 0", "assigned 1"]);
  });
});

test("an eager rebalance gives everything up before the join, and tells the next leader what there was", () => {
  const b = stable([0, 1], ["sticky"]);
  b.wait();
  b.beat(ERROR.REBALANCE_IN_PROGRESS);
  expect(b.news()).toEqual(["Heartbeat", "confirmed 3", "revoke 0,1"]);
  expect(b.machine.membership?.epoch).toBe(3);
  b.machine.released(b.now);
  expect(b.news()).toEqual(["JoinGroup"]);
  expect(b.subscription.ownedPartitions).toEqual([]);
  // Topic t, partitions 0 and 1, generation 3.
  expect(Buffer.from(b.subscription.userData!).toString("hex")).toBe(
    "0000000100017400000002000000000000000100000003",
  );
});

describe("heartbeats", () => {
  // platformatic #376
  test("go on after one that failed, or that a loading coordinator refused", () => {
    const b = stable([0]);
    b.wait();
    b.machine.failed(b.last.id, new Failure("kafka.timeout", "late", { retry: true }), b.now);
    b.wait();
    b.beat(ERROR.COORDINATOR_NOT_AVAILABLE);
    b.wait();
    expect(b.news()).toEqual(["Heartbeat", "coordinator lost", "Heartbeat", "coordinator lost", "Heartbeat"]);
  });

  // KAFKA-9823
  test("of an earlier generation say nothing about this one", () => {
    const b = stable([0]);
    b.wait();
    const old = b.last.id;
    b.machine.topics(["t"], [{ name: "t", id: "x", partitions: 9 }], b.now);
    b.beat(ERROR.REBALANCE_IN_PROGRESS, old);
    b.joined(4);
    b.synced([0]);
    b.news();
    b.beat(ERROR.UNKNOWN_MEMBER_ID, old);
    expect(b.news()).toEqual([]);
    expect(b.machine.membership?.epoch).toBe(4);
  });

  test("that find us out lose everything: the id too where it is unknown, and not where only the generation is over", () => {
    for (const [code, id] of [
      [ERROR.UNKNOWN_MEMBER_ID, ""],
      [ERROR.ILLEGAL_GENERATION, "m"],
    ] as const) {
      const b = stable([0, 1]);
      b.wait();
      b.beat(code);
      expect(b.news()).toEqual(["Heartbeat", "lost 0,1", "JoinGroup"]);
      expect((b.last.call.body as { memberId: string }).memberId).toBe(id);
      expect(b.subscription).toMatchObject({ ownedPartitions: [], generationId: -1 });
    }
  });

  test("that find us out while something is given up lose that as well, and its end means nothing any more", () => {
    const b = stable([0, 1]);
    b.wait();
    b.beat(ERROR.REBALANCE_IN_PROGRESS);
    b.joined(4);
    b.synced([0]);
    b.wait();
    b.beat(ERROR.UNKNOWN_MEMBER_ID);
    expect(b.news().slice(-2)).toEqual(["lost 0,1", "JoinGroup"]);
    b.machine.released(b.now);
    expect(b.news()).toEqual([]);
  });

  test("of a fenced instance end it, with everything lost", () => {
    const b = new Bench(["cooperative-sticky"], { instanceId: "i" });
    b.joined(3);
    b.synced([0]);
    b.wait();
    b.beat(ERROR.FENCED_INSTANCE_ID);
    expect(b.failure?.code).toBe("kafka.instance_fenced");
    expect(b.news().at(-1)).toBe("lost 0");
  });
});

describe("leaving", () => {
  test("a dynamic member says so, with its reason", () => {
    const body = { groupId: "g", memberId: "m" };
    expect(stable([0]).machine.leave()).toMatchObject({ api: "LeaveGroup", body });
  });

  test("a static one does not: it may be back before the session ends", () => {
    const b = new Bench(["cooperative-sticky"], { instanceId: "i" });
    b.joined(3);
    b.synced([0]);
    expect(b.machine.leave()).toBeNull();
    b.machine.answered(b.last.id, { api: "Heartbeat", version: 4, body: { errorCode: 25 } } as never, 0);
    expect(b.news()).not.toContain("lost 0");
  });
});

import { describe, expect, test } from "bun:test";
import { MetadataState, nextLeader } from "../../../../src/adapters/kafka/session/metadata-state.ts";
import type {
  MetadataResponse,
  MetadataTopic,
} from "../../../../src/adapters/kafka/wire/messages/metadata.ts";
import { ZERO_UUID } from "../../../../src/adapters/kafka/wire/uuid.ts";

interface P {
  readonly leader: number;
  readonly epoch: number;
}

function topic(
  name: string | null,
  partitions: readonly P[],
  more: Partial<MetadataTopic> = {},
): MetadataTopic {
  return {
    errorCode: 0,
    name,
    topicId: `id-${name}`,
    isInternal: false,
    topicAuthorizedOperations: 0,
    partitions: partitions.map((p, partitionIndex) => ({
      errorCode: 0,
      partitionIndex,
      leaderId: p.leader,
      leaderEpoch: p.epoch,
      replicaNodes: [],
      isrNodes: [],
      offlineReplicas: [],
    })),
    ...more,
  };
}

function response(
  topics: readonly MetadataTopic[],
  brokers = [1, 2],
  more: Partial<MetadataResponse> = {},
): MetadataResponse {
  return {
    throttleTimeMs: 0,
    brokers: brokers.map((nodeId) => ({ nodeId, host: `b${nodeId}`, port: 9092, rack: null })),
    clusterId: "c",
    controllerId: 1,
    topics,
    clusterAuthorizedOperations: 0,
    errorCode: 0,
    ...more,
  };
}

const known = { leader: 1, epoch: 5, requestEpoch: 5, stale: 0 };

describe("a partition's leader", () => {
  test("a higher epoch is adopted; an equal one with another leader too", () => {
    expect(nextLeader(known, 2, 6)).toEqual({ leader: 2, epoch: 6, requestEpoch: 6, stale: 0 });
    expect(nextLeader(known, 2, 5)).toEqual({ leader: 2, epoch: 5, requestEpoch: 5, stale: 0 });
  });

  test("an older epoch is not", () => {
    expect(nextLeader(known, 2, 4)).toEqual({ ...known, stale: 1 });
  });

  test("no leader keeps the epoch; a leader told without an epoch is followed without a check", () => {
    expect(nextLeader(known, -1, -1)).toEqual({ ...known, leader: -1 });
    expect(nextLeader(known, 2, -1)).toEqual({ leader: 2, epoch: 5, requestEpoch: -1, stale: 0 });
  });

  // A cluster that was restored from an older state would otherwise be asked for ever at a dead leader.
  test("five older epochs in a row: the leader is followed, the epoch still does not go back", () => {
    let p = known;
    for (let i = 0; i < 4; i++) p = nextLeader(p, 2, 3);
    expect([p.leader, p.epoch]).toEqual([1, 5]);
    p = nextLeader(p, 2, 3);
    expect(p).toMatchObject({ leader: 2, epoch: 5, requestEpoch: -1 });
    expect(nextLeader(p, 3, 6)).toEqual({ leader: 3, epoch: 6, requestEpoch: 6, stale: 0 });
  });
});

describe("metadata", () => {
  test("brokers are replaced as a whole, and a response without any is ignored", () => {
    const m = new MetadataState();
    m.apply(response([topic("a", [{ leader: 1, epoch: 0 }])], [1, 2, 3]));
    expect(m.apply(response([], [])).applied).toBe(false);
    expect(m.apply(response([], [9], { errorCode: 42 })).applied).toBe(false);
    expect([...m.brokers.keys()]).toEqual([1, 2, 3]);
    m.apply(response([], [2]));
    expect([...m.brokers]).toEqual([[2, { host: "b2", port: 9092 }]]);
    expect(m.clusterId).toBe("c");
    m.apply(response([], [2], { clusterId: null }));
    expect(m.clusterId).toBe("c");
  });

  test("a topic with an error keeps what was known, others go on", () => {
    const m = new MetadataState();
    m.apply(response([topic("a", [{ leader: 1, epoch: 1 }]), topic("b", [{ leader: 1, epoch: 1 }])]));
    const change = m.apply(
      response([topic("a", [], { errorCode: 3 }), topic("b", [{ leader: 2, epoch: 2 }])]),
    );
    expect([...change.errors]).toEqual([["a", 3]]);
    expect(m.leader("a", 0).leader).toBe(1);
    expect(m.leader("b", 0).leader).toBe(2);
  });

  test("no partitions and no error is not yet a topic", () => {
    const m = new MetadataState();
    const change = m.apply(response([topic("a", [])]));
    expect([...change.errors]).toEqual([["a", 5]]);
    expect(m.topics.has("a")).toBe(false);
    expect(m.leader("a", 0)).toMatchObject({ leader: -1, epoch: -1 });
  });

  test("another topic id is another topic: epochs may begin low again", () => {
    const m = new MetadataState();
    m.apply(
      response([
        topic("a", [
          { leader: 1, epoch: 40 },
          { leader: 1, epoch: 40 },
        ]),
      ]),
    );
    m.apply(response([topic("a", [{ leader: 2, epoch: 0 }], { topicId: "other" })]));
    expect(m.idOf("a")).toBe("other");
    expect(m.leader("a", 0)).toMatchObject({ leader: 2, epoch: 0 });
    expect(m.topics.get("a")?.partitions.size).toBe(1);
  });

  test("a response without ids says nothing about identity", () => {
    const m = new MetadataState();
    m.apply(response([topic("a", [{ leader: 1, epoch: 1 }])]));
    m.apply(response([topic("a", [{ leader: 1, epoch: 1 }], { topicId: ZERO_UUID })]));
    expect(m.leader("a", 0).leader).toBe(1);
    expect(m.idOf("a")).toBe("id-a");
    expect(m.idOf("nowhere")).toBe(ZERO_UUID);
  });

  test("topics without a name and partitions with a negative number are left out", () => {
    const m = new MetadataState();
    const odd = topic("a", [{ leader: 1, epoch: 1 }]);
    m.apply(
      response([
        topic(null, [{ leader: 1, epoch: 1 }]),
        { ...odd, partitions: [{ ...odd.partitions[0]!, partitionIndex: -2 }] },
      ]),
    );
    expect([...m.topics.keys()]).toEqual(["a"]);
    expect(m.topics.get("a")?.partitions.size).toBe(0);
  });

  test("a topic named like a property of every object is just a topic", () => {
    const m = new MetadataState();
    m.apply(
      response([
        topic("__proto__", [{ leader: 2, epoch: 1 }]),
        topic("constructor", [{ leader: 1, epoch: 1 }]),
      ]),
    );
    expect([m.leader("__proto__", 0).leader, m.leader("constructor", 0).leader]).toEqual([2, 1]);
  });

  test("a hint is adopted only if it is newer and its broker can be found", () => {
    const m = new MetadataState();
    m.apply(response([topic("a", [{ leader: 1, epoch: 5 }])]));
    expect(m.hint("a", 0, 2, 5, null)).toBe(false);
    expect(m.hint("a", 0, -1, 9, null)).toBe(false);
    expect(m.hint("a", 0, 9, 6, null)).toBe(false);
    expect(m.hint("a", 7, 2, 6, null)).toBe(false);
    expect(m.hint("b", 0, 2, 6, null)).toBe(false);
    expect(m.hint("a", 0, 9, 6, { host: "b9", port: 1 })).toBe(true);
    expect(m.leader("a", 0)).toMatchObject({ leader: 9, epoch: 6 });
    expect(m.brokers.get(9)).toEqual({ host: "b9", port: 1 });
  });
});

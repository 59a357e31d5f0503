/**
 * Goal: sources that share a group divide the partitions, and hand them over without a gap, an overlap or a pause.
 * Method: several sources beside each other on the test cluster, whose coordinators keep groups as brokers do; time
 * is simulated. Each host checks the promises of the port; here the group as a whole is checked.
 */
import { afterEach, describe, expect, test } from "bun:test";
import { ERROR } from "../../../src/adapters/kafka/wire/errors.ts";
import { Failure } from "../../../src/core/failure/failure.ts";
import { type BenchOptions, SourceBench } from "./source-bench.ts";

let all: SourceBench[] = [];

function member(options: BenchOptions = {}): SourceBench {
  const first = all[0];
  const bench = new SourceBench({
    seed: all.length + 1,
    ...(first === undefined ? {} : { beside: first }),
    ...options,
    source: { group: "g", group_protocol: "classic", session_timeout_ms: "6s", ...options.source },
  });
  all.push(bench);
  return bench;
}

afterEach(async () => {
  const benches = all;
  all = [];
  for (const b of benches) await b.close();
  for (const b of benches) {
    expect(b.broken).toEqual([]);
    expect(b.outstanding.size).toBe(0);
  }
});

/** Partitions that a member reads now. */
function reads(b: SourceBench): number[] {
  const gone = new Set([...b.released, ...b.abandoned]);
  return b.streams.flatMap((s, i) => (gone.has(i) ? [] : [s.found.partition])).sort((x, y) => x - y);
}

const shared = (benches: readonly SourceBench[], partitions: number) => {
  const read = benches.flatMap(reads);
  return read.length === partitions && new Set(read).size === partitions;
};

for (const protocol of ["classic", "consumer"] as const) {
  const source = { group_protocol: protocol };
  describe(`${protocol} groups`, () => {
    test("one member reads everything, and commits as a member", async () => {
      const a = member({ source });
      a.cluster.createTopic("orders", { partitions: 3 });
      for (let p = 0; p < 3; p++) a.fill("orders", p, 2);
      a.start();
      await a.until(() => a.streams.length === 3 && a.caughtUp());
      let told = false;
      void a.source.acknowledge([{ stream: 0, next: 6n }]).then(() => {
        told = true;
      });
      await a.until(() => told);
      const commit = a.cluster.requests("OffsetCommit").at(-1)!.body;
      expect(commit.memberId).not.toBe("");
      expect(commit.generationIdOrMemberEpoch).toBe(a.epochs[0]!);
      expect(a.cluster.committed("g", "orders", a.streams[0]!.found.partition)?.offset).toBe(6n);
    });

    test("a second member gets its share; partitions that stay are read on", async () => {
      const a = member({ source });
      a.cluster.createTopic("orders", { partitions: 4 });
      a.start();
      await a.until(() => reads(a).length === 4);
      const b = member({ source });
      b.start();
      await a.until(() => shared([a, b], 4) && reads(b).length === 2);
      expect(a.released.length).toBe(2);
      expect(a.abandoned).toEqual([]);
      for (let p = 0; p < 4; p++) a.fill("orders", p, 1);
      const ends = (m: SourceBench) => reads(m).every((p) => m.stream("orders", p).position === 3n);
      await a.until(() => ends(a) && ends(b));
    });

    test("a member that leaves hands its partitions on at once", async () => {
      const a = member({ source });
      a.cluster.createTopic("orders", { partitions: 4 });
      const b = member({ source });
      a.start();
      b.start();
      await a.until(() => shared([a, b], 4) && reads(b).length === 2);
      const at = a.time.nowMs;
      all = [a];
      await b.close();
      await a.until(() => reads(a).length === 4);
      expect(a.time.nowMs - at).toBeLessThan(6_000);
    });

    test("a member that is evicted abandons all, and joins again", async () => {
      const a = member({ source });
      a.cluster.createTopic("orders", { partitions: 2 });
      a.start();
      await a.until(() => reads(a).length === 2);
      const api = protocol === "classic" ? "Heartbeat" : "ConsumerGroupHeartbeat";
      a.cluster.script.on({ api, action: { do: "error", code: ERROR.UNKNOWN_MEMBER_ID } });
      await a.until(() => a.abandoned.length === 2 && reads(a).length === 2);
      expect(a.released).toEqual([]);
    });

    test("what is lost while a connection for it opens is not fetched over it", async () => {
      const a = member({ source });
      a.cluster.createTopic("orders", { partitions: 2 });
      for (let p = 0; p < 2; p++) a.fill("orders", p, 2);
      const api = protocol === "classic" ? "Heartbeat" : "ConsumerGroupHeartbeat";
      a.onBegin = async () => {
        if (a.begun.length > 1) return;
        // The connection that they are fetched over opens next, and slowly.
        a.cluster.script.on({ api: "ApiVersions", action: { do: "delay", ms: 4_000 } });
        a.cluster.script.on({ api, action: { do: "error", code: ERROR.UNKNOWN_MEMBER_ID } });
      };
      a.start();
      await a.until(() => a.abandoned.length === 2);
      expect(a.cluster.requests("Fetch")).toEqual([]);
      await a.until(() => reads(a).length === 2 && a.streams.slice(2).every((s) => s.position === s.end));
    });

    test("a commit under way is not told any more once its partition is lost", async () => {
      const a = member({ source, settings: { requestTimeoutMs: 5_000 } });
      a.cluster.createTopic("orders", { partitions: 1 });
      a.fill("orders", 0, 2);
      a.start();
      await a.until(() => a.streams.length === 1 && a.caughtUp());
      const api = protocol === "classic" ? "Heartbeat" : "ConsumerGroupHeartbeat";
      // The commit is not answered, and sent again; by then we are out, and in again with another stream of the partition.
      a.cluster.script.on({ api: "OffsetCommit", action: { do: "stall" } });
      a.cluster.script.on({ api, action: { do: "error", code: ERROR.UNKNOWN_MEMBER_ID } });
      let ended = false;
      const end = () => {
        ended = true;
      };
      a.source.acknowledge([{ stream: 0, next: 6n }]).then(end, end);
      await a.until(() => a.abandoned.length === 1 && ended && reads(a).length === 1);
      await a.pass(5_000);
      expect(a.cluster.committed("g", "orders", 0)).toBeUndefined();
    });

    test("partitions that stay are in every fetch while others are handed over, however long that takes", async () => {
      const a = member({ source });
      a.cluster.createTopic("orders", { partitions: 4 });
      a.start();
      await a.until(() => reads(a).length === 4);
      let handOver = () => {};
      let leaving: readonly number[] = [];
      a.onRelease = (streams) => {
        leaving = streams;
        return new Promise((resolve) => {
          handOver = resolve;
        });
      };
      const b = member({ source });
      b.start();
      await a.until(() => leaving.length === 2);
      const staying = a.streams.filter((_, i) => !leaving.includes(i));
      for (let round = 1; round <= 20; round++) {
        for (const { found } of staying) a.fill("orders", found.partition, 1);
        await a.until(() => staying.every((s) => s.position === BigInt(3 * round)));
      }
      handOver();
      await a.until(() => shared([a, b], 4) && reads(b).length === 2);
      // Those that stayed were never taken out of the fetch session; those that went were, once each.
      const forgotten = a.cluster
        .requests("Fetch")
        .flatMap((f) => f.body.forgottenTopicsData.flatMap((t) => t.partitions));
      const went = leaving.map((i) => a.streams[i]!.found.partition);
      expect(forgotten.sort()).toEqual(went.sort());
      expect(a.abandoned).toEqual([]);
    });

    test("partitions that are added are shared as well", async () => {
      const a = member({ source, settings: { metadataRefreshMs: 2_000 } });
      a.cluster.createTopic("orders", { partitions: 1 });
      const b = member({ source, settings: { metadataRefreshMs: 2_000 } });
      a.start();
      b.start();
      await a.until(() => shared([a, b], 1));
      a.cluster.addPartitions("orders", 3);
      await a.until(() => shared([a, b], 4));
      expect(Math.abs(reads(a).length - reads(b).length)).toBeLessThanOrEqual(protocol === "classic" ? 0 : 2);
    });

    test("a revocation that takes too long is abandoned, and the group goes on", async () => {
      const a = member({ source: { ...source, rebalance_timeout_ms: "5s" } });
      a.cluster.createTopic("orders", { partitions: 2 });
      a.onRelease = () => new Promise(() => {});
      a.start();
      await a.until(() => reads(a).length === 2);
      const b = member({ source });
      b.start();
      await a.until(() => reads(b).length === 1 && a.abandoned.length === 1);
      expect(a.outcome).toBe("running");
    });

    test("an abandoned revocation that ends late leaves alone the partition that came back meanwhile", async () => {
      const a = member({ source: { ...source, rebalance_timeout_ms: "5s" } });
      a.cluster.createTopic("orders", { partitions: 2 });
      let end = () => {};
      a.onRelease = () =>
        new Promise((resolve) => {
          end = resolve;
        });
      a.start();
      await a.until(() => reads(a).length === 2);
      const b = member({ source });
      b.start();
      await a.until(() => reads(b).length === 1 && a.abandoned.length === 1);
      all = [a];
      await b.close();
      await a.until(() => a.streams.length === 3);
      end();
      await a.pass(2_000);
      for (let p = 0; p < 2; p++) a.fill("orders", p, 1);
      await a.until(() => a.stream("orders", 0).position === 3n && a.stream("orders", 1).position === 3n);
      // Begun once each time that it was ours.
      expect([a.streams.length, a.outcome]).toEqual([3, "running"]);
    });

    test("what is lost while others are still handed over is dropped at once, and never committed", async () => {
      const a = member({ source: { ...source, rebalance_timeout_ms: "60s" } });
      a.cluster.createTopic("orders", { partitions: 2 });
      for (let p = 0; p < 2; p++) a.fill("orders", p, 2);
      let leaving: readonly number[] = [];
      a.onRelease = (streams) => {
        leaving = streams;
        return new Promise(() => {});
      };
      a.start();
      const api = protocol === "classic" ? "Heartbeat" : "ConsumerGroupHeartbeat";
      await a.until(() => reads(a).length === 2 && a.cluster.requests(api).length > 0);
      const id = a.cluster.requests(api)[0]!.body.memberId;
      const b = member({ source });
      b.start();
      await a.until(() => leaving.length === 1);
      const stays = 1 - leaving[0]!;
      const { partition } = a.streams[stays]!.found;
      const when = ({ body }: { body: unknown }) => (body as { memberId: string }).memberId === id;
      a.cluster.script.on({ api, when, action: { do: "error", code: ERROR.UNKNOWN_MEMBER_ID } });
      await a.until(() => a.abandoned.length === 2, 10_000);
      // Whoever has it by now has committed more; under our new membership an old commit would be taken.
      a.cluster.commit("g", "orders", partition, { offset: 6n, leaderEpoch: 0, metadata: null });
      await a.pass(5_000);
      await a.source.acknowledge([{ stream: stays, next: 3n }]);
      await a.pass(5_000);
      expect(a.cluster.committed("g", "orders", partition)?.offset).toBe(6n);
      expect(a.outcome).toBe("running");
    });

    test("a coordinator that moves is found again, and nothing is given up for it", async () => {
      const a = member({ cluster: { brokers: 3 }, source });
      a.cluster.createTopic("orders", { partitions: 3 });
      a.start();
      await a.until(() => reads(a).length === 3);
      a.cluster.kill(a.cluster.coordinatorOf("g")!.id);
      await a.pass(5_000);
      a.fill("orders", 0, 1);
      await a.until(() => a.stream("orders", 0).position === 3n);
      expect([a.released, a.abandoned, a.outcome]).toEqual([[], [], "running"]);
    });

    test("a claim under an epoch that was passed is made again once the broker has confirmed us", async () => {
      const a = member({ source });
      a.cluster.createTopic("orders", { partitions: 1 });
      let refusals = 0;
      a.onBegin = async () => {
        if (refusals++ > 0) return;
        throw new Failure("coverage.epoch_behind", "claimed under a later epoch");
      };
      a.start();
      await a.until(() => reads(a).length === 1);
      expect(a.epochs.map((e) => e === null)).toEqual([false, true]);
    });
  });
}

describe("racks of a classic group (KIP-881)", () => {
  test("each member reads what has a replica in its rack, and follows replicas that move", async () => {
    const rackOf = (rack: string) => ({
      source: { rack, metadata_refresh_ms: "2s" },
      cluster: { brokers: 6, racks: true },
    });
    const a = member(rackOf("r1"));
    // Replicas of partition p are on the brokers p+1 to p+3, of which broker n is in rack rn.
    a.cluster.createTopic("orders", { partitions: 6 });
    a.start();
    await a.until(() => reads(a).length === 6);
    const b = member(rackOf("r4"));
    b.start();
    await a.until(() => shared([a, b], 6) && reads(b).length === 3);
    expect([reads(a), reads(b)]).toEqual([
      [0, 4, 5],
      [1, 2, 3],
    ]);
    const [p0, p3] = [0, 3].map((p) => a.cluster.partition("orders", p) as { replicas: readonly number[] });
    [p0!.replicas, p3!.replicas] = [p3!.replicas, p0!.replicas];
    a.cluster.moveLeader("orders", 0, 4);
    a.cluster.moveLeader("orders", 3, 1);
    await a.until(() => reads(a).includes(3) && shared([a, b], 6));
    expect([reads(a), reads(b)]).toEqual([
      [3, 4, 5],
      [0, 1, 2],
    ]);
  });
});

describe("eager assignors", () => {
  test("everything is given up before a join, and comes back without a gap", async () => {
    const source = { assignors: ["range"] };
    const a = member({ source });
    a.cluster.createTopic("orders", { partitions: 4 });
    a.start();
    await a.until(() => reads(a).length === 4);
    const b = member({ source });
    b.start();
    await a.until(() => shared([a, b], 4) && reads(b).length === 2);
    expect(a.released.length).toBe(4);
  });
});

describe("static members", () => {
  test("a restart within the session moves nothing", async () => {
    const a = member({ source: { group_instance_id: "i1" } });
    a.cluster.createTopic("orders", { partitions: 4 });
    const b = member({ source: { group_instance_id: "i2" } });
    a.start();
    b.start();
    await a.until(() => shared([a, b], 4) && reads(b).length === 2);
    const before = reads(b);
    all = [a];
    await b.close();
    const c = member({ source: { group_instance_id: "i2" }, seed: 9 });
    c.start();
    await a.until(() => reads(c).length === 2);
    expect(reads(c)).toEqual(before);
    expect(a.released).toEqual([]);
  });

  test("the older of two with one instance id ends, and says why", async () => {
    const a = member({ source: { group_instance_id: "i1" } });
    a.cluster.createTopic("orders", { partitions: 2 });
    a.start();
    await a.until(() => reads(a).length === 2);
    const b = member({ source: { group_instance_id: "i1" } });
    b.start();
    await a.until(() => a.outcome === "kafka.instance_fenced" && reads(b).length === 2);
    expect(a.abandoned.length).toBe(2);
  });
});

describe("the protocol of the group", () => {
  for (const profile of ["3.9", "2.8", "1.0"] as const) {
    test(`brokers without KIP-848 (${profile}): a classic group instead`, async () => {
      const a = member({ cluster: { profile }, source: { group_protocol: "consumer" } });
      a.cluster.createTopic("orders", { partitions: 2 });
      a.start();
      await a.until(() => reads(a).length === 2);
      expect(a.cluster.requests("ConsumerGroupHeartbeat")).toEqual([]);
      expect(a.cluster.classicGroup("g").members.length).toBe(1);
    });
  }

  test("a broker that refuses the request itself: the same", async () => {
    const a = member({ source: { group_protocol: "consumer" } });
    a.cluster.createTopic("orders", { partitions: 2 });
    const refuse = { do: "error", code: ERROR.UNSUPPORTED_VERSION } as const;
    a.cluster.script.on({ api: "ConsumerGroupHeartbeat", times: 10, action: refuse });
    a.start();
    await a.until(() => reads(a).length === 2);
  });

  test("members with no assignor in common: it ends, and says so", async () => {
    const a = member({ source: { assignors: ["range"] } });
    a.cluster.createTopic("orders", { partitions: 2 });
    a.start();
    await a.until(() => reads(a).length === 2);
    const b = member({ source: { assignors: ["sticky"] } });
    b.start();
    await a.until(() => b.outcome === "kafka.group_refused");
    expect(b.failure?.hint).toContain("source.assignors");
    expect(a.outcome).toBe("running");
  });
});

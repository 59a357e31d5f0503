import { afterEach, describe, expect, test } from "bun:test";
import { buildBatch } from "../../brokers/kafka/batch-builder.ts";
import type { ProfileName } from "../../brokers/kafka/profiles.ts";
import { type BenchOptions, SourceBench } from "./source-bench.ts";

let bench: SourceBench | null = null;

/** A bench whose promises are checked when its test is over. */
function open(options: BenchOptions = {}): SourceBench {
  bench = new SourceBench(options);
  return bench;
}

afterEach(async () => {
  const b = bench;
  bench = null;
  if (b === null) return;
  await b.close();
  expect(b.broken).toEqual([]);
  expect(b.outstanding.size).toBe(0);
});

const RUNNING = { metadata_refresh_ms: 1000 };

describe("reading", () => {
  test("several brokers, topics and lanes: everything is read once, in order, and what comes later too", async () => {
    const b = open({ cluster: { brokers: 3 }, lanes: 2, source: { topics: ["orders", "clicks"] } });
    for (const topic of ["orders", "clicks"]) {
      b.cluster.createTopic(topic, { partitions: 3 });
      for (let p = 0; p < 3; p++) b.fill(topic, p, 20);
    }
    b.start();
    await b.until(() => b.caughtUp());
    expect(b.streams.length).toBe(6);
    expect(b.begun.length).toBe(1);
    b.fill("orders", 1, 5);
    await b.until(() => b.caughtUp());
    expect(b.stream("orders", 1).position).toBe(75n);
    expect(b.stream("orders", 1).end).toBe(75n);
    expect([b.outcome, b.troubles.length, b.healthies]).toEqual(["running", 0, 1]);
  });

  for (const profile of ["3.9", "2.8", "1.0", "zero-topic-ids", "event-hubs"] as ProfileName[]) {
    test(`a broker of the kind ${profile}`, async () => {
      const b = open({ cluster: { profile, brokers: 2 }, source: { group: "g" } });
      b.cluster.createTopic("orders", { partitions: 2 });
      b.fill("orders", 0, 10);
      b.fill("orders", 1, 10);
      b.start();
      await b.until(() => b.caughtUp());
      let done = false;
      void b.source.acknowledge([{ stream: 0, next: 30n }]).then(() => {
        done = true;
      });
      await b.until(() => done);
      expect(b.cluster.committed("g", "orders", 0)?.offset).toBe(30n);
      // A broker that hangs up on a newer ApiVersions is asked an older one; nothing else may upset any of them.
      expect(b.cluster.complaints.filter((c) => !c.includes("ApiVersions v4"))).toEqual([]);
    });
  }

  test("fetch limits: small partition shares still read everything, and a batch larger than all of them", async () => {
    const b = open({ source: { partition_max_bytes: 1024, fetch_max_bytes: 1024 } });
    b.cluster.createTopic("orders", { partitions: 3 });
    for (let p = 0; p < 3; p++) b.fill("orders", p, 20);
    b.cluster.append("orders", 1, buildBatch({ records: [{ value: "x".repeat(50_000) }] }));
    b.start();
    await b.until(() => b.caughtUp());
  });

  // Offsets are what the wire says, not how many records there are: compaction leaves holes and empty batches.
  test("holes, an empty batch and a batch that ends behind its last record count as read", async () => {
    const b = open();
    b.cluster.createTopic("orders");
    const log = b.cluster.log("orders", 0);
    const raw = (base: bigint, lastOffsetDelta: number, records: number) =>
      log.appendRaw(
        buildBatch({
          baseOffset: base,
          lastOffsetDelta,
          records: Array.from({ length: records }, () => ({ value: "v" })),
          baseTimestamp: 1n,
        }),
        base,
        base + BigInt(lastOffsetDelta) + 1n,
      );
    raw(0n, 9, 2);
    raw(40n, 39, 0);
    raw(100n, 0, 1);
    b.start();
    await b.until(() => b.caughtUp());
    const [first] = b.stream("orders", 0).frames;
    expect([first?.from, first?.next]).toEqual([0n, 101n]);
  });

  test("offsets beyond 2^53 are exact", async () => {
    const b = open();
    const start = 2n ** 53n + 1n;
    b.cluster.createTopic("orders", { start });
    b.fill("orders", 0, 3, 1);
    b.start();
    await b.until(() => b.caughtUp());
    expect(b.stream("orders", 0).position).toBe(start + 3n);
  });

  test("read_committed ends at the last stable offset and names aborted transactions", async () => {
    const b = open();
    b.cluster.createTopic("orders");
    const tx = (value: string) => buildBatch({ records: [{ value }], transactional: true, producerId: 7n });
    b.cluster.append("orders", 0, tx("a"));
    b.cluster.endTransaction("orders", 0, "abort", 7n);
    b.cluster.append("orders", 0, tx("b"));
    b.start();
    await b.until(() => b.streams[0]?.position === 2n);
    await b.pass(1000);
    const s = b.stream("orders", 0);
    expect([s.position, s.end, s.frames[0]?.committedOnly]).toEqual([2n, 2n, true]);
    expect(s.frames[0]?.aborted).toEqual([expect.objectContaining({ producerId: 7n, firstOffset: 0n })]);
    b.cluster.endTransaction("orders", 0, "commit", 7n);
    await b.until(() => b.caughtUp());
    expect(s.position).toBe(4n);
  });

  test("read_uncommitted reads on, and ignores any list of aborted transactions", async () => {
    const b = open({ source: { isolation: "read_uncommitted" } });
    b.cluster.createTopic("orders");
    b.cluster.append(
      "orders",
      0,
      buildBatch({ records: [{ value: "a" }], transactional: true, producerId: 7n }),
    );
    b.cluster.script.on({
      api: "Fetch",
      times: 50,
      action: {
        do: "edit",
        change: (response) => {
          const fetched = response as { responses?: { partitions?: object[] }[] };
          for (const t of fetched.responses ?? []) {
            for (const p of t.partitions ?? [])
              Object.assign(p, { abortedTransactions: [{ producerId: 7n, firstOffset: 0n }] });
          }
          return response;
        },
      },
    });
    b.start();
    await b.until(() => b.caughtUp());
    const [frame] = b.stream("orders", 0).frames;
    expect([frame?.committedOnly, frame?.aborted]).toEqual([false, []]);
  });

  test("the session names only what changed: an idle topic costs an empty request", async () => {
    const b = open();
    b.cluster.createTopic("orders", { partitions: 3 });
    for (let p = 0; p < 3; p++) b.fill("orders", p, 1);
    b.start();
    await b.until(() => b.caughtUp());
    await b.pass(2000);
    const fetches = b.cluster.requests("Fetch");
    const last = fetches[fetches.length - 1]!.body;
    expect([last.sessionId > 0, last.topics.length, last.forgottenTopicsData.length]).toEqual([true, 0, 0]);
    expect(fetches.filter((f) => f.body.sessionEpoch === 0).length).toBe(1);
  });
});

describe("room", () => {
  test("a lane without room is not fetched for; the session survives the wait", async () => {
    const b = open({ lanes: 2 });
    b.cluster.createTopic("orders", { partitions: 2 });
    b.setRoom(0, 0);
    b.fill("orders", 0, 5);
    b.fill("orders", 1, 5);
    b.start();
    await b.until(() => b.streams[1]?.position === 15n);
    await b.pass(3000);
    expect(b.streams[0]!.position).toBe(0n);
    b.setRoom(0, 1 << 20);
    await b.until(() => b.caughtUp());
    b.setRoom(0, 0);
    b.fill("orders", 0, 1);
    await b.pass(1000);
    b.setRoom(0, 1 << 20);
    await b.until(() => b.caughtUp());
    expect(b.cluster.requests("Fetch").filter((f) => f.body.sessionEpoch === 0).length).toBe(2);
  });

  test("what a fetch may bring is bounded by the room", async () => {
    const b = open();
    b.cluster.createTopic("orders");
    b.setRoom(0, 100_000);
    b.fill("orders", 0, 1);
    b.start();
    await b.until(() => b.caughtUp());
    expect(b.cluster.requests("Fetch")[0]!.body.maxBytes).toBe(100_000);
  });
});

describe("seek", () => {
  test("frames under way are dropped, and reading goes on at the new position with the new attempt", async () => {
    const b = open();
    b.cluster.createTopic("orders");
    b.fill("orders", 0, 10);
    b.start();
    await b.until(() => b.caughtUp());
    // A long poll is under way for position 30; its answer must not be delivered.
    b.seek(0, 6n);
    b.fill("orders", 0, 1);
    await b.until(() => b.caughtUp());
    const after = b.streams[0]!.frames.filter((f) => f.attempt === 1);
    expect([after[0]?.from, b.streams[0]!.position]).toEqual([6n, 33n]);
  });

  test("a stream that is not ours is ignored", () => {
    const b = open();
    b.source.seek(9, 0n, 1);
  });
});

describe("pause", () => {
  test("nothing is fetched or delivered any more, but commits still go out", async () => {
    const b = open({ source: { group: "g" } });
    b.cluster.createTopic("orders");
    b.fill("orders", 0, 3);
    b.start();
    await b.until(() => b.caughtUp());
    b.source.pause();
    b.fill("orders", 0, 3);
    await b.pass(2000);
    expect(b.streams[0]!.position).toBe(9n);
    let done = false;
    void b.source.acknowledge([{ stream: 0, next: 9n }]).then(() => {
      done = true;
    });
    await b.until(() => done);
    expect(b.cluster.committed("g", "orders", 0)?.offset).toBe(9n);
    expect(b.outcome).toBe("running");
  });
});

describe("growth", () => {
  test("partitions that are added later are found with the next metadata and begun", async () => {
    const b = open({ source: RUNNING });
    b.cluster.createTopic("orders", { partitions: 1 });
    b.fill("orders", 0, 2);
    b.start();
    await b.until(() => b.caughtUp());
    b.cluster.addPartitions("orders", 2);
    b.fill("orders", 2, 4);
    await b.until(() => b.streams.length === 3 && b.caughtUp());
    expect(b.begun.map((found) => found.map((f) => f.partition))).toEqual([[0], [1, 2]]);
  });

  test("an explicit list of partitions stays as it is", async () => {
    const b = open({ source: { ...RUNNING, partitions: { orders: [1] } } });
    b.cluster.createTopic("orders", { partitions: 3 });
    b.fill("orders", 1, 2);
    b.start();
    await b.until(() => b.caughtUp());
    b.cluster.addPartitions("orders", 1);
    await b.pass(3000);
    expect(b.streams.map((s) => s.found.partition)).toEqual([1]);
  });
});

/**
 * Goal: topics by a pattern are read as they come and go, whole and by every protocol of sharing; a leader watches the
 * topics of all members. Method: sources on the test cluster in simulated time, whose host begins at the end of a log
 * unless it is told that the partition is new.
 */
import { afterEach, describe, expect, test } from "bun:test";
import { ERROR } from "../../../src/adapters/kafka/wire/errors.ts";
import { type BenchOptions, SourceBench } from "./source-bench.ts";

let all: SourceBench[] = [];

/** Metadata every two seconds. */
function open(options: BenchOptions = {}): SourceBench {
  const first = all[0];
  const bench = new SourceBench({
    seed: all.length + 1,
    begin: "latest",
    ...(first === undefined ? {} : { beside: first }),
    ...options,
    settings: { metadataRefreshMs: 2_000, ...options.settings },
    source: { start: "latest", session_timeout_ms: "6s", ...options.source },
  });
  all.push(bench);
  return bench;
}

afterEach(async () => {
  const benches = all;
  all = [];
  for (const b of benches) await b.close();
  for (const b of benches) expect([b.broken, b.outstanding.size]).toEqual([[], 0]);
});

/** "topic/partition" that a member reads now. */
function reads(b: SourceBench): string[] {
  const gone = new Set([...b.released, ...b.abandoned]);
  return b.streams.flatMap((s, i) => (gone.has(i) ? [] : [`${s.found.topic}/${s.found.partition}`])).sort();
}

const PROTOCOLS = ["none", "classic", "consumer"] as const;

for (const protocol of PROTOCOLS) {
  const by = (topics_pattern: string) => ({ topics_pattern, group: "g", group_protocol: protocol });
  describe(`a pattern of topics, shared by ${protocol === "none" ? "nobody" : `a ${protocol} group`}`, () => {
    test("what matches is read, internal topics never", async () => {
      const b = open({ source: by(".*orders.*") });
      for (const t of ["orders", "orders.eu", "__orders", "returns"]) b.cluster.createTopic(t);
      b.start();
      await b.until(() => reads(b).length === 2);
      await b.pass(5_000);
      expect(reads(b)).toEqual(["orders.eu/0", "orders/0"]);
      expect(b.awaiting).toBe(0);
    });

    test("a topic that comes is read from its first record, though a start is at the end", async () => {
      const b = open({ source: by("orders.*") });
      b.cluster.createTopic("orders.old");
      b.fill("orders.old", 0, 2);
      b.start();
      await b.until(() => reads(b).length === 1);
      b.cluster.createTopic("orders.new", { partitions: 2 });
      b.fill("orders.new", 0, 1);
      b.fill("orders.new", 1, 2);
      await b.until(() => reads(b).length === 3 && b.caughtUp());
      expect(b.stream("orders.old", 0).start.position).toBe(6n);
      expect([0, 1].map((p) => b.stream("orders.new", p).start.position)).toEqual([0n, 0n]);
      b.cluster.addPartitions("orders.new", 1);
      b.fill("orders.new", 2, 1);
      await b.until(() => reads(b).length === 4 && b.caughtUp());
      expect(b.stream("orders.new", 2).start.position).toBe(0n);
    });

    test("a pattern that matches nothing waits, says so, and begins with the first topic", async () => {
      const b = open({ source: by("orders-[0-9]+") });
      b.cluster.createTopic("returns");
      b.start();
      await b.until(() => b.troubles.length > 0);
      expect(b.troubles[0]).toMatchObject({ code: "kafka.unknown_topic", at: "source.topics_pattern" });
      expect(b.troubles[0]!.message).toContain("no topic matches orders-[0-9]+");
      await b.pass(60_000);
      expect([b.outcome, b.awaiting]).toEqual(["running", 1]);
      b.cluster.createTopic("orders-7");
      b.fill("orders-7", 0, 2);
      await b.until(() => reads(b).length === 1 && b.caughtUp());
      expect(b.stream("orders-7", 0).start.position).toBe(0n);
      await b.until(() => b.healthies > 0);
      expect(b.awaiting).toBe(0);
    });

    test("a topic that vanishes is given up in good order after a while; one that is missing for a moment is not", async () => {
      const b = open({ source: by("orders.*") });
      b.cluster.createTopic("orders.a");
      const topic = b.cluster.createTopic("orders.b");
      b.start();
      await b.until(() => reads(b).length === 2);
      const without = (r: object) => {
        const response = r as { topics: { name: string }[] };
        return { ...response, topics: response.topics.filter((t) => t.name !== "orders.b") };
      };
      b.cluster.script.on({ api: "Metadata", times: 3, action: { do: "edit", change: without } });
      await b.until(() => b.troubles.some((f) => f.message.includes("orders.b is not there any more")));
      await b.pass(10_000);
      b.fill("orders.b", 0, 1);
      await b.until(() => b.stream("orders.b", 0).position === 3n);
      expect([b.released, b.abandoned]).toEqual([[], []]);
      b.cluster.deleteTopic("orders.b");
      await b.until(() => b.released.length + b.abandoned.length === 1);
      expect([reads(b), b.ended]).toEqual([["orders.a/0"], []]);
      b.fill("orders.a", 0, 1);
      await b.until(() => b.stream("orders.a", 0).position === 3n);
      expect(topic.name).toBe("orders.b");
      await b.until(() => b.healthies > 0);
    });
  });
}

for (const protocol of ["classic", "consumer"] as const) {
  test(`members of a ${protocol} group share the topics of a pattern as they come and go`, async () => {
    const source = { topics_pattern: "t.*", group: "g", group_protocol: protocol };
    const a = open({ source });
    for (let i = 0; i < 3; i++) a.cluster.createTopic(`t${i}`);
    const b = open({ source });
    a.start();
    b.start();
    const shared = (n: number) => {
      const read = [...reads(a), ...reads(b)];
      return read.length === n && new Set(read).size === n && reads(a).length > 0 && reads(b).length > 0;
    };
    await a.until(() => shared(3));
    for (let i = 3; i < 6; i++) {
      a.cluster.createTopic(`t${i}`, { partitions: 2 });
      for (let p = 0; p < 2; p++) a.fill(`t${i}`, p, 1);
    }
    await a.until(() => shared(9));
    const whole = () =>
      [3, 4, 5].every((i) =>
        [0, 1].every((p) =>
          [a, b].some((m) =>
            m.streams.some((s) => s.found.topic === `t${i}` && s.found.partition === p && s.position === 3n),
          ),
        ),
      );
    await a.until(whole);
    a.cluster.deleteTopic("t0");
    await a.until(() => shared(8));
    expect([a.outcome, b.outcome]).toEqual(["running", "running"]);
  });

  test(`the members of a ${protocol} group read different topics: partitions that are added to either are assigned`, async () => {
    const a = open({ source: { topics: ["one"], group: "g", group_protocol: protocol } });
    const b = open({ source: { topics: ["two"], group: "g", group_protocol: protocol } });
    a.cluster.createTopic("one");
    a.cluster.createTopic("two");
    a.start();
    await a.until(() => reads(a).length === 1);
    b.start();
    await a.until(() => reads(b).length === 1);
    // Of a topic that the leader does not read itself.
    a.cluster.addPartitions("two", 1);
    await a.until(() => reads(b).length === 2);
    a.cluster.addPartitions("one", 1);
    await a.until(() => reads(a).length === 2 && reads(b).length === 2);
    expect([reads(a), reads(b)]).toEqual([
      ["one/0", "one/1"],
      ["two/0", "two/1"],
    ]);
  });
}

test("a KIP-848 member without a topic left waits for one before it joins again", async () => {
  const b = open({ source: { topics_pattern: "t.*", group: "g", group_protocol: "consumer" } });
  b.cluster.createTopic("t1");
  b.start();
  await b.until(() => reads(b).length === 1);
  b.cluster.deleteTopic("t1");
  await b.until(
    () =>
      b.released.length + b.abandoned.length === 1 &&
      b.troubles.some((f) => f.message.includes("no topic matches")),
  );
  // It is thrown out meanwhile: a join that names no topic would be refused.
  const error = { do: "error", code: ERROR.UNKNOWN_MEMBER_ID } as const;
  b.cluster.script.on({ api: "ConsumerGroupHeartbeat", action: error });
  await b.pass(20_000);
  expect(b.outcome).toBe("running");
  b.cluster.createTopic("t2");
  b.fill("t2", 0, 1);
  await b.until(() => reads(b).includes("t2/0") && b.stream("t2", 0).position === 3n);
});

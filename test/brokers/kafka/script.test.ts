/** Goal: every fault on order does what it says, once or as often as told. Method: raw requests in memory. */
import { expect, test } from "bun:test";
import { ERROR } from "../../../src/adapters/kafka/wire/errors.ts";
import { correlationIdOf } from "../../../src/adapters/kafka/wire/protocol.ts";
import { DirectClient, world } from "./direct-client.ts";

const topics = [] as const;

test("observers see requests without using them up", () => {
  const { cluster, client } = world();
  const seen: string[] = [];
  cluster.script.on({
    action: { do: "observe", see: (r, node) => seen.push(`${node} ${r.api} v${r.version}`) },
    times: 2,
  });
  cluster.script.on({ api: "Metadata", action: { do: "error", code: 7 } });
  expect(client.ask("Metadata", 13, { topics }).errorCode).toBe(7);
  expect(client.ask("Metadata", 13, { topics }).errorCode).toBe(0);
  client.ask("Metadata", 13, { topics });
  expect(seen).toEqual(["1 Metadata v13", "1 Metadata v13"]);
});

test("rules skip, count, choose by node and by content, and can be taken back", () => {
  const { cluster, client } = world({ brokers: 2 });
  const other = new DirectClient(cluster, 2);
  const action = { do: "error", code: 7 } as const;
  const rule = cluster.script.on({
    api: "Metadata",
    node: 1,
    skip: 1,
    times: 2,
    action,
    when: (r) => r.version === 13,
  });
  const codes = (c: DirectClient, version: number) => c.ask("Metadata", version, { topics }).errorCode;
  expect([codes(client, 12), codes(other, 13), codes(client, 13)]).toEqual([0, 0, 0]);
  expect([codes(client, 13), codes(client, 13), codes(client, 13)]).toEqual([7, 7, 0]);
  expect(rule.fired).toBe(2);
  const endless = cluster.script.on({ times: Number.POSITIVE_INFINITY, action });
  expect([codes(client, 13), codes(client, 13)]).toEqual([7, 7]);
  endless.remove();
  expect(codes(client, 13)).toBe(0);
  cluster.script.on({ action });
  cluster.script.clear();
  expect(codes(client, 13)).toBe(0);
});

test("respond answers without effect, edit changes the answer after the effect", () => {
  const { cluster, client } = world();
  const commit = (offset: bigint) => ({
    groupId: "g",
    topics: [{ name: "t", partitions: [{ committedOffset: offset }] }],
  });
  cluster.script.on({ api: "OffsetCommit", action: { do: "respond", body: () => ({ throttleTimeMs: 5 }) } });
  expect(client.ask("OffsetCommit", 7, commit(1n))).toEqual({ throttleTimeMs: 5, topics: [] });
  expect(cluster.committed("g", "t", 0)).toBeUndefined();
  cluster.script.on({
    api: "OffsetCommit",
    action: { do: "edit", change: (body) => ({ ...body, throttleTimeMs: 6 }) },
  });
  expect(client.ask("OffsetCommit", 7, commit(2n)).throttleTimeMs).toBe(6);
  expect(cluster.committed("g", "t", 0)?.offset).toBe(2n);
});

test("stall never answers and holds up what follows; delay only lets it wait", () => {
  const { cluster, clock, client } = world();
  cluster.script.on({ action: { do: "delay", ms: 100 } });
  client.send("Metadata", 1, { topics });
  client.send("Metadata", 1, { topics });
  clock.advance(99);
  expect(client.answers.length).toBe(0);
  clock.advance(1);
  expect(client.answers.map(correlationIdOf)).toEqual([1, 2]);
  cluster.script.on({ action: { do: "stall" } });
  client.send("Metadata", 1, { topics });
  client.send("Metadata", 1, { topics });
  clock.advance(1_000_000);
  expect(client.answers.length).toBe(2);
  expect(client.closed).toBe("open");
});

test("a delayed answer dies with its connection", () => {
  const { cluster, clock, client } = world();
  cluster.script.on({ action: { do: "delay", ms: 100 } });
  client.send("Metadata", 1, { topics });
  cluster.cutConnections(1);
  clock.advance(100);
  expect([client.answers.length, clock.waiting]).toEqual([0, 0]);
});

test("drop before the effect, and after it: the answer of a commit that took place is lost", () => {
  for (const when of ["before", "after"] as const) {
    const { cluster, client } = world();
    cluster.script.on({ api: "OffsetCommit", action: { do: "drop", when } });
    client.send("OffsetCommit", 7, {
      groupId: "g",
      topics: [{ name: "t", partitions: [{ committedOffset: 9n }] }],
    });
    expect([client.closed, client.answers.length]).toEqual(["reset", 0]);
    expect(cluster.committed("g", "t", 0)?.offset).toBe(when === "after" ? 9n : undefined);
  }
});

test("bytes, length and correlation id of an answer can be wrong", () => {
  const { cluster, client } = world();
  cluster.script.on({ action: { do: "miscount", by: 3 } });
  client.send("Metadata", 1, { topics });
  expect(correlationIdOf(client.answers[0]!)).toBe(4);
  cluster.script.on({ action: { do: "bytes", change: (bytes) => bytes.map((b) => b ^ 0xff) } });
  client.send("Metadata", 1, { topics });
  expect(correlationIdOf(client.answers[1]!)).toBe(~2);
  cluster.script.on({ action: { do: "truncate", bytes: 10 } });
  client.send("Metadata", 1, { topics });
  expect([client.answers[2]!.length, client.closed]).toEqual([6, "in order"]);
});

test("an error for a whole request comes in the shape of its API", () => {
  const { cluster, client } = world();
  const action = { do: "error", code: 15 } as const;
  cluster.script.on({ times: 5, action });
  expect(client.ask("FindCoordinator", 4, { coordinatorKeys: ["g"] }).coordinators[0]).toMatchObject({
    errorCode: 15,
    nodeId: -1,
  });
  expect(client.ask("FindCoordinator", 3, { key: "g" }).errorCode).toBe(15);
  expect(
    client.ask("OffsetFetch", 8, { groups: [{ groupId: "g", topics: null }] }).groups[0]!.errorCode,
  ).toBe(15);
  expect(client.ask("Fetch", 12, {}).errorCode).toBe(15);
  expect(client.ask("InitProducerId", 4, { transactionalId: null }).errorCode).toBe(15);
  cluster.script.on({ action });
  expect(() => client.send("ListOffsets", 4, {})).toThrow("ListOffsets has no error for the whole request");
});

test("a partition's fault strikes as often as told, the API that was named or any that asks its leader", () => {
  const { cluster, client } = world();
  const list = () =>
    client.ask("ListOffsets", 4, { topics: [{ name: "t", partitions: [{ timestamp: -1n }] }] }).topics[0]!
      .partitions[0]!.errorCode;
  const meta = () =>
    client.ask("Metadata", 9, { topics: [{ name: "t" }] }).topics[0]!.partitions[0]!.errorCode;
  cluster.failPartition("t", 0, ERROR.UNKNOWN_LEADER_EPOCH, { times: 2 });
  expect([meta(), list(), list(), list()]).toEqual([0, 75, 75, 0]);
  cluster.failPartition("t", 0, 56, { api: "Metadata" });
  expect([list(), meta(), meta()]).toEqual([0, 56, 0]);
});

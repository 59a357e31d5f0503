import { describe, expect, test } from "bun:test";
import {
  FetchSession,
  nextSessionEpoch,
  type WantedPartition,
} from "../../../../src/adapters/kafka/session/fetch-session.ts";

const wanted = (topic: string, partition: number, position = 0n, more: Partial<WantedPartition> = {}) => ({
  topic,
  topicId: `id-of-${topic}`,
  partition,
  leaderEpoch: 3,
  position,
  lastFetchedEpoch: -1,
  maxBytes: 100,
  ...more,
});
const names = (list: readonly WantedPartition[]) => list.map((p) => `${p.topic}/${p.partition}`);

describe("fetch session (KIP-227)", () => {
  test("a new one is asked for with everything, then only changes go out", () => {
    const s = new FetchSession();
    const first = s.plan([wanted("a", 0), wanted("a", 1)], true);
    expect({ ...first, send: names(first.send) }).toEqual({
      sessionId: 0,
      sessionEpoch: 0,
      send: ["a/0", "a/1"],
      forget: [],
    });
    s.answered(77);
    expect(s.id).toBe(77);
    const second = s.plan([wanted("a", 0, 5n), wanted("a", 1)], true);
    expect({ ...second, send: names(second.send) }).toEqual({
      sessionId: 77,
      sessionEpoch: 1,
      send: ["a/0"],
      forget: [],
    });
    s.answered(77);
    const third = s.plan([wanted("a", 0, 5n), wanted("a", 1)], true);
    expect([third.sessionEpoch, names(third.send)]).toEqual([2, []]);
  });

  test("each field that the broker remembers counts as a change", () => {
    const changes: Partial<WantedPartition>[] = [
      { leaderEpoch: 4 },
      { lastFetchedEpoch: 3 },
      { maxBytes: 200 },
    ];
    for (const change of changes) {
      const s = new FetchSession();
      s.plan([wanted("a", 0)], true);
      s.answered(1);
      expect(names(s.plan([wanted("a", 0, 0n, change)], true).send)).toEqual(["a/0"]);
    }
  });

  test("partitions that left are forgotten, also when a whole topic leaves", () => {
    const s = new FetchSession();
    s.plan([wanted("a", 0), wanted("a", 1), wanted("b", 0)], true);
    s.answered(1);
    const plan = s.plan([wanted("a", 1)], true);
    expect([names(plan.send), names(plan.forget)]).toEqual([[], ["a/0", "b/0"]]);
    s.answered(1);
    // One that comes back is new to the broker.
    expect(names(s.plan([wanted("a", 0), wanted("a", 1)], true).send)).toEqual(["a/0"]);
  });

  test("the epoch goes from 2^31 - 1 to 1, never to 0", () => {
    expect([0, 1, 0x7ffffffe, 0x7fffffff].map(nextSessionEpoch)).toEqual([1, 2, 0x7fffffff, 1]);
  });

  test("a broker that holds no session (id 0) is asked in full each time", () => {
    const s = new FetchSession();
    s.plan([wanted("a", 0)], true);
    s.answered(0);
    const plan = s.plan([wanted("a", 0)], true);
    expect([plan.sessionId, plan.sessionEpoch, names(plan.send)]).toEqual([0, 0, ["a/0"]]);
  });

  test("after a failure everything is asked for again; with the id, the broker drops the old session", () => {
    for (const keepId of [true, false]) {
      const s = new FetchSession();
      s.plan([wanted("a", 0)], true);
      s.answered(9);
      s.plan([wanted("a", 0, 3n)], true);
      s.reset(keepId);
      const plan = s.plan([wanted("a", 0, 3n)], true);
      expect([plan.sessionId, plan.sessionEpoch, names(plan.send)]).toEqual([keepId ? 9 : 0, 0, ["a/0"]]);
    }
  });

  test("an answer to a plan that was given up does not count", () => {
    const s = new FetchSession();
    s.plan([wanted("a", 0)], true);
    s.reset();
    s.answered(5);
    expect(s.id).toBe(0);
  });

  test("going from names to ids, or back, needs another session", () => {
    const s = new FetchSession();
    s.plan([wanted("a", 0)], true);
    s.answered(4);
    expect(s.plan([wanted("a", 0)], false).sessionEpoch).toBe(0);
  });

  test("by id, a topic made anew is another partition: the old one is forgotten", () => {
    const s = new FetchSession();
    s.plan([wanted("a", 0)], true);
    s.answered(4);
    const renewed = { ...wanted("a", 0), topicId: "new-id" };
    const plan = s.plan([renewed], true);
    expect([plan.send.map((p) => p.topicId), plan.forget.map((p) => p.topicId)]).toEqual([
      ["new-id"],
      ["id-of-a"],
    ]);
  });
});

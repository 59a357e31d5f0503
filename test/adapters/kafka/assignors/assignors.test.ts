/**
 * Goal: an assignment is whole, even, sticky and safe, whatever the members say. Method: cases derived in the
 * comments, and random groups against the properties; Kafka's own classes are compared in parity.test.ts.
 */
import { describe, expect, test } from "bun:test";
import type {
  Assignor,
  GroupAssignment,
  GroupMember,
} from "../../../../src/adapters/kafka/assignors/assignor.ts";
import { javaMapOrder } from "../../../../src/adapters/kafka/assignors/java-order.ts";
import { byTopic } from "../../../../src/adapters/kafka/assignors/sticky.ts";
import { ASSIGNOR_NAMES, ASSIGNORS } from "../../../../src/adapters/kafka/assignors/table.ts";
import {
  decodeSubscription,
  encodeSubscription,
} from "../../../../src/adapters/kafka/wire/consumer-protocol.ts";
import { SeededChance } from "../../../sim/chance.ts";

interface Of {
  readonly topics?: readonly string[];
  readonly owned?: readonly string[];
  readonly generation?: number;
  readonly instanceId?: string;
  readonly rack?: string | null;
}

const partition = (text: string) => {
  const at = text.lastIndexOf("/");
  return { topic: text.slice(0, at), partition: Number(text.slice(at + 1)) };
};

/** Goes over the wire, as every subscription does. */
function member(
  memberId: string,
  of: Of = {},
  assignor: Assignor = ASSIGNORS["cooperative-sticky"],
): GroupMember {
  const owned = (of.owned ?? []).map(partition);
  const generation = of.generation ?? (owned.length > 0 ? 1 : -1);
  const subscription = encodeSubscription({
    topics: of.topics ?? ["t"],
    userData: assignor.userData?.(owned, generation) ?? null,
    ownedPartitions: assignor.cooperative ? byTopic(owned) : [],
    generationId: generation,
    rackId: of.rack ?? null,
  });
  return { memberId, instanceId: of.instanceId ?? null, subscription: decodeSubscription(subscription) };
}

const text = (a: GroupAssignment): Record<string, string> =>
  Object.fromEntries(
    [...a].map(([id, list]) => [
      id,
      list
        .map((p) => `${p.topic}/${p.partition}`)
        .sort()
        .join(" "),
    ]),
  );

describe("range", () => {
  const { range } = ASSIGNORS;

  test("the first members take one more, by topic", () => {
    const a = range.assign(
      new Map([
        ["t", 3],
        ["u", 3],
      ]),
      ["b", "a"].map((id) => member(id, { topics: ["t", "u"] }, range)),
    );
    expect(text(a)).toEqual({ a: "t/0 t/1 u/0 u/1", b: "t/2 u/2" });
  });

  test("static members come first, by instance id", () => {
    const members = [member("a", {}, range), member("z", { instanceId: "i" }, range)];
    expect(text(range.assign(new Map([["t", 1]]), members))).toEqual({ a: "", z: "t/0" });
  });
});

describe("roundrobin", () => {
  const { roundrobin } = ASSIGNORS;

  // librdkafka #3159, #2121: unlike subscriptions ended in a loop or a crash.
  test("members that do not subscribe are passed over", () => {
    const members = [
      member("a", { topics: ["t"] }, roundrobin),
      member("b", { topics: ["t", "u"] }, roundrobin),
      member("c", { topics: ["t", "u", "v"] }, roundrobin),
    ];
    const a = roundrobin.assign(
      new Map([
        ["t", 1],
        ["u", 2],
        ["v", 3],
      ]),
      members,
    );
    expect(text(a)).toEqual({ a: "t/0", b: "u/0", c: "u/1 v/0 v/1 v/2" });
  });
});

describe("sticky", () => {
  const { sticky } = ASSIGNORS;

  test("keeps what members had by their user data, and gives a newcomer the least that is even", () => {
    const members = [
      member("a", { owned: ["t/0", "t/1", "t/2"] }, sticky),
      member("b", { owned: ["t/3", "t/4", "t/5"] }, sticky),
      member("c", {}, sticky),
    ];
    expect(text(sticky.assign(new Map([["t", 6]]), members))).toEqual({
      a: "t/0 t/1",
      b: "t/3 t/4",
      c: "t/2 t/5",
    });
  });

  test("user data that can't be read claims nothing", () => {
    const m = member("a", {}, sticky);
    const odd = { ...m, subscription: { ...m.subscription, userData: new Uint8Array([0, 0, 0, 9, 1]) } };
    expect(text(sticky.assign(new Map([["t", 2]]), [odd]))).toEqual({ a: "t/0 t/1" });
  });
});

describe("cooperative-sticky", () => {
  const cooperative = ASSIGNORS["cooperative-sticky"];
  const assign = (partitions: number, ...members: GroupMember[]) =>
    cooperative.assign(new Map([["t", partitions]]), members);

  test("a partition that somebody owns goes to nobody else in the same round", () => {
    const first = assign(4, member("a", { owned: ["t/0", "t/1", "t/2", "t/3"] }), member("b"));
    expect(text(first)).toEqual({ a: "t/0 t/1", b: "" });
    const second = assign(
      4,
      member("a", { owned: ["t/0", "t/1"], generation: 2 }),
      member("b", { generation: 2 }),
    );
    expect(text(second)).toEqual({ a: "t/0 t/1", b: "t/2 t/3" });
  });

  // KAFKA-12984, KAFKA-14639
  test("a claim of an older generation gives way; two of one generation both do", () => {
    const older = assign(
      2,
      member("a", { owned: ["t/0", "t/1"], generation: 3 }),
      member("b", { owned: ["t/0"], generation: 4 }),
    );
    expect(text(older)["b"]).not.toContain("t/1");
    const both = assign(
      2,
      member("a", { owned: ["t/0"], generation: 4 }),
      member("b", { owned: ["t/0"], generation: 4 }),
    );
    expect(text(both)).toEqual({ a: "", b: "t/1" });
  });

  test("members before KIP-792 tell their generation in the user data", () => {
    const old = (id: string, owned: string, generation: number): GroupMember => {
      const m = member(id, { owned: [owned], generation });
      return { ...m, subscription: { ...m.subscription, generationId: -1 } };
    };
    expect(text(assign(1, old("a", "t/0", 8), old("b", "t/0", 9)))).toEqual({ a: "", b: "t/0" });
    expect(text(assign(2, old("a", "t/0", 8), old("b", "t/0", 9)))).toEqual({ a: "t/1", b: "t/0" });
  });
});

describe("racks (KIP-881)", () => {
  const near = (...racks: string[]) => racks.map((r) => new Set(r === "" ? [] : r.split("")));
  const members = [member("m0", { rack: "a" }), member("m1", { rack: "b" }), member("m2")];

  test("range: each takes what has a replica in its rack within its share, the rest goes on as ever", () => {
    // Shares of 2, 2, 1. m0 may have 1 and 4, m1 0 and 2; m2 has no rack and gets what is left.
    const out = ASSIGNORS.range.assign(
      new Map([["t", 5]]),
      members,
      new Map([["t", near("b", "a", "b", "c", "a")]]),
    );
    expect(text(out)).toEqual({ m0: "t/1 t/4", m1: "t/0 t/2", m2: "t/3" });
  });

  test("range: topics that are cut alike stay so, near where that holds for all of them", () => {
    const both = [
      member("m0", { topics: ["t", "u"], rack: "a" }),
      member("m1", { topics: ["t", "u"], rack: "b" }),
    ];
    const racks = new Map([
      ["t", near("b", "a")],
      ["u", near("b", "a")],
    ]);
    const counts = new Map([
      ["t", 2],
      ["u", 2],
    ]);
    expect(text(ASSIGNORS.range.assign(counts, both, racks))).toEqual({ m0: "t/1 u/1", m1: "t/0 u/0" });
    // Of u nothing fits as it does in t: equal keys meet all the same.
    racks.set("u", near("a", "b"));
    expect(text(ASSIGNORS.range.assign(counts, both, racks))).toEqual({ m0: "t/0 u/0", m1: "t/1 u/1" });
  });

  test("cooperative-sticky: what is far is given up, and goes to whoever is near in the next round", () => {
    const racks = new Map([["t", near("a", "b", "a", "b")]]);
    const round = (m0: string[], m1: string[], generation: number) =>
      text(
        ASSIGNORS["cooperative-sticky"].assign(
          new Map([["t", 4]]),
          [
            member("m0", { rack: "a", owned: m0, generation }),
            member("m1", { rack: "b", owned: m1, generation }),
          ],
          racks,
        ),
      );
    expect(round(["t/0", "t/1"], ["t/2", "t/3"], 3)).toEqual({ m0: "t/0", m1: "t/3" });
    expect(round(["t/0"], ["t/3"], 4)).toEqual({ m0: "t/0 t/2", m1: "t/1 t/3" });
  });

  test("without balance there is no nearness: a member alone in its rack gets no more than its share", () => {
    const racks = new Map([["t", near("a", "a", "a", "a", "b", "b")]]);
    const out = text(
      ASSIGNORS["cooperative-sticky"].assign(
        new Map([["t", 6]]),
        [member("m0", { rack: "a" }), member("m1", { rack: "b" })],
        racks,
      ),
    );
    expect(Object.values(out).map((l) => l.split(" ").length)).toEqual([3, 3]);
    expect(out["m1"]).toContain("t/4 t/5");
  });

  test("members that subscribe to different topics: as even as ever, and nearer where that is free", () => {
    const racks = new Map([
      ["t", near("a", "b", "a", "b")],
      ["u", near("c", "c")],
    ]);
    const counts = new Map([
      ["t", 4],
      ["u", 2],
    ]);
    const out = text(
      ASSIGNORS["cooperative-sticky"].assign(
        counts,
        [
          member("m0", { rack: "a" }),
          member("m1", { rack: "b" }),
          member("m2", { topics: ["u"], rack: "c" }),
        ],
        racks,
      ),
    );
    expect(out).toEqual({ m0: "t/0 t/2", m1: "t/1 t/3", m2: "u/0 u/1" });
  });

  test("roundrobin knows none, as Kafka's own", () => {
    const racks = new Map([["t", near("b", "a", "b")]]);
    expect(text(ASSIGNORS.roundrobin.assign(new Map([["t", 3]]), members, racks))).toEqual(
      text(ASSIGNORS.roundrobin.assign(new Map([["t", 3]]), members)),
    );
  });
});

test("topics that nobody has, and names that objects have by themselves", () => {
  for (const name of ASSIGNOR_NAMES) {
    const a = ASSIGNORS[name];
    const members = [
      member("shift", { topics: ["__proto__", "gone"] }, a),
      member("constructor", { topics: ["__proto__"] }, a),
    ];
    const out = a.assign(new Map([["__proto__", 2]]), members);
    expect([...out.values()].map((l) => l.length)).toEqual([1, 1]);
  }
});

const ROUNDS = 6;

test("whatever the group, every partition has one owner that subscribes to it, shares are even, and it settles", () => {
  const chance = new SeededChance(7);
  for (let round = 0; round < 400; round++) {
    const name = ASSIGNOR_NAMES[round % ASSIGNOR_NAMES.length]!;
    const assignor = ASSIGNORS[name];
    const counts = new Map(["t", "u", "v"].map((t) => [t, chance.int(7)]));
    const alike = chance.next() < 0.5;
    const withRacks = chance.next() < 0.5;
    const some = () => new Set(["a", "b", "c"].filter(() => withRacks && chance.next() < 0.4));
    const racks = new Map([...counts].map(([t, n]) => [t, Array.from({ length: n }, some)]));
    const topics = (): string[] =>
      alike ? ["t", "u", "v"] : ["t", "u", "v"].filter(() => chance.next() < 0.7);
    const ids = Array.from({ length: 1 + chance.int(6) }, (_, i) => ({
      id: `m${(i * 7) % 11}-${i}`,
      topics: topics(),
      rack: chance.pick(["a", "b", "c", null]),
    }));
    let owned = new Map<string, string[]>();
    // With rounds more for what had to be given up first, and for what its place had to give up then.
    for (let generation = 1; generation <= ROUNDS; generation++) {
      const members = ids.map((m) =>
        member(m.id, { ...m, owned: owned.get(m.id) ?? [], generation }, assignor),
      );
      const out = assignor.assign(counts, members, racks);
      const all = [...out.values()].flat().map((p) => `${p.topic}/${p.partition}`);
      expect(new Set(all).size).toBe(all.length);
      for (const [id, list] of out) {
        for (const p of list) expect(ids.find((m) => m.id === id)?.topics).toContain(p.topic);
      }
      owned = new Map([...out].map(([id, list]) => [id, list.map((p) => `${p.topic}/${p.partition}`)]));
      if (generation < ROUNDS) {
        if (generation === 1 && chance.next() < 0.5)
          ids.push({ id: `late-${round}`, topics: topics(), rack: chance.pick(["a", "b", null]) });
        continue;
      }
      const due = [...counts].flatMap(([t, n]) =>
        ids.some((m) => m.topics.includes(t)) ? Array.from({ length: n }, (_, i) => `${t}/${i}`) : [],
      );
      expect(all.toSorted()).toEqual(due.toSorted());
      const sizes = [...out.values()].map((l) => l.length);
      if (alike && name !== "range") expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThanOrEqual(1);
    }
  }
});

test("Java's order of strings: by hash, spread, and bucket", () => {
  // "a".hashCode() is 97, in 16 buckets 1; "p" is 112: 0; "b" 98: 2; "q" 113: 1, behind "a" which came first.
  expect(javaMapOrder(["b", "a", "q", "p"])).toEqual(["p", "a", "q", "b"]);
});

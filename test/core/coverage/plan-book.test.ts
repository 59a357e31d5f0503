/**
 * Goal: since when records are decoded for a sink by which plan, and the plan itself, is durable before one is, in that order, and
 * the persisted form is the one of the golden file. Method: a store in memory that notes what becomes durable; the golden
 * file read, damaged at every kind of place, and written again.
 */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { PlanBook } from "../../../src/core/coverage/plan-book.ts";
import { encodePlanBook, parsePlanBook } from "../../../src/core/coverage/plan-json.ts";
import { asFailure } from "../../../src/core/failure/failure.ts";
import { BookStore } from "./book-store.ts";

const [A, B] = ["a".repeat(32), "b".repeat(32)];
const S = "kafka/c1/orders/0/1";
const T = "kafka/c1/orders/0/2";
const bookOf = (versions: BookStore) => new PlanBook({ versions, instance: "i" });
const begun = (
  stream: string,
  from: number,
  digest: string,
  generation = 1,
  skip: [number, number][] = [],
) => {
  const skipped = skip.map(([a, b]) => ({ from: BigInt(a), next: BigInt(b) }));
  return {
    stream,
    from: BigInt(from),
    skip: skipped,
    generation,
    plan: { digest, bytes: Buffer.from(`plan ${digest}`) },
  };
};
const epochs = async (store: BookStore, sink: string, stream: string) =>
  (await bookOf(store).read())
    .get(sink)
    ?.get(stream)
    ?.epochs.map(({ from, plan }) => [Number(from), plan]);

describe("the book of plans", () => {
  test("plans are durable before the book names them; what goes on by the same plan writes nothing", async () => {
    const store = new BookStore();
    await bookOf(store).enter("typed", [begun(S, 100, A), begun(T, 7, A)]);
    expect(store.written).toEqual([`plan-${A}`, "version 1"]);
    await bookOf(store).enter("typed", [begun(S, 250, A), begun(T, 7, A)]);
    expect(store.written).toHaveLength(2);
    expect(await epochs(store, "typed", S)).toEqual([[100, A]]);
    expect(await bookOf(store).plan(A)).toEqual(Buffer.from(`plan ${A}`));
    expect(await bookOf(store).plan(B)).toBeNull();
  });

  test("another plan begins another epoch, of each sink by itself", async () => {
    const store = new BookStore();
    await bookOf(store).enter("typed", [begun(S, 0, A)]);
    await bookOf(store).enter("late", [begun(S, 200, A)]);
    await bookOf(store).enter("typed", [begun(S, 300, B)]);
    await bookOf(store).enter("typed", [begun(S, 400, A)]);
    expect(await epochs(store, "typed", S)).toEqual([
      [0, A],
      [300, B],
      [400, A],
    ]);
    expect(await epochs(store, "late", S)).toEqual([[200, A]]);
    expect(await epochs(store, "late", T)).toBeUndefined();
  });

  test("a plan is written once for sinks that begin with it together, and again where that failed", async () => {
    const store = new BookStore();
    const book = bookOf(store);
    store.refuses = new Error("full");
    const first = book.enter("typed", [begun(S, 0, A)]);
    expect(await first.catch((e: Error) => e.message)).toBe("full");
    store.refuses = null;
    await Promise.all([book.enter("typed", [begun(S, 0, A)]), book.enter("refused", [begun(S, 0, A)])]);
    expect(store.written).toEqual([`plan-${A}`, "version 1", "version 2"]);
  });

  test("an epoch of a life that ended before anything landed under it is replaced", async () => {
    const store = new BookStore();
    await bookOf(store).enter("typed", [begun(S, 0, A)]);
    await bookOf(store).enter("typed", [begun(S, 300, B)]);
    await bookOf(store).enter("typed", [begun(S, 300, A)]);
    expect(await epochs(store, "typed", S)).toEqual([[0, A]]);
  });

  test("an owner that is late changes nothing", async () => {
    const store = new BookStore();
    await bookOf(store).enter("typed", [begun(S, 0, A, 4)]);
    await bookOf(store).enter("typed", [begun(S, 300, B, 6)]);
    await bookOf(store).enter("typed", [begun(S, 300, A, 5)]);
    expect(await epochs(store, "typed", S)).toEqual([
      [0, A],
      [300, B],
    ]);
  });

  test("an owner that is late changes nothing either where the one after it goes on by the same plan", async () => {
    const store = new BookStore();
    await bookOf(store).enter("typed", [begun(S, 0, A, 4)]);
    await bookOf(store).enter("typed", [begun(S, 300, A, 6)]);
    // A plan that the book names is durable.
    expect(store.written).toEqual([`plan-${A}`, "version 1", "version 2"]);
    await bookOf(store).enter("typed", [begun(S, 300, B, 5)]);
    expect(await epochs(store, "typed", S)).toEqual([[0, A]]);
  });

  test("what raw had before keeps its plan where its first epoch begins inside of it", async () => {
    const store = new BookStore();
    await bookOf(store).enter("typed", [begun(S, 70, A)]);
    // Raw has [50, 70) from before there were epochs, and [70, 100) by A.
    await bookOf(store).enter("typed", [begun(S, 10, B, 2, [[50, 100]])]);
    expect(await epochs(store, "typed", S)).toEqual([
      [10, B],
      [70, A],
      [100, B],
    ]);
  });

  test("what raw had before keeps its plan, where one is known", async () => {
    const store = new BookStore();
    await bookOf(store).enter("typed", [begun(S, 100, A)]);
    await bookOf(store).enter("typed", [begun(S, 300, B)]);
    await bookOf(store).enter("typed", [begun(S, 600, A)]);
    // Offsets were set back: raw has [100, 700), and a hole at 400.
    const skip: [number, number][] = [
      [100, 400],
      [450, 700],
    ];
    await bookOf(store).enter("typed", [begun(S, 0, B, 2, skip), begun(T, 0, B, 2, [[10, 20]])]);
    expect(await epochs(store, "typed", S)).toEqual([
      [0, B],
      [100, A],
      [300, B],
      [600, A],
      [700, B],
    ]);
    expect(await epochs(store, "typed", T)).toEqual([[0, B]]);
  });

  test("what was known before is not believed, and a write that is lost is decided anew", async () => {
    const store = new BookStore();
    const mine = bookOf(store);
    await mine.enter("typed", [begun(S, 0, A)]);
    store.meanwhile = () => bookOf(store).enter("typed", [begun(S, 10, B), begun(T, 1, B)]);
    store.outcomes.push("won", "unknown");
    await mine.enter("typed", [begun(S, 20, A), begun(T, 2, B)]);
    expect(await epochs(store, "typed", S)).toEqual([
      [0, A],
      [10, B],
      [20, A],
    ]);
    expect(await epochs(store, "typed", T)).toEqual([[1, B]]);
  });

  test("of too many epochs the oldest are one of which no plan is known", async () => {
    const store = new BookStore();
    for (let i = 0; i < 103; i++) await bookOf(store).enter("typed", [begun(S, 10 * i, i % 2 === 0 ? A : B)]);
    const kept = (await epochs(store, "typed", S))!;
    expect(kept).toHaveLength(100);
    expect(kept.slice(0, 3)).toEqual([
      [0, null],
      [40, A],
      [50, B],
    ]);
  });

  const MOST_BYTES = 8 * 1024 * 1024;

  /** Of streams of `key`, as many as have room with `each` epochs, stored; all of them begin by another plan then. */
  async function fullOf(each: number, key: (i: number) => string) {
    const store = new BookStore();
    const all = Array.from({ length: each }, (_, i) => ({
      from: BigInt(1_000_000 + i),
      plan: i % 2 === 0 ? A : B,
    }));
    const state = (streams: number) => {
      const of = Array.from({ length: streams }, (_, i) => [key(i), { generation: 1, epochs: all }] as const);
      return new Map([["typed", new Map(of)]]);
    };
    const one = encodePlanBook(state(101), 1).length - encodePlanBook(state(1), 1).length;
    const streams = Math.floor((MOST_BYTES - 10_000) / (one / 100));
    store.versions.push(encodePlanBook(state(streams), 1));
    const next = Array.from({ length: streams }, (_, i) => begun(key(i), 2_000_000, each % 2 === 0 ? A : B));
    return { store, next };
  }

  test("where those of all streams have no room, fewer of each are remembered", async () => {
    const { store, next } = await fullOf(99, (i) => `kafka/c1/orders/0/${10_000 + i}`);
    expect(await bookOf(store).enter("typed", next)).toBeNull();
    expect(store.versions.at(-1)!.length).toBeLessThan(MOST_BYTES);
    for (const { stream } of [next[0]!, next.at(-1)!]) {
      const kept = (await epochs(store, "typed", stream))!;
      expect([kept.length, kept[0], kept.at(-1)]).toEqual([50, [1_000_000, null], [2_000_000, B]]);
    }
  });

  test("where two of each have no room, it says so and stays as it is", async () => {
    const { store, next } = await fullOf(1, (i) => `kafka/c1/${"x".repeat(8_000)}/0/${10_000 + i}`);
    // Those that are there fill it to the last stream or so.
    const more = Array.from({ length: 2 }, (_, i) => begun(`kafka/c1/${"y".repeat(8_000)}/0/${i}`, 7, A));
    const found = await bookOf(store).enter("typed", [...next, ...more]);
    expect(found?.code).toBe("coverage.too_large");
    expect(store.versions).toHaveLength(1);
    expect(await epochs(store, "typed", next[0]!.stream)).toEqual([[1_000_000, A]]);
    // What it has room for is entered still.
    expect(await bookOf(store).enter("typed", [{ ...next[0]!, generation: 3 }])).toBeNull();
    expect(await epochs(store, "typed", next[0]!.stream)).toHaveLength(2);
  });
});

describe("its persisted form", () => {
  const golden = readFileSync(join(import.meta.dir, "../../golden/state/plans-v1.json"));
  const STATE = new Map([
    [
      "typed",
      new Map([
        [
          S,
          {
            generation: 7,
            epochs: [
              { from: 0n, plan: null },
              { from: 40n, plan: A },
              { from: 9_007_199_254_740_993n, plan: B },
            ],
          },
        ],
        ["kafka//__proto__/2/0", { generation: 0, epochs: [{ from: 17n, plan: A }] }],
      ]),
    ],
    ["__proto__", new Map([[S, { generation: 1, epochs: [{ from: 3n, plan: B }] }]])],
  ]);
  const failed = (bytes: Uint8Array, version = 12) => {
    try {
      parsePlanBook(bytes, "plans.json", version);
      return "";
    } catch (e) {
      return asFailure(e).code;
    }
  };

  test("is that of the golden file, both ways", () => {
    expect(Buffer.from(encodePlanBook(STATE, 12)).toString()).toBe(golden.toString());
    expect(parsePlanBook(golden, "plans.json", 12)).toEqual(STATE);
  });

  test("damage is told, a newer version is left alone", () => {
    expect(failed(golden, 11)).toBe("recovery.plan_corrupt");
    for (const [from, to] of [
      ['"version":1', '"version":2'],
      [A, "A".repeat(32)],
      ['"from":"0"', '"from":0'],
      ['"from":"0"', '"from":"41"'],
      ['"plan":1', '"plan":2'],
      ['"plan":1', '"plan":-1'],
      ['"generation":7', '"generation":"7"'],
      ['"sinks"', '"zinks"'],
      ['"__proto__"', '"typed"'],
      ["kafka//__proto__/2/0", S],
    ] as const) {
      const wanted = from.startsWith('"version') ? "coverage.newer_version" : "recovery.plan_corrupt";
      expect([from, failed(Buffer.from(golden.toString().replace(from, to)))]).toEqual([from, wanted]);
    }
    for (let cut = 0; cut < golden.length - 1; cut += 7)
      expect([cut, failed(golden.subarray(0, cut))]).toEqual([cut, "recovery.plan_corrupt"]);
  });
});

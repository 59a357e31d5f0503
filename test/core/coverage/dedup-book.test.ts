/**
 * Goal: since when a stream's records are judged by which plan is durable before one is, the same for all who look, and its
 * persisted form is the one of the golden file. Method: a store in memory whose writes are lost or of unknown outcome by turns;
 * the golden file read, damaged at every kind of place, and written again.
 */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DedupBook } from "../../../src/core/coverage/dedup-book.ts";
import { encodeDedupBook, parseDedupBook } from "../../../src/core/coverage/dedup-json.ts";
import { asFailure } from "../../../src/core/failure/failure.ts";
import { BookStore as Store } from "./book-store.ts";

const [A, B] = ["a".repeat(32), "b".repeat(32)];
const S = "kafka/c1/orders/0/1";

let secrets = 0;
const bookOf = (store: Store) =>
  new DedupBook({ versions: store, instance: "i", secret: (n) => String(++secrets % 10).repeat(2 * n) });
const code = (p: Promise<unknown>) =>
  p.then(
    () => "",
    (e) => asFailure(e).code,
  );

describe("the book of duplicates", () => {
  test("a stream begins where it is entered, and goes on by the same plan without a write", async () => {
    const store = new Store();
    const first = await bookOf(store).enter(S, 100n, A, null);
    expect(first).toEqual({ since: 100n, until: null, secret: first.secret });
    expect(await bookOf(store).enter(S, 250n, A, null)).toEqual(first);
    expect(store.versions).toHaveLength(1);
    expect(await bookOf(store).look(S, 180n, A)).toEqual(first);
  });

  test("many begin in one write, and where one is entered the book says it already", async () => {
    const store = new Store();
    const all = (...from: readonly bigint[]) =>
      from.map((f, i) => ({ stream: `${S}${i}`, from: f, plan: A }));
    await bookOf(store).begin(all(5n, 7n));
    expect(store.versions).toHaveLength(1);
    expect(await bookOf(store).enter(`${S}1`, 9n, A, null)).toMatchObject({ since: 7n });
    await bookOf(store).begin(all(6n, 9n));
    expect(store.versions).toHaveLength(1);
    await bookOf(store).begin([{ stream: `${S}0`, from: 20n, plan: B }, ...all(6n)]);
    await bookOf(store).begin([{ stream: `${S}1`, from: 20n, plan: B }]);
    expect(await bookOf(store).look(`${S}1`, 20n, B)).toMatchObject({ since: 20n });
    expect(await bookOf(store).cuts()).toEqual(
      new Map([
        [`${S}0`, [5n, 6n]],
        [`${S}1`, [7n, 20n]],
      ]),
    );
    // How far it reaches back is said by who knows what raw has.
    expect(await bookOf(store).enter(`${S}1`, 30n, B, 25n)).toMatchObject({ since: 25n });
  });

  test("another plan begins another epoch; each position has that of its time", async () => {
    const store = new Store();
    const { secret } = await bookOf(store).enter(S, 0n, A, null);
    expect(await bookOf(store).enter(S, 300n, B, null)).toEqual({ since: 300n, until: null, secret });
    expect(await bookOf(store).look(S, 299n, A)).toEqual({ since: 0n, until: 300n, secret });
    expect(await code(bookOf(store).look(S, 299n, B))).toBe("dedup.other_plan");
    expect(await code(bookOf(store).look(S, 300n, A))).toBe("dedup.other_plan");
    // The one that comes back begins a third: what was judged in between was judged otherwise.
    expect((await bookOf(store).enter(S, 400n, A, null)).since).toBe(400n);
  });

  test("before anything was judged nothing is a duplicate", async () => {
    const store = new Store();
    // Not even of each other.
    expect(await bookOf(store).look(S, 7n, A)).toMatchObject({ since: 2n ** 63n - 1n, until: null });
    await bookOf(store).enter(S, 50n, A, null);
    await bookOf(store).enter(S, 90n, B, null);
    expect(await bookOf(store).look(S, 7n, A)).toMatchObject({ since: 2n ** 63n - 1n, until: 50n });
    expect(await bookOf(store).cuts()).toEqual(new Map([[S, [50n, 90n]]]));
  });

  test("what raw has no more counts no more, for records from then on", async () => {
    const store = new Store();
    await bookOf(store).enter(S, 0n, A, null);
    expect(await bookOf(store).enter(S, 500n, A, 450n)).toMatchObject({ since: 450n, until: null });
    expect(await bookOf(store).look(S, 499n, A)).toMatchObject({ since: 0n, until: 500n });
    // No further than it was.
    expect(await bookOf(store).enter(S, 600n, A, 450n)).toMatchObject({ since: 450n, until: null });
    expect(store.versions).toHaveLength(2);
    // Another plan does not reach back at all.
    expect(await bookOf(store).enter(S, 700n, B, 650n)).toMatchObject({ since: 700n });
  });

  test("a life that begins before one that ended early goes by what holds there, and takes its place", async () => {
    const store = new Store();
    await bookOf(store).enter(S, 0n, A, null);
    // Raw had [0, 550) when the process ended, and had lost what was before 450.
    await bookOf(store).enter(S, 600n, A, 450n);
    expect(await bookOf(store).enter(S, 550n, A, 450n)).toMatchObject({ since: 450n, until: null });
    expect(await bookOf(store).look(S, 599n, A)).toMatchObject({ since: 450n, until: null });
    await bookOf(store).enter(S, 700n, B, null);
    expect(await bookOf(store).enter(S, 690n, B, null)).toMatchObject({ since: 690n, until: null });
    expect(await bookOf(store).cuts()).toEqual(new Map([[S, [0n, 550n, 690n]]]));
  });

  test("what is known is not believed: the stream may have been another's meanwhile", async () => {
    const store = new Store();
    const mine = bookOf(store);
    await mine.enter(S, 0n, A, null);
    await bookOf(store).enter(S, 10n, B, null);
    expect((await mine.enter(S, 20n, A, null)).since).toBe(20n);
  });

  test("writes that are lost or of unknown outcome are looked up; the first secret stays", async () => {
    const store = new Store();
    store.outcomes.push("lost", "unknown");
    const { secret } = await bookOf(store).enter(S, 5n, A, null);
    expect(store.versions).toHaveLength(1);
    store.meanwhile = () => bookOf(store).enter(`${S}0`, 1n, B, null);
    expect(await bookOf(store).enter(S, 9n, B, null)).toEqual({ since: 9n, until: null, secret });
    expect((await bookOf(store).look(`${S}0`, 1n, B)).secret).toBe(secret);
  });
});

describe("its persisted form", () => {
  const golden = readFileSync(join(import.meta.dir, "../../golden/state/dedup-v1.json"));
  const STATE = {
    secret: "000102030405060708090a0b0c0d0e0f",
    streams: new Map([
      [
        "kafka/c1/orders/0/1",
        [
          { from: 0n, reach: 0n, plan: A },
          { from: 9_007_199_254_740_993n, reach: 9_007_199_254_740_900n, plan: B },
        ],
      ],
      ["kafka//__proto__/2/0", [{ from: 17n, reach: 17n, plan: A }]],
    ]),
  };
  const failed = (bytes: Uint8Array, version = 12) => {
    try {
      parseDedupBook(bytes, "dedup.json", version);
      return "";
    } catch (e) {
      return asFailure(e).code;
    }
  };

  test("is that of the golden file, both ways", () => {
    expect(Buffer.from(encodeDedupBook(STATE, 12)).toString()).toBe(golden.toString());
    expect(parseDedupBook(golden, "dedup.json", 12)).toEqual(STATE);
  });

  test("damage is told, a newer version is left alone", () => {
    expect(failed(golden, 11)).toBe("dedup.corrupt");
    for (const [from, to] of [
      ['"version":1', '"version":2'],
      ["000102", "00010"],
      [A, "A".repeat(32)],
      ['"from":"0"', '"from":0'],
      ['"from":"0"', '"from":"9007199254740994"'],
      ['"reach":"17"', '"reach":"18"'],
      ['"secret"', '"sekret"'],
      ["kafka//__proto__/2/0", "kafka/c1/orders/0/1"],
    ] as const) {
      const wanted = from.startsWith('"version') ? "coverage.newer_version" : "dedup.corrupt";
      expect([from, failed(Buffer.from(golden.toString().replace(from, to)))]).toEqual([from, wanted]);
    }
    for (let cut = 0; cut < golden.length - 1; cut += 7)
      expect([cut, failed(golden.subarray(0, cut))]).toEqual([cut, "dedup.corrupt"]);
  });
});

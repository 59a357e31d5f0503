/**
 * Goal: a lane gets of raw what stands before its stream's next record, all of it or a failure; what it left is closed. Method:
 * coverage states and indexes written by hand; a service whose readings count their ends.
 */
import { describe, expect, test } from "bun:test";
import { DedupAnswers, setsOf } from "../../src/commands/dedup-service.ts";
import { type AskDedup, AskedDedup } from "../../src/commands/lane-dedup-asks.ts";
import type { RawGroup } from "../../src/commands/recover-sets.ts";
import {
  type CoverageState,
  EMPTY_STATE,
  type IndexEntry,
  NEW_STREAM,
} from "../../src/core/coverage/state.ts";
import { asFailure } from "../../src/core/failure/failure.ts";

const S = "kafka/c/t/0/0";
const entry = (id: string, stream: string, from: bigint, next: bigint): IndexEntry => ({
  id,
  targets: [],
  spans: [{ stream, from, next }],
  rows: 0,
  bytes: 0,
});
const INDEX = [
  entry("a", S, 10n, 20n),
  entry("b", "kafka/c/t/0/1", 0n, 90n),
  entry("c", S, 20n, 40n),
  entry("d", S, 60n, 80n),
];
const STATE: CoverageState = {
  ...EMPTY_STATE,
  streams: new Map([
    [
      S,
      {
        ...NEW_STREAM,
        origin: 10n,
        covered: [{ from: 10n, next: 90n }],
        lost: [{ from: 40n, next: 60n, reason: "retention" }],
      },
    ],
  ]),
};
const sets = (from: bigint, next: bigint) => {
  try {
    return setsOf(STATE, INDEX, S, { from, next }).map((e) => e.id);
  } catch (e) {
    return asFailure(e).code;
  }
};

test("the sets that hold a range; before the stream began there was nothing, and nothing in what was lost", () => {
  expect(sets(0n, 15n)).toEqual(["a"]);
  expect(sets(0n, 10n)).toEqual([]);
  expect(sets(15n, 21n)).toEqual(["a", "c"]);
  expect(sets(35n, 70n)).toEqual(["c", "d"]);
});

test("what raw has not yet is waited for, what no file has is told", () => {
  expect(sets(70n, 91n)).toBe("dedup.loading");
  expect(sets(70n, 85n)).toBe("recovery.raw_missing");
});

describe("a lane's questions", () => {
  function between() {
    let open = 0;
    const asked: string[] = [];
    const answers = new DedupAnswers({
      begin: async () => {},
      epoch: async (stream, from) => {
        asked.push(`${stream} ${from}`);
        return { since: 3n, until: null, secret: "00" };
      },
      cuts: async () => new Map(),
      async *groups(_, { from, next }) {
        open++;
        try {
          for (let i = from; i < next; i++)
            yield { bytes: Uint8Array.of(Number(i)), twoLives: false, rises: true };
          if (next === 99n) throw new Error("the store is away");
        } finally {
          open--;
        }
      },
    });
    const asks: AskedDedup = new AskedDedup((ask: AskDedup) => {
      void answers.answer(ask).then((a) => asks.answered(a));
    });
    return { asks, answers, asked, openNow: () => open };
  }
  const read = async (groups: AsyncIterable<RawGroup>, most = 99) => {
    const bytes: number[] = [];
    for await (const g of groups) {
      bytes.push(g.bytes[0]!);
      if (bytes.length >= most) break;
    }
    return bytes;
  };

  test("are answered one group at a time; a reading that is left is closed", async () => {
    const { asks, asked, openNow } = between();
    expect(await asks.epoch(S, 7n)).toEqual({ since: 3n, until: null, secret: "00" });
    expect(asked).toEqual([`${S} 7`]);
    const [all, some] = await Promise.all([read(asks.groups(S, 1n, 4n)), read(asks.groups(S, 5n, 9n), 2)]);
    expect([all, some]).toEqual([
      [1, 2, 3],
      [5, 6],
    ]);
    await asks.epoch(S, 8n);
    expect(openNow()).toBe(0);
  });

  test("a failure is the lane's; all readings end with its thread", async () => {
    const { asks, answers, openNow } = between();
    expect(await read(asks.groups(S, 98n, 99n)).catch((e) => asFailure(e).message)).toContain("away");
    const left = asks.groups(S, 0n, 50n)[Symbol.asyncIterator]();
    await left.next();
    expect(openNow()).toBe(1);
    await answers.close();
    expect(openNow()).toBe(0);
  });
});

/**
 * Goal: exactly the rows that a sink refuses are found, whatever their pattern, the others are taken once and in order, and a
 * sink that refuses too much is not taken for one with bad rows. Method: all patterns of small sets, and sinks that remember
 * what they took.
 */
import { describe, expect, test } from "bun:test";
import { bisect } from "../../../src/core/delivery/bisect.ts";

interface Sink {
  readonly taken: number[];
  readonly tries: number;
  take(from: number, next: number): Promise<string | null>;
}

/** `refuses`: what it says of a row, which may depend on what it has. */
function sinkOf(refuses: (row: number, taken: readonly number[]) => boolean): Sink {
  const taken: number[] = [];
  let tries = 0;
  return {
    taken,
    get tries() {
      return tries;
    },
    take: async (from, next) => {
      tries++;
      const rows = Array.from({ length: next - from }, (_, i) => from + i);
      const bad = rows.find((r) => refuses(r, [...taken, ...rows]));
      if (bad !== undefined) return `row ${bad}`;
      taken.push(...rows);
      return null;
    },
  };
}

const rowsOf = (found: Awaited<ReturnType<typeof bisect<string>>>) =>
  "sink" in found ? found : found.refused.map((r) => r.row);

describe("rows that a sink refuses", () => {
  test("every pattern of up to nine rows", async () => {
    for (let rows = 1; rows <= 9; rows++)
      for (let bad = 0; bad < 1 << rows; bad++) {
        const sink = sinkOf((r) => ((bad >> r) & 1) === 1);
        const all = Array.from({ length: rows }, (_, i) => i);
        const refused = all.filter((r) => ((bad >> r) & 1) === 1);
        expect(rowsOf(await bisect(rows, rows, sink.take))).toEqual(refused);
        expect(sink.taken).toEqual(all.filter((r) => !refused.includes(r)));
      }
  });

  test("each with what the sink said of it", async () => {
    const sink = sinkOf((r) => r === 700 || r === 41);
    expect(await bisect(1000, 10, sink.take)).toEqual({
      refused: [
        { row: 41, why: "row 41" },
        { row: 700, why: "row 700" },
      ],
    });
    // Two paths of halves, and once more for each row in the end.
    expect(sink.tries).toBeLessThan(50);
  });

  test("a row that refers to one behind it is taken in the end, and so is one that refers to that", async () => {
    const refers = new Map([
      [3, 12],
      [1, 3],
    ]);
    const sink = sinkOf((r, taken) => r === 5 || (refers.has(r) && !taken.includes(refers.get(r)!)));
    expect(rowsOf(await bisect(16, 16, sink.take))).toEqual([5]);
    expect(sink.taken.toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
  });

  test("more than are allowed: the sink is at fault, and it is not asked to the end", async () => {
    const sink = sinkOf((r) => r % 2 === 1);
    expect(await bisect(100_000, 20, sink.take)).toMatchObject({
      sink: "row 41",
      refused: Array.from({ length: 21 }, (_, i) => ({ row: 2 * i + 1 })),
    });
    expect(sink.tries).toBeLessThan(1000);
  });

  test("not one of many is taken: the same, however many are allowed; of few it is said of each", async () => {
    expect(await bisect(10, 1000, sinkOf(() => true).take)).toMatchObject({
      sink: "row 9",
      refused: { length: 10 },
    });
    expect(rowsOf(await bisect(9, 1000, sinkOf(() => true).take))).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
  });

  test("what is no refusal ends the search", async () => {
    const failing = bisect(8, 8, (from) =>
      from > 3 ? Promise.reject(new Error("the disk is full")) : Promise.resolve("bad"),
    );
    expect(failing).rejects.toThrow("the disk is full");
  });
});

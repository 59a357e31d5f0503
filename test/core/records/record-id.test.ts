/** Record ids against vectors from an independent program (test/golden/record-id.py), and their invariants. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { fillRecordIds, recordIdBase } from "../../../src/core/records/record-id.ts";
import type { StreamId } from "../../../src/core/records/stream.ts";
import vectors from "../../golden/record-id.json" with { type: "json" };

const pairsOf = (offsets: readonly bigint[]) => new Int32Array(BigInt64Array.from(offsets).buffer);

function idsOf(stream: StreamId, offsets: readonly bigint[]): string[] {
  const out = new Int32Array(4 * offsets.length);
  fillRecordIds(recordIdBase(stream), stream.partition, pairsOf(offsets), 0, offsets.length, out, 0);
  const bytes = new Uint8Array(out.buffer);
  return offsets.map((_, i) => Buffer.from(bytes.subarray(16 * i, 16 * i + 16)).toString("hex"));
}

test("every vector of the independent program", () => {
  expect(vectors.length).toBeGreaterThan(10);
  for (const { id, offset, ...stream } of vectors) {
    expect(idsOf({ ...stream, transport: "kafka" }, [BigInt(offset)])).toEqual([id]);
  }
});

describe("fillRecordIds", () => {
  const stream: StreamId = { transport: "kafka", cluster: "c", topic: "t", incarnation: 0, partition: 9 };

  test("a part of the rows goes to the place asked for and nowhere else", () => {
    const offsets = [5n, 6n, 7n, 8n];
    const out = new Int32Array(4 * 5);
    fillRecordIds(recordIdBase(stream), 9, pairsOf(offsets), 1, 3, out, 4);
    const hex = Buffer.from(out.buffer).toString("hex");
    expect(hex).toBe("00".repeat(16) + idsOf(stream, [6n, 7n]).join("") + "00".repeat(32));
  });

  test("property: within a topic two ids are equal only if partition and offset are", () => {
    const place = fc.tuple(
      fc.integer({ min: 0, max: 2 ** 31 - 1 }),
      fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }),
    );
    fc.assert(
      fc.property(place, place, ([p1, o1], [p2, o2]) => {
        const [a] = idsOf({ ...stream, partition: p1 }, [o1]);
        const [b] = idsOf({ ...stream, partition: p2 }, [o2]);
        expect(a === b).toBe(p1 === p2 && o1 === o2);
      }),
    );
  });

  test("property: partition and offset can be read back from an id and its base", () => {
    const base = BigInt(`0x${Buffer.from(recordIdBase(stream).buffer).toString("hex")}`);
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }), (offset) => {
        const [id] = idsOf(stream, [offset]);
        expect(BigInt(`0x${id}`) ^ base).toBe((9n << 64n) | offset);
      }),
    );
  });
});

/** What a fetch answer becomes: a frame with an exact span, nothing, or damage. */
import { describe, expect, test } from "bun:test";
import { type Asked, cutFrame, isCurrent } from "../../../src/adapters/kafka/source-frames.ts";
import type { FetchResponsePartition } from "../../../src/adapters/kafka/wire/messages/fetch.ts";
import { buildBatch, placeBatch } from "../../brokers/kafka/batch-builder.ts";

const asked = (position: bigint): Asked =>
  ({ partition: { stream: 3, attempt: 2 }, version: 0, position }) as unknown as Asked;

function batchAt(base: bigint, records: number): Uint8Array {
  const batch = buildBatch({ records: Array.from({ length: records }, () => ({ value: "v" })) });
  placeBatch(batch, base, 7);
  return batch;
}

const answer = (records: Uint8Array | null, highWatermark = 100n): FetchResponsePartition =>
  ({ records, highWatermark, abortedTransactions: null }) as unknown as FetchResponsePartition;

const joined = (...parts: Uint8Array[]) => new Uint8Array(Buffer.concat(parts));

describe("cutting a frame", () => {
  test("the span begins where was asked and ends after the last whole batch", () => {
    const bytes = joined(batchAt(10n, 3), batchAt(13n, 2));
    const cut = cutFrame(asked(11n), answer(bytes), true);
    expect(cut).toMatchObject({
      kind: "frame",
      epoch: 7,
      frame: {
        stream: 3,
        attempt: 2,
        from: 11n,
        next: 15n,
        start: 0,
        end: bytes.length,
        committedOnly: true,
      },
    });
  });

  test("no records are no frame", () => {
    expect(cutFrame(asked(0n), answer(null), true)).toEqual({ kind: "empty" });
    expect(cutFrame(asked(0n), answer(new Uint8Array(0)), true)).toEqual({ kind: "empty" });
  });

  test("a first batch that is cut says how much it needs", () => {
    const batch = batchAt(0n, 5);
    expect(cutFrame(asked(0n), answer(batch.subarray(0, 40)), true)).toEqual({
      kind: "cut",
      need: batch.length,
    });
  });

  test("batches that all end before the position are behind", () => {
    expect(cutFrame(asked(20n), answer(batchAt(10n, 3)), true)).toEqual({ kind: "behind" });
  });

  // No checksum covers a base offset: order and high watermark are what is left to tell damage by.
  test("a first batch that ends before the position, with others behind it, is damage", () => {
    const bytes = joined(batchAt(1n, 3), batchAt(13n, 2));
    expect(() => cutFrame(asked(10n), answer(bytes), true)).toThrow(
      /asked for 10, got a batch that ends at 4/,
    );
  });

  test("a batch beyond the high watermark is not read; where the broker tells none it is", () => {
    const cut = cutFrame(asked(10n), answer(batchAt(10n, 3), 12n), true);
    expect(cut.kind === "ahead" ? cut.failure.message : cut.kind).toMatch(/ends at 13, the log at 12/);
    expect(cutFrame(asked(10n), answer(batchAt(10n, 3), -1n), true)).toMatchObject({ kind: "frame" });
  });
});

describe("an answer", () => {
  // Method: the partition is moved between question and answer, by a seek and by the answer of another loop.
  test("counts only while the partition is where it was", () => {
    const partition = { version: 4, position: 10n };
    const question = { partition, version: 4, position: 10n } as unknown as Asked;
    expect(isCurrent(question)).toBe(true);
    partition.position = 20n;
    expect(isCurrent(question)).toBe(false);
    Object.assign(partition, { version: 5, position: 10n });
    expect(isCurrent(question)).toBe(false);
  });
});

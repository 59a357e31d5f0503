/**
 * Goal: columns grow without losing what is in them, give back what one huge record took, and carry constant fields
 * as few runs. Method: records with extreme shapes through the decoder, and the builder on its own.
 */
import { expect, test } from "bun:test";
import { fallbackCodecs } from "../../../../../src/adapters/duckdb/native-fallback.ts";
import { BytesBuilder } from "../../../../../src/adapters/kafka/wire/records/bytes-builder.ts";
import { createFrameDecoder } from "../../../../../src/adapters/kafka/wire/records/frame-decoder.ts";
import { buildBatch } from "../../../../brokers/kafka/batch-builder.ts";
import { decode, frameOf, STREAM } from "./rows.ts";

test("thousands of headers with nulls among them", () => {
  const headers = Array.from({ length: 5000 }, (_, i) => [`h${i}`, i % 3 === 0 ? null : `v${i}`] as const);
  const { rows } = decode(
    fallbackCodecs,
    buildBatch({ records: [{ headers }, { headers: [] }, { headers }] }),
    {
      next: 3n,
    },
  );
  const expected = headers.map(([k, v]) => [
    Buffer.from(k).toString("hex"),
    v === null ? null : Buffer.from(v).toString("hex"),
  ]);
  expect(rows.map((r) => r.headers)).toEqual([expected, [], expected] as never);
});

test("keys of all sizes around the one where copying changes, and one that makes the column grow", () => {
  const sizes = [0, 1, 47, 48, 49, 1000, 300_000, 5];
  const records = sizes.map((n, i) => ({ key: new Uint8Array(n).fill(i + 1), value: null }));
  const { rows } = decode(fallbackCodecs, buildBatch({ records }), { next: 8n });
  rows.forEach((row, i) => {
    expect(row.key).toBe(Buffer.from(records[i]!.key).toString("hex"));
  });
});

test("batches with the same producer fields share a run; more runs than fit at first make room", () => {
  const decoder = createFrameDecoder({ codecs: fallbackCodecs });
  const count = (changing: boolean) => {
    const batches = Array.from({ length: 2500 }, (_, i) =>
      buildBatch({ records: [{}], baseOffset: BigInt(i), baseSequence: changing ? i : -1 }),
    );
    const bytes = Uint8Array.from(Buffer.concat(batches));
    const seen: [number, number, number][] = [];
    decoder.decode(bytes, frameOf(bytes, { next: 2500n }), STREAM, 0, ({ runs }) => {
      seen.push([runs.count, runs.end[runs.count - 1]!, runs.baseSequence[runs.count - 1]!]);
    });
    return seen;
  };
  expect(count(true)).toEqual([[2500, 2500, 2499]]);
  expect(count(false)).toEqual([[1, 2500, -1]]);
});

test("a column gives back what one huge value or very many rows took", () => {
  const column = new BytesBuilder(4);
  column.append(0, new Uint8Array(20_000_000), 0, 20_000_000);
  for (let row = 1; row < 2_000_000; row++) column.append(row, new Uint8Array(0), 0, row % 2 === 0 ? -1 : 0);
  expect(column.nullCount).toBe(999_999);
  column.reset();
  expect(column.data.length).toBeLessThan(100_000);
  expect(column.offsets.length).toBe(5);
  column.append(0, Uint8Array.of(9), 0, 1);
  expect(column.column()).toMatchObject({ nullCount: 0 });
  expect(column.data[0]).toBe(9);
  expect(column.validity.every((b) => b === 0xff)).toBe(true);
});

test("the stream, the arrival time and the span travel with the batch", () => {
  const bytes = buildBatch({ records: [{ value: "x" }], baseOffset: 4n });
  createFrameDecoder({ codecs: fallbackCodecs }).decode(
    bytes,
    frameOf(bytes, { from: 2n, next: 5n }),
    STREAM,
    77,
    (b) => {
      expect(b.stream).toBe(STREAM);
      expect(b.ingestTs).toBe(77);
      expect(b.span).toEqual({ stream: "kafka/c/t/0/3", from: 2n, next: 5n });
    },
  );
  expect.assertions(3);
});

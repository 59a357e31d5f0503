/** Property: whatever records come, in whatever batches, hyparquet reads back exactly those. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import type { StreamId } from "../../../../src/core/records/stream.ts";
import { batchOf, comparable, expectedRow, fileOf, type Row, readBack, STREAM } from "./rows.ts";

const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
const some = fc.uint8Array({ maxLength: 40 });
const rowArbitrary: fc.Arbitrary<Row> = fc.record({
  offset: fc.oneof(fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }), fc.bigInt({ min: 0n, max: 5000n })),
  timestamp: fc.oneof(int64, fc.bigInt({ min: 1_700_000_000_000n, max: 1_700_000_100_000n })),
  timestampType: fc.integer({ min: 0, max: 2 }),
  key: fc.option(some),
  value: fc.option(fc.oneof(some, fc.constant(new Uint8Array(70_000)))),
  headers: fc.oneof(
    { weight: 3, arbitrary: fc.constant([]) },
    { weight: 1, arbitrary: fc.array(fc.tuple(some, fc.option(some)), { maxLength: 6 }) },
  ),
  leaderEpoch: fc.integer({ min: -1, max: 3 }),
  producerId: fc.oneof(fc.constant(-1n), fc.bigInt({ min: 0n, max: 2n ** 63n - 1n })),
  producerEpoch: fc.integer({ min: -1, max: 32_767 }),
  baseSequence: fc.integer({ min: -1, max: 2 ** 31 - 1 }),
  transactional: fc.boolean(),
});

const streamArbitrary: fc.Arbitrary<StreamId> = fc.record({
  transport: fc.constant("kafka" as const),
  cluster: fc.constantFrom("", "c1"),
  topic: fc.constantFrom("orders", "a.b-c_d"),
  incarnation: fc.integer({ min: 0, max: 2 }),
  partition: fc.integer({ min: 0, max: 2 ** 31 - 1 }),
});

test("random records, batches, streams and row-group sizes", async () => {
  const batches = fc.array(fc.tuple(fc.array(rowArbitrary, { maxLength: 40 }), streamArbitrary), {
    maxLength: 6,
  });
  const options = fc.record({ rowGroupBytes: fc.constantFrom(1, 3000, 1 << 25), compressed: fc.boolean() });
  await fc.assert(
    fc.asyncProperty(batches, options, async (list, o) => {
      const file = fileOf(
        list.map(([rows, stream]) => batchOf(rows, stream)),
        o,
      );
      const expected = list.flatMap(([rows, stream]) => rows.map((r) => expectedRow(r, stream)));
      expect((await readBack(file)).map(comparable)).toEqual(expected);
    }),
    { numRuns: 60 },
  );
}, 30_000);

test("the record id in the file is that of the record", async () => {
  const { recordIdBase, fillRecordIds } = await import("../../../../src/core/records/record-id.ts");
  const rows = [0n, 1n, 2n ** 40n].map((offset) => ({ offset }) as Row);
  const { row } = await import("./rows.ts");
  const streams = [
    STREAM,
    { ...STREAM, incarnation: 1 },
    { ...STREAM, cluster: "c2" },
    { ...STREAM, topic: "other" },
    STREAM,
  ];
  const file = fileOf(
    streams.map((s) =>
      batchOf(
        rows.map((r) => row(r.offset)),
        s,
      ),
    ),
  );
  const expected = streams.flatMap((s) => {
    const out = new Int32Array(12);
    fillRecordIds(
      recordIdBase(s),
      s.partition,
      new Int32Array(BigInt64Array.from([0n, 1n, 2n ** 40n]).buffer),
      0,
      3,
      out,
      0,
    );
    return [0, 1, 2].map((i) => Buffer.from(out.buffer, 16 * i, 16).toString("hex"));
  });
  const read = await readBack(file);
  expect(read.map((r) => Buffer.from(r._twg_record_id as Uint8Array).toString("hex"))).toEqual(expected);
});

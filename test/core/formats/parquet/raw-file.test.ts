/** Raw files as hyparquet, a reader that shares no code with the writer, finds them. Edge values one by one. */
import { describe, expect, test } from "bun:test";
import { parquetMetadata } from "hyparquet";
import { METADATA_COLUMNS } from "../../../../src/core/records/metadata-columns.ts";
import type { RawBatch } from "../../../../src/core/records/raw-batch.ts";
import type { StreamId } from "../../../../src/core/records/stream.ts";
import {
  batchOf,
  bytes,
  comparable,
  expectedRow,
  type FileOptions,
  fileOf,
  type Row,
  readBack,
  row,
  STREAM,
} from "./rows.ts";

const I64_MAX = 2n ** 63n - 1n;
const I64_MIN = -(2n ** 63n);

/** Goal: what is written is what is read. Method: one batch, whole rows compared. */
async function expectRoundTrip(
  rows: readonly Row[],
  options: FileOptions = {},
  stream: StreamId = STREAM,
): Promise<void> {
  const read = await readBack(fileOf([batchOf(rows, stream)], options));
  expect(read.map(comparable)).toEqual(rows.map((r) => expectedRow(r, stream)));
}

describe("edge values survive", () => {
  test("null and empty are distinct in key and value", () =>
    expectRoundTrip([
      row(0, { key: null, value: bytes("") }),
      row(1, { key: bytes(""), value: null }),
      row(2, { key: bytes("k"), value: bytes("v") }),
      row(3),
    ]));

  test("bytes that are no UTF-8 stay as they are, in keys, values and headers", () => {
    const wild = Uint8Array.of(0xff, 0x00, 0xc3, 0x28, 0x80);
    return expectRoundTrip([row(0, { key: wild, value: wild, headers: [[wild, wild]] })]);
  });

  test("headers: none, duplicate keys in order, null and empty values, 200 of them", () =>
    expectRoundTrip([
      row(0),
      row(1, {
        headers: [
          [bytes("a"), bytes("1")],
          [bytes("a"), null],
          [bytes("a"), bytes("")],
          [bytes(""), bytes("x")],
        ],
      }),
      row(2),
      row(3, {
        headers: Array.from({ length: 200 }, (_, i) => [
          bytes(`h${i % 7}`),
          i % 3 === 0 ? null : bytes(`${i}`),
        ]),
      }),
      row(4, { headers: [[bytes("z"), null]] }),
    ]));

  test("timestamps: zero, negative, -1 and the ends of int64 are kept", () =>
    expectRoundTrip(
      [0n, -1n, -2n, I64_MAX, I64_MIN, 1n, I64_MIN + 1n, -62_135_596_800_000n].map((timestamp, i) =>
        row(i, { timestamp }),
      ),
    ));

  test("a record format without timestamps gives null, and only there", () =>
    expectRoundTrip([
      row(0, { timestampType: 0, timestamp: -1n }),
      row(1, { timestampType: 0, timestamp: -1n }),
      row(2, { timestampType: 1, timestamp: -1n }),
      row(3, { timestampType: 2, timestamp: 5n }),
    ]));

  test("offsets over 2^53 and at the end of int64", () =>
    expectRoundTrip([2n ** 53n + 1n, 2n ** 53n + 2n, 2n ** 62n, I64_MAX - 1n, I64_MAX].map((o) => row(o))));

  test("producer fields: -1 is null, everything else is kept", () =>
    expectRoundTrip([
      row(0, { producerId: 0n, producerEpoch: 0, baseSequence: 0, leaderEpoch: 0 }),
      row(1, {
        producerId: I64_MAX,
        producerEpoch: 32_767,
        baseSequence: 2_147_483_647,
        leaderEpoch: 7,
        transactional: true,
      }),
      row(2),
      row(3, { transactional: true }),
    ]));

  test("a cluster without an id is null", () => expectRoundTrip([row(0)], {}, { ...STREAM, cluster: "" }));

  test("a value of 20 MiB between small ones", async () => {
    const huge = new Uint8Array(20 * 1024 * 1024);
    for (let i = 0; i < huge.length; i += 997) huge[i] = i;
    const rows = [
      row(0, { value: bytes("a") }),
      row(1, { value: huge }),
      row(2, { value: bytes("b") }),
      row(3, { value: huge }),
    ];
    const read = await readBack(fileOf([batchOf(rows)]));
    expect(read.map((r) => (r._twg_source_value as Uint8Array).length)).toEqual([
      1,
      huge.length,
      1,
      huge.length,
    ]);
    expect(Buffer.from(read[1]?._twg_source_value as Uint8Array).equals(Buffer.from(huge))).toBe(true);
  });

  test("no rows at all make a valid empty file", async () => {
    const file = fileOf([]);
    expect(await readBack(file)).toEqual([]);
    expect(parquetMetadata(file.buffer).num_rows).toBe(0n);
  });
});

describe("pages and row groups", () => {
  const many = (n: number, from = 0): Row[] =>
    Array.from({ length: n }, (_, i) =>
      row(from + i, {
        timestamp: BigInt(1_700_000_000_000 + i * 7),
        key: i % 5 === 0 ? null : bytes(`k${i % 11}`),
        value: bytes(`{"id":${i},"text":"${"x".repeat(i % 40)}"}`),
        headers:
          i % 4 === 0
            ? [
                [bytes("trace"), bytes(`${i}`)],
                [bytes("n"), null],
              ]
            : [],
        baseSequence: Math.floor(i / 50),
        producerId: 9n,
      }),
    );

  test("rows over many pages (70,000, with lists) come back in order", async () => {
    const rows = many(70_000);
    const read = await readBack(fileOf([batchOf(rows)]));
    expect(read.length).toBe(rows.length);
    for (const i of [0, 1, 32_767, 32_768, 32_769, 65_535, 65_536, 69_999]) {
      expect(comparable(read[i]!)).toEqual(expectedRow(rows[i]!));
    }
    expect(read.map((r) => Number(r._twg_source_offset))).toEqual(rows.map((r) => Number(r.offset)));
    expect(read.reduce((n, r) => n + (r._twg_source_headers as unknown[]).length, 0)).toBe(35_000);
  });

  test("a list is never split between pages: rows of 300 KB of headers", () => {
    const big = new Uint8Array(100_000).fill(65);
    const rows = Array.from({ length: 12 }, (_, i) =>
      row(i, {
        headers: [
          [big, big],
          [bytes("k"), null],
          [big, big],
        ],
      }),
    );
    return expectRoundTrip(rows);
  });

  test("small row groups: counts, and everything in order over their seams", async () => {
    const rows = many(3000);
    const batches = [batchOf(rows.slice(0, 700)), batchOf(rows.slice(700, 701)), batchOf(rows.slice(701))];
    const file = fileOf(batches, { rowGroupBytes: 20_000 });
    const meta = parquetMetadata(file.buffer);
    expect(meta.row_groups.length).toBeGreaterThan(1);
    expect(meta.row_groups.map((g) => Number(g.num_rows)).reduce((a, b) => a + b)).toBe(3000);
    expect((await readBack(file)).map(comparable)).toEqual(rows.map((r) => expectedRow(r)));
  });

  test("three streams take turns in one file", async () => {
    const streams = [0, 1, 2].map((p) => ({ ...STREAM, partition: p, topic: p === 2 ? "other" : "orders" }));
    const parts: [RawBatch, Row[], StreamId][] = Array.from({ length: 30 }, (_, i) => {
      const stream = streams[i % 3]!;
      const rows = many(7, i * 7);
      return [batchOf(rows, stream), rows, stream];
    });
    const read = await readBack(fileOf(parts.map(([b]) => b)));
    expect(read.map(comparable)).toEqual(parts.flatMap(([, rows, s]) => rows.map((r) => expectedRow(r, s))));
  });

  test("part of a batch: rows [3, 8) and nothing of the others", async () => {
    const { rawFile, taken, concat } = await import("./rows.ts");
    const rows = many(10);
    const file = rawFile();
    file.append(batchOf(rows), 3, 8, 1_700_000_000_900);
    file.append(batchOf(rows), 9, 9, 1_700_000_000_900);
    file.finish([]);
    const read = await readBack(concat(taken(file)));
    expect(read.map(comparable)).toEqual(rows.slice(3, 8).map((r) => expectedRow(r)));
  });

  test("without compression the same rows", () => expectRoundTrip(many(500), { compressed: false }));

  test("a batch of single-record broker batches: runs of one row", () =>
    expectRoundTrip(
      Array.from({ length: 400 }, (_, i) =>
        row(i, {
          producerId: BigInt(i),
          baseSequence: i * 3,
          leaderEpoch: i % 2,
          transactional: i % 3 === 0,
          timestampType: i % 3,
        }),
      ),
    ));

  test("a dictionary that fills up closes the row group", async () => {
    const rows = Array.from({ length: 70_000 }, (_, i) => row(i, { producerId: 1n, baseSequence: i }));
    const file = fileOf([batchOf(rows.slice(0, 66_000)), batchOf(rows.slice(66_000))]);
    expect(parquetMetadata(file.buffer).row_groups.map((g) => Number(g.num_rows))).toEqual([65_536, 4464]);
    const read = await readBack(file);
    expect(read.every((r, i) => r._twg_source_base_sequence === i)).toBe(true);
  });
});

describe("footer", () => {
  const stats = (file: Uint8Array<ArrayBuffer>, name: string, group = 0) =>
    parquetMetadata(file.buffer).row_groups[group]?.columns.find(
      (c) => c.meta_data?.path_in_schema.join(".") === name,
    )?.meta_data?.statistics;

  test("the columns are those of the list, in its order", () => {
    const meta = parquetMetadata(fileOf([batchOf([row(0)])]).buffer);
    const roots = meta.schema.filter((e) => e.name.startsWith("_twg_")).map((e) => e.name);
    expect(roots).toEqual(METADATA_COLUMNS.map((c) => `_twg_${c.name}`));
    expect(meta.created_by).toBe("twg version 9.9.9");
  });

  test("every leaf has the order of its type, without which readers must not trust bounds", () => {
    const file = fileOf([]);
    // FileMetaData ends with field 7: a list of 29 unions, each TypeDefinedOrder {}, then the end of the struct.
    const orders = [0x19, 0xfc, 29, ...Array.from({ length: 29 }, () => [0x1c, 0, 0]).flat(), 0];
    expect([...file.subarray(file.length - 8 - orders.length, file.length - 8)]).toEqual(orders);
  });

  test("key-value metadata is kept", () => {
    const meta = parquetMetadata(
      fileOf([batchOf([row(0)])], { metadata: [["twg.spans", '[{"é":1}]']] }).buffer,
    );
    expect(meta.key_value_metadata).toEqual([{ key: "twg.spans", value: '[{"é":1}]' }]);
  });

  test("bounds and null counts are those of the rows", () => {
    const rows = [
      row(5, { timestamp: 10n, value: null, leaderEpoch: 3 }),
      row(900, { timestamp: -4n, key: bytes("k"), leaderEpoch: -1 }),
      row(901, { timestamp: 7n, timestampType: 0, leaderEpoch: 2 }),
    ];
    const file = fileOf([batchOf(rows)]);
    expect(stats(file, "_twg_source_offset")).toMatchObject({
      min_value: 5n,
      max_value: 901n,
      null_count: 0n,
    });
    const ts = stats(file, "_twg_source_timestamp");
    expect(ts).toMatchObject({ null_count: 1n });
    expect([Number(ts?.min_value), Number(ts?.max_value)]).toEqual([-4, 10]);
    expect(stats(file, "_twg_source_leader_epoch")).toMatchObject({
      min_value: 2,
      max_value: 3,
      null_count: 1n,
    });
    expect(stats(file, "_twg_source_topic")).toMatchObject({
      min_value: "orders",
      max_value: "orders",
      null_count: 0n,
    });
    expect(stats(file, "_twg_source_key")).toMatchObject({ null_count: 2n });
    expect(stats(file, "_twg_source_value")?.min_value).toBeUndefined();
    expect(stats(file, "_twg_dq")).toMatchObject({ null_count: 3n });
  });

  test("bounds of int64 compare the low half without a sign", () => {
    const file = fileOf([batchOf([2n ** 31n, 1n, 2n ** 32n - 1n, 2n ** 31n + 5n].map((o) => row(o)))]);
    expect(stats(file, "_twg_source_offset")).toMatchObject({ min_value: 1n, max_value: 2n ** 32n - 1n });
  });

  test("timestamps that microseconds cannot hold give no bounds", () => {
    const of = (timestamp: bigint) =>
      stats(fileOf([batchOf([row(0, { timestamp }), row(1)])]), "_twg_source_timestamp");
    expect(of(9_200_000_000_000_002n)?.max_value).toBeUndefined();
    expect(of(-9_200_000_000_000_002n)?.min_value).toBeUndefined();
    expect(of(-9_000_000_000_000_000n)?.min_value).toBeDefined();
  });

  test("the offsets of pages: a dictionary first, then the data, one chunk after the other", () => {
    const file = fileOf([batchOf(Array.from({ length: 5000 }, (_, i) => row(i, { value: bytes(`${i}`) })))]);
    let next = 4;
    for (const { meta_data: m } of parquetMetadata(file.buffer).row_groups[0]?.columns ?? []) {
      const first = Number(m?.dictionary_page_offset ?? m?.data_page_offset);
      expect(first).toBe(next);
      if (m?.dictionary_page_offset !== undefined) {
        expect(m.data_page_offset).toBeGreaterThan(m.dictionary_page_offset);
        // A page header begins with its type: field 1, int32, zigzag 0 (data) and 2 (dictionary).
        expect([...file.subarray(first, first + 2)]).toEqual([0x15, 4]);
      }
      expect([...file.subarray(Number(m?.data_page_offset), Number(m?.data_page_offset) + 2)]).toEqual([
        0x15, 0,
      ]);
      next = first + Number(m?.total_compressed_size);
    }
  });

  test("bounds are per row group and forget the one before", () => {
    const file = fileOf([batchOf([row(1000, { timestamp: 9n })]), batchOf([row(3, { timestamp: 5n })])], {
      rowGroupBytes: 1,
    });
    expect(stats(file, "_twg_source_offset", 1)).toMatchObject({ min_value: 3n, max_value: 3n });
  });

  test("bounds of text are in the order of its bytes, of integers signed", () => {
    const s = (topic: string, partition: number): StreamId => ({ ...STREAM, topic, partition });
    const topics = [s("a", 1), s("\u{10000}", -5), s("\uffee", 2)];
    const file = fileOf(topics.map((t, i) => batchOf([row(i)], t)));
    // UTF-16 would put U+10000 (D800 DC00) below U+FFEE; UTF-8 (F0 ... against EF ...) puts it above.
    expect(stats(file, "_twg_source_topic")).toMatchObject({ min_value: "a", max_value: "\u{10000}" });
    expect(stats(file, "_twg_source_partition")).toMatchObject({ min_value: -5, max_value: 2 });
  });

  test("a column of nothing but nulls costs less than 80 bytes a row group", () => {
    const file = fileOf([batchOf(Array.from({ length: 20_000 }, (_, i) => row(i)))]);
    const columns = parquetMetadata(file.buffer).row_groups[0]?.columns ?? [];
    const sizes = columns.map(
      (c) => [c.meta_data?.path_in_schema[0], Number(c.meta_data?.total_compressed_size)] as const,
    );
    for (const name of ["_twg_dq", "_twg_source_message_id", "_twg_source_topic", "_twg_source_partition"]) {
      expect(sizes.find(([n]) => n === name)?.[1]).toBeLessThan(80);
    }
  });
});

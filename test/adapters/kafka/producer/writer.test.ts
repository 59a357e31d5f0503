/**
 * Goal: batches are Kafka's format byte for byte, and are cut in two without loss. Method: the test broker's own batch
 * builder, which shares no code with ours, builds the same records; compressed ones are read by our decompressors, which
 * are proven against others' bytes elsewhere.
 */
import { expect, test } from "bun:test";
import { libduckdbPath } from "../../../../src/adapters/duckdb/embedded.ts";
import { loadNative } from "../../../../src/adapters/duckdb/native.ts";
import { columnsOf, type OneRecord } from "../../../../src/adapters/kafka/producer/columns.ts";
import * as L from "../../../../src/adapters/kafka/wire/records/layout.ts";
import {
  isTooLong,
  RecordWriter,
  rowBound,
  timestampOf,
} from "../../../../src/adapters/kafka/wire/records/record-writer.ts";
import { sealBatch, stampBatch, UNSTAMPED } from "../../../../src/adapters/kafka/wire/records/seal.ts";
import { splitBatch } from "../../../../src/adapters/kafka/wire/records/split.ts";
import { decompress } from "../../../../src/core/compression/decompress.ts";
import { Output } from "../../../../src/core/compression/output.ts";
import type { BytesColumn } from "../../../../src/core/records/raw-batch.ts";
import { buildBatch } from "../../../brokers/kafka/batch-builder.ts";
import { SeededChance } from "../../../sim/chance.ts";

const codecs = loadNative(libduckdbPath());
const NONE = { codec: null, level: 0 };

function written(records: readonly OneRecord[]): RecordWriter {
  const columns = columnsOf(records, 0);
  let room = L.V2_RECORDS;
  for (let i = 0; i < columns.rows; i++) room += rowBound(columns, i);
  const w = new RecordWriter(new Uint8Array(room));
  for (let i = 0; i < columns.rows; i++) w.append(columns, i, timestampOf(columns, i, 5));
  return w;
}

const builderOf = (records: readonly OneRecord[]) =>
  buildBatch({
    leaderEpoch: -1,
    baseTimestamp: BigInt(records[0]!.timestamp ?? 5),
    records: records.map((r) => ({
      key: r.key ?? null,
      value: r.value,
      timestamp: BigInt(r.timestamp ?? 5),
      headers: r.headers ?? [],
    })),
  });

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

const SHAPES: readonly OneRecord[] = [
  { value: "first", key: "k", timestamp: 1_700_000_000_000 },
  { value: null, key: "", timestamp: 1_700_000_000_001 },
  {
    value: "",
    timestamp: 1_699_000_000_000,
    headers: [
      ["a", null],
      ["a", ""],
      ["b", "x".repeat(70)],
    ],
  },
  // Further away than 32 bits of milliseconds, both ways.
  { value: "y".repeat(9_000), key: new Uint8Array([0, 255]), timestamp: 1_400_000_000_000 },
  { value: "z".repeat(49), timestamp: 1_900_000_000_000, headers: [["", "no name"]] },
  { value: "last", timestamp: -1 },
];

test("records of every shape, byte for byte", () => {
  const bytes = sealBatch(codecs, NONE, written(SHAPES));
  stampBatch(codecs, bytes, UNSTAMPED);
  expect(hex(bytes)).toBe(hex(builderOf(SHAPES)));
});

test("random records, byte for byte", () => {
  const chance = new SeededChance(7);
  for (let n = 0; n < 50; n++) {
    const records = Array.from({ length: 1 + chance.int(200) }, () => ({
      value: chance.next() < 0.1 ? null : chance.bytes(chance.int(300)),
      key: chance.next() < 0.5 ? null : chance.bytes(chance.int(80)),
      timestamp: 1_700_000_000_000 + chance.int(20_000_000_000) - 10_000_000_000,
      headers: chance.next() < 0.8 ? [] : [["h", chance.bytes(chance.int(5))] as const],
    }));
    const bytes = sealBatch(codecs, NONE, written(records));
    stampBatch(codecs, bytes, UNSTAMPED);
    expect(hex(bytes)).toBe(hex(builderOf(records)));
  }
});

test("fields of every length, in the middle of larger arrays, from one call and another", () => {
  const chance = new SeededChance(8);
  const records = Array.from({ length: 600 }, (_, i) => ({
    key: chance.bytes(i % 300),
    value: chance.bytes(i >> 1),
  }));
  const shifted = (column: BytesColumn): BytesColumn => {
    const larger = new Uint8Array(column.data.length + 16).fill(0xee);
    larger.set(column.data, 7);
    return { ...column, data: larger.subarray(7, 7 + column.data.length) };
  };
  const calls = [records.slice(0, 200), records.slice(200)].map((part) => {
    const { key, value, ...rest } = columnsOf(part, 0);
    return { ...rest, key: shifted(key!), value: shifted(value!) };
  });
  const w = new RecordWriter(new Uint8Array(1 << 20));
  for (const columns of calls) for (let i = 0; i < columns.rows; i++) w.append(columns, i, 5);
  const bytes = sealBatch(codecs, NONE, w);
  stampBatch(codecs, bytes, UNSTAMPED);
  expect(hex(bytes)).toBe(hex(builderOf(records)));
});

test("producer fields and the transactional bit are under the checksum", () => {
  const bytes = sealBatch(codecs, NONE, written(SHAPES));
  stampBatch(codecs, bytes, { producerId: 77n, epoch: 3, sequence: 12, transactional: true });
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  expect([view.getBigInt64(43), view.getInt16(51), view.getInt32(53), view.getInt16(21) & 16]).toEqual([
    77n,
    3,
    12,
    16,
  ]);
  expect(view.getUint32(17)).toBe(codecs.crc32c(bytes, 21, bytes.length));
});

function recordsIn(bytes: Uint8Array): Uint8Array {
  const codec = L.CODECS[new DataView(bytes.buffer, bytes.byteOffset).getInt16(21) & 7] ?? null;
  if (codec === null) return bytes.subarray(61);
  const out = new Output(1024);
  out.begin(0, 1 << 24);
  decompress(codecs, codec, bytes, 61, bytes.length, out);
  return out.bytes.slice(0, out.end);
}

test.each(["gzip", "snappy", "lz4", "zstd"] as const)(
  "%s holds the same records, in fewer bytes",
  (codec) => {
    const records = Array.from({ length: 3_000 }, (_, i) => ({
      value: `record ${i} of many that are alike`,
      timestamp: i,
    }));
    const plain = sealBatch(codecs, NONE, written(records)).slice();
    const bytes = sealBatch(codecs, { codec, level: 3 }, written(records));
    expect(bytes.length).toBeLessThan(plain.length / 2);
    expect(hex(recordsIn(bytes))).toBe(hex(plain.subarray(61)));
  },
);

test("what compression makes larger is sent as it is", () => {
  const records = [{ value: new SeededChance(1).bytes(20), timestamp: 0 }];
  const bytes = sealBatch(codecs, { codec: "zstd", level: 3 }, written(records));
  expect(new DataView(bytes.buffer, bytes.byteOffset).getInt16(21)).toBe(0);
});

test.each(["none", "lz4"] as const)("a batch in two halves, %s", (name) => {
  const compression = { codec: name === "none" ? null : name, level: 0 };
  const records = Array.from({ length: 101 }, (_, i) => ({
    value: `r${i}`.repeat(50),
    key: i % 2 ? "k" : null,
    timestamp: 1_000 + i,
  }));
  const whole = sealBatch(codecs, compression, written(records)).slice();
  const halves = splitBatch(codecs, compression, whole);
  for (const [i, half] of halves.entries()) {
    const mine = i === 0 ? records.slice(0, 50) : records.slice(50);
    // The halves count time from the first record of the whole.
    const view = new DataView(half.buffer, half.byteOffset);
    expect([view.getInt32(57), view.getInt32(23), view.getBigInt64(27)]).toEqual([
      mine.length,
      mine.length - 1,
      1_000n,
    ]);
    expect(view.getInt32(8)).toBe(half.length - 12);
    const expected = buildBatch({
      baseTimestamp: 1_000n,
      records: mine.map((r) => ({ key: r.key, value: r.value, timestamp: BigInt(r.timestamp) })),
    });
    expect(hex(recordsIn(half))).toBe(hex(expected.subarray(61)));
  }
});

test("a record that no length can say is known before memory is taken", () => {
  expect([isTooLong(0x3fff_ffff), isTooLong(0x4000_0000)]).toEqual([false, true]);
});

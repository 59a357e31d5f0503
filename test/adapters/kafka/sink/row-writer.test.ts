/**
 * Goal: decoded rows are records in the order of those that they came from, with their key, headers and timestamp, behind
 * their envelope; a tombstone of a key goes along. Method: batches of plain rows and an encoder that is plain to see.
 */
import { expect, test } from "bun:test";
import { rowRecords } from "../../../../src/adapters/kafka/sink/row-writer.ts";
import { encodeJsonColumns } from "../../../../src/core/codecs/json/encode.ts";
import { int64At } from "../../../../src/core/records/int64-at.ts";
import { builderOf } from "../../../../src/core/types/column-builder.ts";
import type { TableBatch } from "../../../../src/core/types/table-batch.ts";
import { pushValue } from "../../../../src/core/types/value-cells.ts";
import { batchOf, bytes, row } from "../../../core/formats/parquet/rows.ts";
import { plainRecords } from "./plain-records.ts";

const HEADERS = { choice: "none", prefix: "_twg_", pipeline: "p" } as const;
const LONG = "y".repeat(60);

const SOURCE = [
  row(4, { key: bytes("a"), value: bytes("raw"), headers: [[bytes("h"), null]], timestamp: 5n }),
  row(5, { value: bytes("refused") }),
  row(6, { key: bytes("b"), value: null }),
  row(7, { value: null }),
  row(9, { key: bytes("c"), value: bytes("raw"), timestamp: 7n }),
  row(10, { value: bytes("raw") }),
];

function table(...values: string[]): TableBatch {
  const type = { id: "utf8" } as const;
  const b = builderOf(type);
  for (const value of values) {
    b.reserve(1);
    pushValue(b, { kind: "string", value });
  }
  return { fields: [{ name: "v", type, nullable: true }], columns: [b.finish()], rows: values.length };
}

const encoding = (envelope = "") => ({ envelope: bytes(envelope), encode: encodeJsonColumns });

test("in the order of the records, whatever their schemas were", () => {
  const source = batchOf(SOURCE);
  // Two schemas: records 4 and 0 by one, 5 by another.
  const records = rowRecords(
    { source, table: table("nine", "four", LONG), tableRows: Int32Array.of(4, 0, 5) },
    encoding("#"),
    HEADERS,
  )!;
  source.key.data.fill(0);
  source.timestamps.fill(0);
  expect(plainRecords(records.owned.columns)).toEqual([
    { key: "a", value: '#{"v":"four"}', headers: [["h", null]], ms: 5n },
    { key: "b", value: null, headers: [], ms: 1_700_000_000_000n },
    { key: "c", value: '#{"v":"nine"}', headers: [], ms: 7n },
    { key: null, value: `#{"v":"${LONG}"}`, headers: [], ms: 1_700_000_000_000n },
  ]);
  expect([0, 1, 2, 3].map((row) => int64At(records.offsets, row))).toEqual([4n, 6n, 9n, 10n]);
});

test("headers say where a record was", () => {
  const choice = { ...HEADERS, choice: "locator" } as const;
  const batch = { source: batchOf(SOURCE), table: table("x"), tableRows: Int32Array.of(4) };
  const records = plainRecords(rowRecords(batch, encoding(), choice)!.owned.columns);
  expect(records.map((r) => r.headers.at(-1))).toEqual([
    ["_twg_source_offset", "6"],
    ["_twg_source_offset", "9"],
  ]);
});

test("nothing of a batch without rows and tombstones", () => {
  const source = batchOf([row(1, { value: bytes("refused") })]);
  expect(rowRecords({ source, table: null, tableRows: new Int32Array(0) }, encoding(), HEADERS)).toBeNull();
});

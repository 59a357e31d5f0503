/**
 * Goal: stored values that their column's type cannot have make their row a fault, also within lists and maps, and those at
 * the edge do not. Method: stored columns by hand; what is right is read from the corpus by files-corpus.test.ts.
 */
import { expect, test } from "bun:test";
import type { ColumnPlan, Reading } from "../../../../src/core/formats/parquet/column-plan.ts";
import { convertColumn } from "../../../../src/core/formats/parquet/convert-column.ts";
import type { ColumnType, TableColumn } from "../../../../src/core/types/table-batch.ts";
import { FAULT } from "../../../../src/core/types/text-cells.ts";
import { parseType } from "../../../../src/core/types/type-text.ts";
import { plainOf } from "../../../commands/read-files.ts";

const typeOf = (text: string) => parseType(text) as ColumnType;
const BLOB: ColumnType = { id: "binary" };

function stored(
  type: ColumnType,
  data: Uint8Array,
  length: number,
  more: Partial<TableColumn> = {},
): TableColumn {
  return { type, length, nullCount: 0, validity: null, offsets: null, data, children: [], ...more };
}
const int32s = (...v: number[]) =>
  stored(typeOf("int32"), new Uint8Array(Int32Array.from(v).buffer), v.length);
const int64s = (...v: bigint[]) =>
  stored(typeOf("int64"), new Uint8Array(BigInt64Array.from(v).buffer), v.length);
function blobs(...v: Uint8Array[]): TableColumn {
  const offsets = new Int32Array(v.length + 1);
  for (const [i, b] of v.entries()) offsets[i + 1] = offsets[i]! + b.length;
  return stored(BLOB, Buffer.concat(v), v.length, { offsets });
}
const leaf = (type: string, reading: Reading, raw: ColumnType): ColumnPlan => ({
  kind: "leaf",
  type: typeOf(type),
  reading,
  raw,
});

function read(c: TableColumn, plan: ColumnPlan): unknown[] {
  const faults = new Map<number, number>();
  const options = { isUtf8: (b: Uint8Array) => !b.includes(0xff) };
  const out = convertColumn(c, plan, options, (row, fault) => faults.set(row, fault));
  return Array.from({ length: c.length }, (_, i) => faults.get(i) ?? plainOf(out, i));
}

const bigEndian = (n: bigint, bytes: number) =>
  Uint8Array.from({ length: bytes }, (_, i) => Number((n >> BigInt(8 * (bytes - 1 - i))) & 0xffn));
/** Julian day of 1970-01-01 plus `day`, and nanoseconds of it. */
function int96(day: number, nanos: bigint): Uint8Array {
  const b = new DataView(new ArrayBuffer(12));
  b.setBigInt64(0, nanos, true);
  b.setInt32(8, day + 2_440_588, true);
  return new Uint8Array(b.buffer);
}

const R = FAULT.range;
const cases: [string, TableColumn, ColumnPlan, unknown[]][] = [
  ["int8", int32s(127, 128, -128, -129), leaf("int8", "narrow", typeOf("int32")), ["127", R, "-128", R]],
  ["uint16", int32s(65535, 65536, 0, -1), leaf("uint16", "narrow", typeOf("int32")), ["65535", R, "0", R]],
  [
    "time of ms",
    int32s(86_399_999, 86_400_000, -1),
    leaf("time", "timeMillis", typeOf("int32")),
    ["86399999000", R, R],
  ],
  [
    "time of us",
    int64s(86_399_999_999n, 86_400_000_000n, -1n),
    leaf("time", "time", typeOf("int64")),
    ["86399999999", R, R],
  ],
  [
    "time of ns",
    int64s(86_399_999_999_999n, 86_400_000_000_000n),
    leaf("time[ns]", "time", typeOf("int64")),
    ["86399999999999", R],
  ],
  [
    "decimal of int32",
    int32s(99, 100, -99, -100),
    leaf("decimal(2,1)", "decimal", typeOf("int32")),
    ["99", R, "-99", R],
  ],
  [
    "decimal of int64",
    int64s(999999999999999999n, 10n ** 18n, -(10n ** 18n)),
    leaf("decimal(18,0)", "decimal", typeOf("int64")),
    ["999999999999999999", R, R],
  ],
  [
    "decimal of bytes",
    blobs(
      bigEndian(10n ** 38n - 1n, 16),
      bigEndian(10n ** 38n, 16),
      bigEndian(-(10n ** 38n) + 1n, 20),
      bigEndian(1n << 130n, 20),
      bigEndian(1n << 127n, 17),
      Uint8Array.of(0x80),
      new Uint8Array(0),
    ),
    leaf("decimal(38,0)", "decimalBytes", BLOB),
    [String(10n ** 38n - 1n), R, String(-(10n ** 38n) + 1n), R, R, "-128", FAULT.type],
  ],
  [
    "INT96 in ns",
    blobs(
      int96(0, 1n),
      int96(-1, 86_399_999_999_999n),
      int96(106_751, 0n),
      int96(106_752, 0n),
      int96(-106_752, 0n),
      int96(0, 2n ** 60n),
    ),
    leaf("timestamp[ns]", "int96", BLOB),
    ["1", "-1", String(106_751n * 86_400_000_000_000n), R, R, R],
  ],
  [
    "INT96 in us",
    blobs(int96(200_000, 1_000n), int96(0, 1_001n)),
    leaf("timestamp", "int96", BLOB),
    [String(200_000n * 86_400_000_000n + 1n), FAULT.precision],
  ],
  [
    "interval",
    blobs(new Uint8Array(12).fill(0xff), new Uint8Array(12).fill(1)),
    { kind: "leaf", type: { id: "interval" }, reading: "interval", raw: BLOB },
    [R, ["16843009", "16843009", "16843009000000"]],
  ],
  [
    "nulls",
    { ...int32s(1, 2), validity: Uint8Array.of(1), nullCount: 1 },
    leaf("string", "nulls", typeOf("int32")),
    [FAULT.type, null],
  ],
];
for (const [name, column, plan, expected] of cases)
  test(name, () => expect(read(column, plan)).toEqual(expected));

test("a null at fault is none", () => {
  const column = { ...int32s(128, 1), validity: Uint8Array.of(2), nullCount: 1 };
  expect(read(column, leaf("int8", "narrow", typeOf("int32")))).toEqual([null, "1"]);
});

test("a fault in a list is its row's, whatever rows are empty", () => {
  const item = leaf("int8", "narrow", typeOf("int32"));
  const plan: ColumnPlan = { kind: "list", type: typeOf("list<int8>"), item };
  const child = int32s(1, 2, 300, 4, 500);
  const list = stored(plan.type, new Uint8Array(0), 5, {
    offsets: Int32Array.of(0, 0, 2, 3, 3, 5),
    children: [child],
  });
  expect(read(list, plan)).toEqual([[], ["1", "2"], R, [], R]);
});

test("a map with a null key, and one without", () => {
  const text = leaf("string", "text", BLOB);
  const entry: ColumnType = { id: "struct", fields: [] };
  const plan: ColumnPlan = {
    kind: "map",
    type: typeOf("map<string,string>"),
    item: { kind: "struct", type: entry, fields: [text, text] },
  };
  const keys = { ...blobs(Uint8Array.of(97), Uint8Array.of(98)), validity: Uint8Array.of(1), nullCount: 1 };
  const child = stored(entry, new Uint8Array(0), 2, {
    children: [keys, blobs(Uint8Array.of(120), Uint8Array.of(121))],
  });
  const map = stored(plan.type, new Uint8Array(0), 2, { offsets: Int32Array.of(0, 1, 2), children: [child] });
  expect(read(map, plan)).toEqual([[["a", "x"]], FAULT.null]);
});

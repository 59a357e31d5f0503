/**
 * Goal: a column becomes one of another type with every value as it was, or the row is at fault. Method: all pairs of
 * integer types over their edges, held against what JavaScript's own BigInt says; times and floats one by one.
 */
import { expect, test } from "bun:test";
import { canCast, castColumn } from "../../../src/core/types/cast-column.ts";
import type { ColumnType, TableColumn } from "../../../src/core/types/table-batch.ts";
import { FAULT } from "../../../src/core/types/text-cells.ts";
import { parseType } from "../../../src/core/types/type-text.ts";
import { plainOf } from "../../commands/read-files.ts";

const typeOf = (text: string): ColumnType => {
  const type = parseType(text);
  if (typeof type === "string") throw new Error(type);
  return type;
};

function column(
  type: ColumnType,
  data: Uint8Array,
  length: number,
  validity: Uint8Array | null = null,
): TableColumn {
  return { type, length, nullCount: 0, validity, offsets: null, data, children: [] };
}

function intColumn(text: string, values: bigint[]): TableColumn {
  const type = typeOf(text) as Extract<ColumnType, { id: "int" }>;
  const data = new Uint8Array((values.length * type.bits) / 8);
  const view = new DataView(data.buffer);
  for (const [i, v] of values.entries()) {
    if (type.bits === 64) view.setBigInt64(8 * i, v, true);
    else if (type.bits === 32) view.setInt32(4 * i, Number(BigInt.asIntN(32, v)), true);
    else if (type.bits === 16) view.setInt16(2 * i, Number(v), true);
    else view.setInt8(i, Number(v));
  }
  return column(type, data, values.length);
}

function cast(c: TableColumn, to: string) {
  const faults = new Map<number, number>();
  const out = castColumn(c, typeOf(to), (row, fault) => faults.set(row, fault));
  return Array.from({ length: c.length }, (_, i) => faults.get(i) ?? plainOf(out, i));
}

const INTS = [8, 16, 32, 64].flatMap((bits) => [`int${bits}`, `uint${bits}`]);
const rangeOf = (text: string): [bigint, bigint] => {
  const bits = BigInt(/\d+/.exec(text)![0]);
  return text.startsWith("u") ? [0n, 2n ** bits - 1n] : [-(2n ** (bits - 1n)), 2n ** (bits - 1n) - 1n];
};
const EDGES = INTS.flatMap(rangeOf).flatMap((v) => [v - 1n, v, v + 1n]);

for (const from of INTS)
  test(`${from} to every integer type`, () => {
    const [least, most] = rangeOf(from);
    const values = EDGES.filter((v) => v >= least && v <= most);
    for (const to of INTS) {
      const [low, high] = rangeOf(to);
      expect(canCast(typeOf(from), typeOf(to))).toBe(true);
      expect(cast(intColumn(from, values), to)).toEqual(
        values.map((v) => (v >= low && v <= high ? String(v) : FAULT.range)),
      );
    }
  });

const times = (text: string, values: bigint[], validity: Uint8Array | null = null): TableColumn =>
  column(typeOf(text), new Uint8Array(BigInt64Array.from(values).buffer), values.length, validity);

test("timestamps to a finer unit if there is room, to a coarser one if nothing is cut", () => {
  expect(cast(times("timestamp[ms]", [5n, -5n, 2n ** 62n]), "timestamp[ns]")).toEqual([
    "5000000",
    "-5000000",
    FAULT.range,
  ]);
  expect(cast(times("timestamp[ns]", [5_000n, -5_000n, 5_001n]), "timestamp")).toEqual([
    "5",
    "-5",
    FAULT.precision,
  ]);
  expect(cast(times("timestamp[ns]", [1n, 1n], Uint8Array.of(2)), "timestamp")).toEqual([
    null,
    FAULT.precision,
  ]);
  expect(canCast(typeOf("timestamp"), typeOf("timestamptz"))).toBe(false);
});

test("floats and decimals widen, text is bytes, and nothing else", () => {
  const floats = column(typeOf("float"), new Uint8Array(Float32Array.of(0.1, -0).buffer), 2);
  expect(cast(floats, "double")).toEqual(["3fb99999a0000000", "8000000000000000"]);
  expect(canCast(typeOf("decimal(5,2)"), typeOf("decimal(6,2)"))).toBe(true);
  expect(canCast(typeOf("decimal(5,2)"), typeOf("decimal(6,1)"))).toBe(false);
  expect(canCast(typeOf("string"), typeOf("binary"))).toBe(true);
  for (const [from, to] of [
    ["double", "float"],
    ["int64", "double"],
    ["string", "json"],
    ["binary", "string"],
    ["int32", "string"],
    ["list<int32>", "list<int64>"],
  ])
    expect(canCast(typeOf(from!), typeOf(to!))).toBe(false);
});

test("whole numbers and decimals become decimals of more digits, or are out of range", () => {
  const values = [0n, -1n, 2n ** 63n - 1n, -(2n ** 63n)];
  expect(cast(intColumn("int64", values), "decimal(38,9)")).toEqual(
    values.map((v) => plainOf(decimals([v * 10n ** 9n]), 0)),
  );
  expect(cast(intColumn("uint64", [2n ** 64n - 1n]), "decimal(20,0)")).toEqual([
    plainOf(decimals([2n ** 64n - 1n]), 0),
  ]);
  expect(cast(intColumn("uint32", [2n ** 32n - 1n]), "decimal(10,0)")).toEqual([
    plainOf(decimals([2n ** 32n - 1n]), 0),
  ]);
  expect(cast(intColumn("int8", [99n, -100n]), "decimal(3,1)")).toEqual([
    plainOf(decimals([990n]), 0),
    FAULT.range,
  ]);
  const cents = { ...decimals([-12_345n, 99_999n]), type: typeOf("decimal(5,2)") };
  expect(cast(cents, "decimal(6,3)")).toEqual([-123_450n, 999_990n].map((v) => plainOf(decimals([v]), 0)));
  expect(cast(cents, "decimal(5,3)")).toEqual([FAULT.range, FAULT.range]);
});

function decimals(values: readonly bigint[]): TableColumn {
  const data = new BigInt64Array(2 * values.length);
  for (const [i, v] of values.entries()) {
    data[2 * i] = BigInt.asIntN(64, v);
    data[2 * i + 1] = v >> 64n;
  }
  return column(typeOf("decimal(38,0)"), new Uint8Array(data.buffer), values.length);
}

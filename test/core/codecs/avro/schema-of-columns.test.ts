/**
 * Goal: every column that a decoder makes has an Avro schema by which each of its cells is written and read again, and
 * names that stay when the table grows. Method: a column of each type with Values at its ends, encoded by the schema that
 * was made and read by our decoder of payloads, whose peers are tested elsewhere; schemas by hand.
 */
import { describe, expect, test } from "bun:test";
import { isUtf8 } from "node:buffer";
import { compileAvro } from "../../../../src/core/codecs/avro/compile.ts";
import { encodeColumns } from "../../../../src/core/codecs/avro/encode-columns.ts";
import { avroSchemaOf, recordNameOf } from "../../../../src/core/codecs/avro/schema-of-columns.ts";
import { builderOf } from "../../../../src/core/types/column-builder.ts";
import type { ColumnField, ColumnType } from "../../../../src/core/types/table-batch.ts";
import { parseType } from "../../../../src/core/types/type-text.ts";
import type { Value } from "../../../../src/core/types/value.ts";
import { cellValue, pushValue } from "../../../../src/core/types/value-cells.ts";
import { valueJson } from "../../../../src/core/types/value-json.ts";

const NULL: Value = { kind: "null" };
const long = (value: bigint): Value => ({ kind: "long", value });
const int = (value: number): Value => ({ kind: "int", value });
const string = (value: string): Value => ({ kind: "string", value });
const bytes = (...value: number[]): Value => ({ kind: "bytes", value: Uint8Array.from(value) });
const instant = (unit: "s" | "ms" | "us" | "ns", zone: string | null, value: bigint): Value => ({
  ...{ kind: "timestamp", unit, zone, value },
});
const record = (fields: Record<string, Value>): Value => ({
  kind: "record",
  fields: Object.entries(fields).map(([name, value]) => ({ name, value })),
});

const I32: ColumnType = { id: "int", bits: 32, signed: true };
const TEXT: ColumnType = { id: "utf8" };
const named = (name: string, type: ColumnType, nullable = true): ColumnField => ({ name, type, nullable });
const POINT: ColumnType = { id: "struct", fields: [named("x", I32), named("y", TEXT, false)] };

const CASES: readonly (readonly [string, ColumnType, readonly Value[]])[] = [
  ["null", { id: "null" }, [NULL]],
  [
    "bool",
    { id: "bool" },
    [
      { kind: "bool", value: true },
      { kind: "bool", value: false },
    ],
  ],
  ["int8", { id: "int", bits: 8, signed: true }, [int(-128), int(127)]],
  ["uint16", { id: "int", bits: 16, signed: false }, [int(65_535)]],
  ["int32", I32, [int(-(2 ** 31)), int(2 ** 31 - 1)]],
  ["uint32", { id: "int", bits: 32, signed: false }, [long(2n ** 32n - 1n)]],
  ["int64", { id: "int", bits: 64, signed: true }, [long(-(2n ** 63n)), long(2n ** 63n - 1n)]],
  ["float", { id: "float", bits: 32 }, [{ kind: "float", value: -1.5 }]],
  [
    "double",
    { id: "float", bits: 64 },
    [
      { kind: "double", value: Number.NaN },
      { kind: "double", value: 5e-324 },
    ],
  ],
  ["text", TEXT, [string(""), string("é\u0000😀")]],
  ["binary", { id: "binary" }, [bytes(), bytes(0, 255)]],
  [
    "decimal",
    { id: "decimal", precision: 38, scale: 9 },
    [{ kind: "decimal", unscaled: -(10n ** 38n) + 1n, scale: 9 }],
  ],
  ["uuid", { id: "fixed", bytes: 16, as: "uuid" }, [{ kind: "uuid", value: new Uint8Array(16).fill(7) }]],
  ["fixed", { id: "fixed", bytes: 3 }, [bytes(1, 2, 3)]],
  ["date", { id: "date32" }, [{ kind: "date", days: -719_162 }]],
  ["time us", { id: "time64", unit: "us" }, [{ kind: "time", unit: "us", value: 86_399_999_999n }]],
  ["time ns", { id: "time64", unit: "ns" }, [{ kind: "time", unit: "ns", value: 1n }]],
  ["ms", { id: "timestamp", unit: "ms", zone: "UTC" }, [instant("ms", "UTC", -1n)]],
  ["us", { id: "timestamp", unit: "us", zone: null }, [instant("us", null, 2n ** 60n)]],
  ["ns", { id: "timestamp", unit: "ns", zone: "UTC" }, [instant("ns", "UTC", 2n ** 62n)]],
  ["interval", { id: "interval" }, [{ kind: "interval", months: 1, days: 2, nanoseconds: 3_000_000n }]],
  [
    "list",
    { id: "list", item: named("item", POINT) },
    [{ kind: "list", items: [NULL, record({ x: NULL, y: string("a") })] }],
  ],
  ["struct", POINT, [record({ x: int(1), y: string("b") })]],
  [
    "map",
    { id: "map", key: named("key", TEXT, false), value: named("value", POINT) },
    [
      {
        kind: "map",
        entries: [
          [string("k"), record({ x: int(1), y: string("") })],
          [string(""), NULL],
        ],
      },
    ],
  ],
];

/** Rows [value, null, …] written and read again, as JSON. */
function again(type: ColumnType, values: readonly Value[]) {
  const builder = builderOf(type);
  for (const v of [...values, NULL]) {
    builder.reserve(1);
    pushValue(builder, v);
  }
  const fields = [named("f", type)];
  const table = { fields, columns: [builder.finish()], rows: values.length + 1 };
  const text = avroSchemaOf(fields, "acme.Row");
  const decoder = compileAvro({ writer: { text, references: [] } }, { isUtf8 });
  const columns = decoder.fields.map((f) => builderOf(f.type));
  const faults: unknown[] = [];
  const rows = decoder.decode(encodeColumns({ text, references: [] }, table), columns, (f) => faults.push(f));
  expect([rows, faults]).toEqual([table.rows, []]);
  const column = columns[0]!.finish();
  return {
    type: column.type,
    cells: Array.from({ length: rows }, (_, i) => valueJson(cellValue(column, i))),
    wanted: Array.from({ length: rows }, (_, i) => valueJson(cellValue(table.columns[0]!, i))),
  };
}

describe("each type is what it was", () => {
  for (const [name, type, values] of CASES)
    test(name, () => {
      const { cells, wanted } = again(type, values);
      expect(cells).toEqual(wanted);
    });

  test("integers that a long does not hold are decimals", () => {
    const { type, cells } = again({ id: "int", bits: 64, signed: false }, [long(2n ** 64n - 1n), long(0n)]);
    expect([type, cells]).toEqual([
      { id: "decimal", precision: 20, scale: 0 },
      ["18446744073709551615", "0", "null"],
    ]);
  });

  test("JSON is text, seconds are milliseconds, keys that are no text make a list", () => {
    expect(again({ id: "json" }, [record({ a: int(1) })]).cells[0]).toBe(JSON.stringify('{"a":1}'));
    expect(again({ id: "timestamp", unit: "s", zone: "UTC" }, [instant("s", "UTC", 5n)]).cells[0]).toBe(
      valueJson(instant("ms", "UTC", 5000n)),
    );
    const map = parseType("map<int,string>") as ColumnType;
    const value: Value = { kind: "map", entries: [[int(3), string("c")]] };
    expect(again(map, [value]).cells[0]).toBe('[{"key":3,"value":"c"}]');
  });
});

describe("names", () => {
  const two: ColumnField[] = [
    named("a", { id: "list", item: named("item", POINT) }),
    named("b", { id: "struct", fields: [named("a", POINT), named("c", { id: "fixed", bytes: 2 })] }),
  ];

  test("types within are named by their place", () => {
    const text = avroSchemaOf(two, "acme.Row");
    const at = (name: string, namespace: string) => `"name":"${name}","namespace":"${namespace}"`;
    for (const name of [
      at("Row", "acme"),
      at("a", "acme.Row"),
      at("b", "acme.Row"),
      at("a", "acme.Row.b"),
      at("c", "acme.Row.b"),
    ])
      expect(text).toContain(name);
    expect(avroSchemaOf([named("id", I32, false), ...two], "acme.Row")).toContain(
      text.slice(text.indexOf("[") + 1),
    );
  });

  test("what is added or lacks is null, so columns say so whatever they are", () => {
    expect(JSON.parse(avroSchemaOf([named("id", I32, false)], "Row"))).toEqual({
      type: "record",
      name: "Row",
      fields: [{ name: "id", type: ["null", "int"], default: null }],
    });
  });

  test("those that Avro has not are refused with their place", () => {
    const bad = [
      named("b", { id: "list", item: named("item", { id: "struct", fields: [named("é", I32)] }) }),
    ];
    expect(() => avroSchemaOf(bad, "Row")).toThrow("the column b[].é");
    expect(() => avroSchemaOf([named("d", { id: "decimal", precision: 2, scale: 3 })], "Row")).toThrow(
      "column d",
    );
  });

  test("of a topic", () => {
    expect(["orders.typed-1", "1st", "ok_"].map(recordNameOf)).toEqual(["orders_typed_1", "_1st", "ok_"]);
  });
});

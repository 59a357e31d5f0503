/**
 * Goal: Values and columns become the bytes that the specification has for them, and what would be rounded or cut is
 * refused. Method: bytes by hand; what either encoder writes is read again on schemas by chance in compile.test.ts, and by
 * Java and fastavro in peers.test.ts.
 */
import { describe, expect, test } from "bun:test";
import { encodeColumns } from "../../../../src/core/codecs/avro/encode-columns.ts";
import { avroEncoder } from "../../../../src/core/codecs/avro/encode-value.ts";
import { DecodeError } from "../../../../src/core/codecs/record-codec.ts";
import { builderOf } from "../../../../src/core/types/column-builder.ts";
import type { ColumnType } from "../../../../src/core/types/table-batch.ts";
import { parseType } from "../../../../src/core/types/type-text.ts";
import type { Value } from "../../../../src/core/types/value.ts";
import { pushValue } from "../../../../src/core/types/value-cells.ts";
import { field, text } from "./decode.ts";
import type { Schema } from "./random-avro.ts";

function encode(type: Schema, value: Value): string {
  try {
    return avroEncoder(text(type)).encode(value).toHex();
  } catch (e) {
    if (e instanceof DecodeError) return `${e.code} ${e.path}`.trim();
    throw e;
  }
}

/** A column of the type with the value in its only row. */
function encodeCell(type: Schema, column: string, value: Value): string {
  const columnType = parseType(column) as ColumnType;
  const builder = builderOf(columnType);
  pushValue(builder, value);
  const fields = [{ name: "f", type: columnType, nullable: true }];
  try {
    const p = encodeColumns(text(field(type)), { fields, columns: [builder.finish()], rows: 1 });
    return p.bytes.subarray(p.starts[0]!, p.ends[0]!).toHex();
  } catch (e) {
    if (e instanceof DecodeError) return e.code;
    throw e;
  }
}

const int = (value: number): Value => ({ kind: "int", value });
const string = (value: string): Value => ({ kind: "string", value });
const decimal = (unscaled: bigint, scale: number): Value => ({ kind: "decimal", unscaled, scale });
const NULL: Value = { kind: "null" };
const MONEY = { type: "bytes", logicalType: "decimal", precision: 4, scale: 2 };
const MILLIS = { type: "long", logicalType: "timestamp-millis" };
const at = (value: bigint, unit: "ms" | "us" | "ns", zone: string | null): Value => ({
  kind: "timestamp",
  unit,
  zone,
  value,
});

describe("Values", () => {
  const CASES: readonly (readonly [string, Schema, Value, string])[] = [
    ["int", "int", int(-64), "7f"],
    ["the least long", "long", { kind: "long", value: -(2n ** 63n) }, "ffffffffffffffffff01"],
    ["an int for a long", "long", int(64), "8001"],
    ["an int for a double", "double", int(1), "000000000000f03f"],
    ["string", "string", string("ü"), "04c3bc"],
    ["null in a union", ["int", "null"], NULL, "02"],
    [
      "a branch by its name",
      ["null", "int", "string"],
      { kind: "union", branch: "string", value: string("a") },
      "040261",
    ],
    ["a branch by what the value is", ["null", "int", "string"], string("a"), "040261"],
    ["a symbol as text", { type: "enum", name: "E", symbols: ["A", "B"] }, string("B"), "02"],
    ["a decimal of another scale", MONEY, decimal(5n, 0), "0401f4"],
    ["a decimal below 0", MONEY, decimal(-1n, 2), "02ff"],
    ["a decimal as text", MONEY, string("-1.28"), "02 80".replace(" ", "")],
    [
      "a decimal in a fixed",
      { type: "fixed", name: "F", size: 3, logicalType: "decimal", precision: 4, scale: 0 },
      decimal(-2n, 0),
      "fffffe",
    ],
    ["microseconds that are whole milliseconds", MILLIS, at(-2000n, "us", "UTC"), "03"],
    ["an empty list", { type: "array", items: "int" }, { kind: "list", items: [] }, "00"],
    ["a list", { type: "array", items: "int" }, { kind: "list", items: [int(1), int(2)] }, "04020400"],
    [
      "a map",
      { type: "map", values: "int" },
      { kind: "map", entries: [[string("k"), int(1)]] },
      "02026b0200",
    ],
    [
      "a field that is missing is its default",
      field("int", { default: 3 }),
      { kind: "record", fields: [] },
      "06",
    ],
    [
      "uuid as text",
      { type: "string", logicalType: "uuid" },
      { kind: "uuid", value: new Uint8Array(16) },
      `48${Buffer.from("00000000-0000-0000-0000-000000000000").toString("hex")}`,
    ],
  ];
  for (const [what, type, value, hex] of CASES) test(what, () => expect(encode(type, value)).toBe(hex));

  const REFUSED: readonly (readonly [string, Schema, Value, string])[] = [
    ["an int of 33 bits", "int", { kind: "long", value: 2n ** 31n }, "decode.range"],
    ["a long that a double would round", "double", { kind: "long", value: 2n ** 53n + 1n }, "decode.range"],
    ["a double that a float would round", "float", { kind: "double", value: 0.1 }, "decode.range"],
    ["null", "string", NULL, "decode.null"],
    ["text for a number", "int", string("1"), "decode.type"],
    ["a symbol that is none", { type: "enum", name: "E", symbols: ["A"] }, string("B"), "decode.type"],
    ["a branch that is none", ["null", "int"], { kind: "union", branch: "x", value: NULL }, "decode.type"],
    ["a decimal that would be rounded", MONEY, decimal(1n, 3), "decode.range"],
    ["a decimal of more digits", MONEY, decimal(10_000n, 2), "decode.range"],
    ["microseconds that are no milliseconds", MILLIS, at(1n, "us", "UTC"), "decode.range"],
    ["a time of no zone", MILLIS, at(1n, "ms", null), "decode.type"],
    [
      "a fixed of another size",
      { type: "fixed", name: "F", size: 3 },
      { kind: "bytes", value: new Uint8Array(2) },
      "decode.range",
    ],
    ["half a surrogate pair", "string", string("\ud800"), "decode.encoding"],
    [
      "a field that the record has not",
      field("int"),
      {
        kind: "record",
        fields: [
          { name: "f", value: int(1) },
          { name: "g", value: int(1) },
        ],
      },
      "decode.unknown_field",
    ],
    [
      "with its place",
      field({ type: "array", items: "int" }),
      { kind: "record", fields: [{ name: "f", value: { kind: "list", items: [int(1), NULL] } }] },
      "decode.null f[1]",
    ],
    [
      "a duration below a millisecond",
      { type: "fixed", name: "D", size: 12, logicalType: "duration" },
      { kind: "interval", months: 0, days: 0, nanoseconds: 1n },
      "decode.range",
    ],
  ];
  for (const [what, type, value, code] of REFUSED)
    test(`${what} is refused`, () => expect(encode(type, value)).toBe(code));
});

describe("columns", () => {
  const CASES: readonly (readonly [string, Schema, string, Value, string])[] = [
    ["text", "string", "string", string("ab"), "046162"],
    ["a symbol", { type: "enum", name: "E", symbols: ["A", "B"] }, "string", string("B"), "02"],
    ["null", ["null", "int"], "int", NULL, "00"],
    ["a union of one", ["int"], "int", int(1), "0002"],
    ["a smaller integer", "long", "smallint", int(-1), "01"],
    ["an instant of another unit", MILLIS, "timestamptz", at(2000n, "us", "UTC"), "04"],
    ["a decimal of another scale", MONEY, "decimal(9,3)", decimal(10n, 3), "0201"],
    [
      "a member of a union",
      ["null", "int", "string"],
      "struct<int int, string string>",
      { kind: "union", branch: "string", value: string("a") },
      "040261",
    ],
    ["no member of a union", ["null", "int", "string"], "struct<int int, string string>", NULL, "00"],
    ["null for what is required", "int", "int", NULL, "decode.null"],
    ["an instant that would be rounded", MILLIS, "timestamptz", at(1n, "us", "UTC"), "decode.range"],
    [
      "a list for a map",
      { type: "map", values: "int" },
      "list<int>",
      { kind: "list", items: [] },
      "decode.schema",
    ],
    [
      "a member that the union has not",
      ["null", "int", "string"],
      "struct<int int, x string>",
      NULL,
      "decode.schema",
    ],
  ];
  for (const [what, type, column, value, hex] of CASES)
    test(what, () => expect(encodeCell(type, column, value)).toBe(hex));

  test("a column that the schema has not, and a field without a column, are refused", () => {
    const [builder] = [builderOf({ id: "utf8" })];
    const batch = (name: string) => ({
      fields: [{ name, type: { id: "utf8" } as const, nullable: true }],
      columns: [builder.finish()],
      rows: 0,
    });
    expect(() => encodeColumns(text(field("string")), batch("g"))).toThrow("no column f");
    expect(() => encodeColumns(text(field(["null", "string"])), batch("g"))).toThrow("no field g");
  });
});

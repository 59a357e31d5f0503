/**
 * Goal: Values and columns become payloads that any reader of the format takes, and what does not fit is refused by name.
 * Method: bytes derived by hand from the format's encoding page; the fuzzer's target holds the way there and back.
 */
import { describe, expect, test } from "bun:test";
import { protobufCodec } from "../../../../src/core/codecs/protobuf/compile.ts";
import { registryOf } from "../../../../src/core/codecs/protobuf/descriptors.ts";
import { encodeProtobufColumns } from "../../../../src/core/codecs/protobuf/encode-columns.ts";
import { DecodeError } from "../../../../src/core/codecs/record-codec.ts";
import { builderOf } from "../../../../src/core/types/column-builder.ts";
import type { ColumnField } from "../../../../src/core/types/table-batch.ts";
import type { Value } from "../../../../src/core/types/value.ts";
import { pushValue } from "../../../../src/core/types/value-cells.ts";
import { decodeAll } from "./agree.ts";
import { schemaText } from "./schema-text.ts";

const codecOf = (schema: string) => protobufCodec(registryOf(schemaText(schema)), {});
const record = (fields: Readonly<Record<string, Value>>): Value => ({
  kind: "record",
  fields: Object.entries(fields).map(([name, value]) => ({ name, value })),
});
const long = (value: bigint): Value => ({ kind: "long", value });
const list = (...items: Value[]): Value => ({ kind: "list", items });

const SCHEMA = `syntax = "proto3"; import "google/protobuf/struct.proto"; import "google/protobuf/timestamp.proto";
  import "google/protobuf/duration.proto"; import "google/protobuf/wrappers.proto"; import "google/protobuf/empty.proto";
  enum E { Z = 0; ONE = 1; }
  message A { int32 i = 1; optional uint64 u = 2; sint64 s = 3; repeated fixed32 f = 4; repeated string t = 5; map<int32, E> m = 6;
    A a = 7; google.protobuf.Value v = 8; google.protobuf.Timestamp at = 9; google.protobuf.Duration d = 10;
    google.protobuf.BytesValue w = 11; double x = 12; bool b = 13; google.protobuf.Empty e = 14; E n = 15; }`;

describe("Values", () => {
  const codec = codecOf(SCHEMA);
  const hex = (fields: Readonly<Record<string, Value>>) => codec.encoder.encode(record(fields)).toHex();

  test.each([
    [
      "zeros that are implied are left out",
      {
        i: { kind: "int", value: 0 },
        x: { kind: "double", value: 0 },
        b: { kind: "bool", value: false },
        n: { kind: "enum", symbol: "Z" },
      },
      "",
    ],
    [
      "a zero with presence, and a negative one, are written",
      { u: long(0n), x: { kind: "double", value: -0 } },
      "1000610000000000000080",
    ],
    [
      "negative numbers take ten bytes, zigzag few",
      { i: { kind: "int", value: -1 }, s: long(-1n) },
      "08ffffffffffffffffff011801",
    ],
    [
      "lists of numbers are packed",
      { f: list(long(1n), long(2n)), t: list({ kind: "string", value: "é" }) },
      "220801000000020000002a02c3a9",
    ],
    [
      "maps are entries",
      {
        m: {
          kind: "map",
          entries: [
            [
              { kind: "int", value: 3 },
              { kind: "enum", symbol: "ONE" },
            ],
          ],
        },
      },
      "320408031001",
    ],
    ["messages", { a: record({ a: record({}) }) }, "3a023a00"],
    [
      "before 1970",
      { at: { kind: "timestamp", unit: "ns", zone: "UTC", value: -1n } },
      "4a1108ffffffffffffffffff0110ff93ebdc03",
    ],
    [
      "a negative duration",
      { d: { kind: "decimal", unscaled: -1_000_000_001n, scale: 9 } },
      "521608ffffffffffffffffff0110ffffffffffffffffff01",
    ],
    [
      "a wrapper of nothing",
      { w: { kind: "bytes", value: new Uint8Array(0) }, e: { kind: "bool", value: true } },
      "5a007200",
    ],
    ["null where the type has one", { v: { kind: "null" }, u: { kind: "null" } }, "42020800"],
    ["digits of an enum", { n: { kind: "enum", symbol: "-7" } }, "78f9ffffffffffffffff01"],
  ] as const)("%s", (_, fields, wanted) => {
    expect(hex(fields as unknown as Readonly<Record<string, Value>>)).toBe(wanted);
  });

  test.each([
    ["another kind", { i: { kind: "string", value: "1" } }, "decode.type at i"],
    ["too large", { i: long(1n << 31n) }, "decode.range at i"],
    ["negative and unsigned", { u: long(-1n) }, "decode.range at u"],
    ["no such field", { q: long(1n) }, "decode.unknown_field at "],
    ["no such field within", { a: record({ q: long(1n) }) }, "decode.unknown_field at a"],
    ["no symbol", { n: { kind: "enum", symbol: "TWO" } }, "decode.type at n"],
    ["no list", { f: long(1n) }, "decode.type at f"],
    ["no map", { m: long(1n) }, "decode.type at m"],
    ["no instant", { at: long(1n) }, "decode.type at at"],
    ["no duration", { d: long(1n) }, "decode.type at d"],
    ["no JSON", { v: long(1n) }, "decode.type at v"],
    ["no message", { a: long(1n) }, "decode.type at a"],
    ["no bool for Empty", { e: long(1n) }, "decode.type at e"],
  ] as const)("refused: %s", (_, fields, wanted) => {
    let seen = "";
    try {
      hex(fields as unknown as Readonly<Record<string, Value>>);
    } catch (e) {
      if (e instanceof DecodeError) seen = `${e.code} at ${e.path}`;
    }
    expect(seen).toBe(wanted);
  });

  test("a required field that is not there", () => {
    expect(() => codecOf("message A { required int32 a = 1; }").encoder.encode(record({}))).toThrow(
      "required",
    );
  });
});

describe("columns", () => {
  const codec = codecOf(SCHEMA);
  const batchOf = (fields: readonly ColumnField[], rows: readonly (readonly Value[])[]) => {
    const builders = fields.map((f) => builderOf(f.type));
    for (const row of rows) for (const [i, value] of row.entries()) pushValue(builders[i]!, value);
    return { fields, columns: builders.map((b) => b.finish()), rows: rows.length };
  };
  const json: ColumnField = { name: "v", type: { id: "json" }, nullable: true };
  const int: ColumnField = { name: "i", type: { id: "int", bits: 32, signed: true }, nullable: true };

  test("some of the schema's, in any order; JSON text is what it was", () => {
    const anything: Value = {
      kind: "map",
      entries: [[{ kind: "string", value: "k" }, list({ kind: "double", value: 1.5 }, { kind: "null" })]],
    };
    const batch = batchOf(
      [json, int],
      [
        [anything, { kind: "int", value: 7 }],
        [{ kind: "null" }, { kind: "null" }],
      ],
    );
    const { bytes, starts, ends } = encodeProtobufColumns(codec, batch);
    // i = 7; v = Value { struct { "k": Value { list [Value { 1.5 }, Value { null }] } } }, by the length of each.
    const wanted =
      "0807" +
      "421a" +
      "2a18" +
      "0a16" +
      "0a016b" +
      "1211" +
      "320f" +
      "0a09" +
      "11000000000000f83f" +
      "0a02" +
      "0800";
    expect(Array.from(starts, (s, i) => bytes.subarray(s, ends[i]).toHex())).toEqual([wanted, ""]);
    const again = decodeAll(codec.decoder, [bytes.slice(starts[0], ends[0])]);
    const column = again.columns[codec.decoder.fields.findIndex((f) => f.name === "v")]!;
    expect(new TextDecoder().decode(column.data)).toBe('{"k":[1.5,null]}');
  });

  test("a column that the schema does not have", () => {
    const batch = batchOf([{ ...int, name: "stranger" }], [[{ kind: "int", value: 1 }]]);
    expect(() => encodeProtobufColumns(codec, batch)).toThrow("no field for the column stranger");
  });

  test.each([
    ["{", "JSON"],
    ['{"q":1}', "A has no field q"],
    ["[]", "where the schema has A"],
    ['{"i":"x"}', "a whole number"],
    ['{"i":1.5}', "a whole number"],
    ['{"t":{}}', "a list"],
    ['{"t":[1]}', "a string"],
    ['{"m":7}', "a map"],
    ['{"m":[7]}', "an entry"],
    ['{"n":7}', "an enum"],
    ['{"at":"yesterday"}', "an instant"],
    ['{"at":1}', "an instant"],
    ['{"d":"1"}', "seconds"],
    ['{"d":1}', "seconds"],
    ['{"w":1}', "bytes in base64"],
    ['{"x":"one"}', "a number"],
    ['{"b":1}', "a bool"],
    ['{"e":1}', "true"],
  ])("JSON text that a message within itself never becomes: %s", (text, why) => {
    // Three levels are structs; the fourth is text.
    const fields = codec.decoder.fields.filter((f) => f.name === "a");
    const builders = fields.map((f) => builderOf(f.type));
    const deepest = record({ a: { kind: "string", value: "X" } });
    pushValue(builders[0]!, record({ a: deepest }));
    const [column] = builders.map((b) => b.finish());
    const inner = column!.children[6]!.children[6]!;
    const bytes = new TextEncoder().encode(text);
    const patched = { ...inner, data: bytes, offsets: Int32Array.of(0, bytes.length) };
    const middle = { ...column!.children[6]!, children: column!.children[6]!.children.with(6, patched) };
    const outer = { ...column!, children: column!.children.with(6, middle) };
    expect(() => encodeProtobufColumns(codec, { fields, columns: [outer], rows: 1 })).toThrow(why);
  });
});

/**
 * Goal: every table has a Protobuf schema by which each of its cells is written and read again, and a field's number stays
 * whatever the table becomes. Method: tables by chance, written by the schema that was made and read by our decoder on both of
 * its ways, whose peers are tested elsewhere; schemas by hand.
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { compileProtobuf } from "../../../../src/core/codecs/protobuf/compile.ts";
import { registryOf } from "../../../../src/core/codecs/protobuf/descriptors.ts";
import {
  NO_NUMBERS,
  numbersIn,
  numbersOfVersions,
} from "../../../../src/core/codecs/protobuf/field-numbers.ts";
import { messageOfColumns } from "../../../../src/core/codecs/protobuf/message-of-columns.ts";
import { encodeProtobufRows } from "../../../../src/core/codecs/protobuf/rows-of-columns.ts";
import { protobufSchemaOf } from "../../../../src/core/codecs/protobuf/schema-of-columns.ts";
import type { ColumnField, ColumnType, TableBatch } from "../../../../src/core/types/table-batch.ts";
import type { Value } from "../../../../src/core/types/value.ts";
import { cellValue } from "../../../../src/core/types/value-cells.ts";
import { UNITS_PER_SECOND, valueJson } from "../../../../src/core/types/value-json.ts";
import { EVERY, tableOf, tables, typed, types } from "../random-columns.ts";
import { agree, decodeAll } from "./agree.ts";
import { schemaText } from "./schema-text.ts";

const column = (name: string, type: string | ColumnType, nullable = true): ColumnField => ({
  name,
  type: typeof type === "string" ? typed(type) : type,
  nullable,
});

/** The rows as JSON, decoded from what was written by the schema of the columns. */
function again(table: TableBatch): string[] {
  const text = protobufSchemaOf(table.fields, "acme.Row", NO_NUMBERS);
  const numbers = numbersIn(schemaText(text), "acme.Row")!;
  const { bytes, starts, ends } = encodeProtobufRows(messageOfColumns(table.fields, "Row", numbers), table);
  const payloads = Array.from({ length: table.rows }, (_, i) => bytes.slice(starts[i], ends[i]));
  const decoder = compileProtobuf(schemaText(text));
  agree(decoder, payloads);
  const { columns, rows, faults } = decodeAll(decoder, payloads);
  expect([rows, faults]).toEqual([table.rows, []]);
  return Array.from({ length: rows }, (_, row) => columns.map((c) => valueJson(cellValue(c, row))).join(" "));
}

const isWrapped = ({ type, nullable }: ColumnField) =>
  nullable || type.id === "list" || type.id === "map" || type.id === "null";

function item(f: ColumnField, v: Value): string {
  if (!isWrapped(f)) return wanted(f.type, v);
  // A message without fields is true where it is there.
  return f.type.id === "null" ? "true" : `{"value":${wanted(f.type, v)}}`;
}

/** What the type map says of a cell that comes back. */
function wanted(type: ColumnType, v: Value): string {
  if (v.kind === "null") return NOTHING[isPairs(type) ? "list" : type.id] ?? "null";
  switch (type.id) {
    case "list":
      return `[${(v.kind === "list" ? v.items : []).map((i) => item(type.item, i)).join(",")}]`;
    case "map": {
      const entries = v.kind === "map" ? v.entries : [];
      if (isPairs(type)) {
        const pair = (x: Value) =>
          type.value.type.id === "null" ? "" : `,"value":${wanted(type.value.type, x)}`;
        return `[${entries.map(([k, x]) => `{"key":${valueJson(k)}${pair(x)}}`).join(",")}]`;
      }
      const parts = entries.map(([k, x]) => [valueJson(k), item(type.value, x)] as const);
      if (isText(type) || parts.length === 0) return `{${parts.map(([k, x]) => `${k}:${x}`).join(",")}}`;
      return `[${parts.map(([k, x]) => `{"key":${k},"value":${x}}`).join(",")}]`;
    }
    case "struct": {
      const given = v.kind === "record" ? v.fields : [];
      const fields = type.fields.flatMap((f, i) =>
        f.type.id === "null" ? [] : [`${JSON.stringify(f.name)}:${wanted(f.type, given[i]!.value)}`],
      );
      return fields.length === 0 ? "true" : `{${fields.join(",")}}`;
    }
    case "timestamp":
      if (type.zone === null || v.kind !== "timestamp") return valueJson(v);
      return valueJson({
        ...v,
        unit: "ns",
        value: v.value * (UNITS_PER_SECOND.ns / UNITS_PER_SECOND[v.unit]),
      });
    case "decimal":
    case "interval":
      return JSON.stringify(valueJson(v));
    default:
      return valueJson(v);
  }
}

/** There is no null of them. */
const NOTHING: Readonly<Record<string, string>> = { list: "[]", map: "{}" };
/** Of keys that maps of the format have not. */
const isPairs = (type: ColumnType) => type.id === "map" && type.key.type.id === "float";
const isText = (type: ColumnType) => type.id === "map" && type.key.type.id === "utf8";

test("every table comes back, cell for cell", () => {
  fc.assert(
    fc.property(tables(types(EVERY, ["string", "int64", "boolean", "double"])), (table) => {
      const { fields, columns, rows } = table;
      if (fields.every((f) => messageOfColumns([f], "Row").fields.length === 0)) return;
      const cells = Array.from({ length: rows }, (_, row) =>
        fields
          .flatMap((f, i) => (f.type.id === "null" ? [] : [wanted(f.type, cellValue(columns[i]!, row))]))
          .join(" "),
      );
      expect(again(table)).toEqual(cells);
    }),
    { numRuns: 300 },
  );
});

test("an instant of any 64 bits is written, also where no reader of ours has room for it", () => {
  const at = (unit: "s" | "us", value: bigint): Value => ({ kind: "timestamp", unit, zone: "UTC", value });
  const [min, max] = [-(2n ** 63n), 2n ** 63n - 1n];
  const fields = [column("s", "timestamptz[s]"), column("u", "timestamptz")];
  const table = tableOf(fields, [
    [at("s", min), at("us", min)],
    [at("s", max), at("us", max)],
    [at("s", -1n), at("us", -1n)],
  ]);
  const { bytes, starts, ends } = encodeProtobufRows(messageOfColumns(fields, "R"), table);
  // By hand: tag 08 and the seconds as a varint of 64 bits, tag 10 and the nanoseconds.
  expect(Array.from(starts, (s, i) => bytes.slice(s, ends[i]).toHex())).toEqual([
    `0a0b0880808080808080808001121008${varint(min / 1_000_000n - 1n)}10${varint(224_192_000n)}`,
    `0a0a08ffffffffffffffff7f120e08${varint(max / 1_000_000n)}10${varint(775_807_000n)}`,
    `0a0b08ffffffffffffffffff01121108ffffffffffffffffff0110${varint(999_999_000n)}`,
  ]);
});

function varint(value: bigint): string {
  let hex = "";
  let rest = BigInt.asUintN(64, value);
  for (; rest > 127n; rest >>= 7n) hex += Number((rest & 127n) | 128n).toString(16);
  return hex + Number(rest).toString(16).padStart(2, "0");
}

describe("the source", () => {
  test("is as people write it", () => {
    const fields = [
      column("id", "int64", false),
      column("at", "timestamptz"),
      column("tags", { id: "list", item: column("item", "string", false) }),
      column("notes", "list<string>"),
      column("price", "decimal(10,2)"),
      column("counts", {
        id: "map",
        key: column("key", "string", false),
        value: column("value", "int32", false),
      }),
      column("to", "struct<city string>"),
      column("nothing", { id: "null" }),
    ];
    expect(protobufSchemaOf(fields, "acme.orders.Order", NO_NUMBERS)).toBe(`syntax = "proto3";

package acme.orders;

import "google/protobuf/timestamp.proto";

message Order {
  message NotesElement {
    optional string value = 1;
  }
  message ToRecord {
    optional string city = 1;
  }
  optional int64 id = 1;
  optional google.protobuf.Timestamp at = 2;
  repeated string tags = 3;
  repeated NotesElement notes = 4;
  optional string price = 5;
  map<string, int32> counts = 6;
  optional ToRecord to = 7;
}
`);
  });

  test("names that JSON would have as one keep theirs", () => {
    const text = protobufSchemaOf([column("a_b", "int32"), column("aB", "int32")], "R", NO_NUMBERS);
    expect(text).toContain('a_b = 1 [json_name = "a_b"];');
    expect(registryOf(schemaText(text)).main.messages[0]!.fields.map((f) => f.jsonName)).toEqual([
      "a_b",
      "aB",
    ]);
  });

  test.each([
    [[column("order-id", "int32")], "the column order-id"],
    [[column("a", 'struct<"é" int32>')], "the column a.é"],
    [[column("items", "struct<x int32>"), column("ItemsRecord", "int32")], "the column items: its message"],
    [[column("m_x", "map<string,int32>"), column("MXEntry", "int32")], "the column m_x: its message"],
  ] as const)("what has no name in it is refused: %#", (fields, why) => {
    expect(() => protobufSchemaOf(fields, "R", NO_NUMBERS)).toThrow(why);
  });

  test("a package google is refused", () => {
    expect(() => protobufSchemaOf([column("a", "int32")], "google.R", NO_NUMBERS)).toThrow("google");
  });

  test("a column that the message has not is no row of it", () => {
    const message = messageOfColumns([column("a", "int32")], "R");
    expect(() => encodeProtobufRows(message, tableOf([column("b", "int32")], []))).toThrow(
      "R has no field b",
    );
    // One that the table has not yet is absent.
    const { ends } = encodeProtobufRows(
      message,
      tableOf([column("n", { id: "null" })], [[{ kind: "null" }]]),
    );
    expect([...ends]).toEqual([0]);
  });
});

describe("numbers", () => {
  const names = (text: string) =>
    Object.fromEntries(registryOf(schemaText(text)).main.messages[0]!.fields.map((f) => [f.name, f.number]));
  const known = (...texts: string[]) =>
    numbersOfVersions(
      texts.map((t) => schemaText(t)),
      "R",
    );
  const row = (fields: string) => `syntax = "proto3"; message R { ${fields} }`;

  test("stay, whatever order the columns come in and whatever is added between them", () => {
    const first = protobufSchemaOf([column("a", "int32"), column("b", "struct<x int32>")], "R", NO_NUMBERS);
    const fields = [column("z", "int32"), column("b", "struct<y int32, x int32>"), column("a", "int64")];
    const second = protobufSchemaOf(fields, "R", known(first));
    expect(names(second)).toEqual({ a: 1, b: 2, z: 3 });
    expect(second).toContain("optional int32 y = 2;");
    expect(second).toContain("optional int32 x = 1;");
  });

  test("a field that there is no column of now stays, with what is in it; one that cannot be said again is reserved", () => {
    const first =
      row(`optional int32 a = 1; repeated sint64 b = 7; map<string, BRecord> m = 3; optional M.Other o = 4;
      message BRecord { optional string s = 2; } optional google.protobuf.Timestamp t = 5; enum E { Z = 0; } optional E e = 6;`).replace(
        "message R",
        'import "google/protobuf/timestamp.proto"; message M { message Other {} } message R',
      );
    const second = protobufSchemaOf([column("a", "int32"), column("c", "int32")], "R", known(first));
    expect(second).toBe(`syntax = "proto3";

import "google/protobuf/timestamp.proto";

message R {
  reserved 4, 6;
  message BRecord {
    optional string s = 2;
  }
  optional int32 a = 1;
  map<string, BRecord> m = 3;
  optional google.protobuf.Timestamp t = 5;
  repeated sint64 b = 7;
  optional int32 c = 8;
}
`);
    // Whatever columns come next, and in whatever order, it is the same text.
    const more = [column("c", "int32"), column("a", "int32")];
    expect(protobufSchemaOf(more, "R", known(first, second))).toBe(second);
    expect(protobufSchemaOf([column("a", "int32")], "R", known(first, second))).toBe(second);
    const table = tableOf([column("c", "int32")], [[{ kind: "int", value: 5 }]]);
    const { bytes } = encodeProtobufRows(messageOfColumns(table.fields, "R", known(second)), table);
    expect(bytes.toHex()).toBe("4005");
  });

  test("of two lanes that met other columns, the second registers those of both", () => {
    const first = protobufSchemaOf([column("id", "int64"), column("s", "struct<x int32>")], "R", NO_NUMBERS);
    const second = protobufSchemaOf(
      [column("s", "struct<y string>"), column("q", "int32")],
      "R",
      known(first),
    );
    expect(names(second)).toEqual({ id: 1, s: 2, q: 3 });
    for (const f of ["int32 x = 1", "string y = 2"]) expect(second).toContain(f);
  });

  test("are those of the schema that somebody registered before, its reserved ones and the format's left out", () => {
    const theirs = row("reserved 4, 6 to 18998; optional string name = 3; optional int32 q = 5;");
    const text = protobufSchemaOf(
      ["q", "n", "m", "name"].map((n) => column(n, n === "q" ? "int64" : "string")),
      "R",
      known(theirs),
    );
    expect(names(text)).toEqual({ name: 3, q: 5, n: 18_999, m: 20_000 });
    expect(text).toContain("reserved 4, 6 to 18998;");
  });

  test.each<[string, ColumnField]>([
    ["optional string f = 1;", column("f", "list<string>")],
    ["repeated string f = 1;", column("f", "list<string>")],
    ["optional float f = 1;", column("f", "double")],
    ["optional sint64 f = 1;", column("f", "int64")],
    ["optional int64 f = 1;", column("f", "string")],
    ["map<string, int64> f = 1;", column("f", "map<int64,int64>")],
    ["enum E { Z = 0; } optional E f = 1;", column("f", "string")],
    ["message M { optional int32 x = 1; } optional M f = 1;", column("f", "timestamptz")],
  ])("a field that would be another to readers of before is refused: %s", (before, f) => {
    expect(() => protobufSchemaOf([f], "R", known(row(before)))).toThrow(
      "an earlier version of the schema has",
    );
  });

  test.each<[string, ColumnField]>([
    ["optional int32 f = 1;", column("f", "int64")],
    ["optional string f = 1;", column("f", "decimal(9,2)")],
    ["message M { optional int32 x = 1; } optional M f = 1;", column("f", "struct<x int64>")],
  ])("one that is the same or wider goes on: %s", (before, f) => {
    expect(names(protobufSchemaOf([f], "R", known(row(before))))).toEqual({ f: 1 });
  });

  test("of versions that contradict each other are the earlier one's", () => {
    const versions = [row("optional int32 a = 1;"), row("optional int32 a = 1; optional int32 x = 2;")];
    const late = row("optional int32 a = 1; optional int32 y = 2;");
    const renamed = row("optional int32 b = 1;");
    const numbers = known(...versions, late, renamed, "no schema", "message Other {}");
    expect([...numbers.numbers]).toEqual([
      ["a", 1],
      ["x", 2],
    ]);
    expect(numbersIn({ ...schemaText("{}"), format: "json" }, "R")).toBeNull();
  });

  test("contradictions within count, too", () => {
    const inner = (f: string) => row(`message B { ${f} } optional B b = 1;`);
    const numbers = known(inner("optional int32 x = 1;"), inner("optional int32 y = 1;"));
    expect([...numbers.within.get("b")!.numbers.keys()]).toEqual(["x"]);
  });

  test("end somewhere", () => {
    const all = row("reserved 2 to max; optional int32 a = 1;");
    expect(() => protobufSchemaOf([column("b", "int32")], "R", known(all))).toThrow("every number is taken");
  });
});

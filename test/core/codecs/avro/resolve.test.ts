/**
 * Goal: schema resolution as the specification (1.12) has it, and schemas that are none refused with their place. Method:
 * pairs of schemas and payloads by hand; Java's own resolution of the same pairs is compared in peers.test.ts.
 */
import { describe, expect, test } from "bun:test";
import { compileAvro } from "../../../../src/core/codecs/avro/compile.ts";
import { decode, field, refusal } from "./decode.ts";
import type { Schema } from "./random-avro.ts";

const record = (fields: readonly Schema[], more: Schema = {}) => ({
  type: "record",
  name: "R",
  fields,
  ...more,
});
const of = (name: string, type: Schema, more: Schema = {}) => ({ name, type, ...more });

describe("resolution", () => {
  const PROMOTED: readonly (readonly [string, string, string, string])[] = [
    ["int", "long", "01", "-1"],
    ["int", "float", "01", "-1"],
    ["int", "double", "02", "1"],
    ["long", "float", "ff ff ff ff ff ff ff ff ff 01", "-9223372036854776000"],
    // 2^60 + 2^36 + 1 is above the middle of two floats; by way of a double it would fall on it and go to the even one.
    ["long", "float", "82 80 80 80 80 84 80 80 20", "1152921642045800400"],
    ["long", "double", "ff ff ff ff ff ff ff ff ff 01", "-9223372036854776000"],
    ["float", "double", "00 00 c0 3f", "1.5"],
    ["string", "bytes", "02 61", '"YQ=="'],
    ["bytes", "string", "02 61", '"a"'],
  ];
  for (const [from, to, hex, cell] of PROMOTED) {
    test(`${from} to ${to} of ${hex}`, () => {
      expect(decode(field(from), [hex], field(to)).cells).toEqual([cell]);
      expect(decode(field(["null", from]), [`02 ${hex}`], field([to, "null"])).cells).toEqual([cell]);
      expect(decode(field(from), [hex], field(["null", to])).cells).toEqual([cell]);
    });
  }

  test("bytes that become a string must be UTF-8", () => {
    expect(decode(field("bytes"), ["02 ff"], field("string")).faults[0]!.code).toBe("decode.encoding");
  });

  test("fields by name in any order, removed ones passed over, added ones by their default", () => {
    const writer = record([
      of("gone", { type: "map", values: { type: "array", items: "string" } }),
      of("a", "int"),
      of("b", "string"),
      of("also_gone", ["null", "double"]),
    ]);
    const reader = record([
      of("b", "string"),
      of("new", { type: "array", items: "long" }, { default: [1, 9007199254740991] }),
      of("a", "int"),
      of("none", ["null", "string"], { default: null }),
      of("any", ["null", "string"], { default: "x" }),
    ]);
    const map = "02 02 6b 02 02 76 00 00";
    const { cells, faults } = decode(
      writer,
      [`${map} 0e 02 7a 00`, `01 0c 02 6b 02 02 76 00 00 10 00 02 ${"00".repeat(8)}`],
      reader,
    );
    expect(faults).toEqual([]);
    expect(cells).toEqual(['"z" [1,9007199254740991] 7 null "x"', '"" [1,9007199254740991] 8 null "x"']);
  });

  const inner = { type: "record", name: "I", fields: [of("x", "int"), of("y", "string", { default: "d" })] };
  const DEFAULTS: readonly (readonly [Schema, Schema, string])[] = [
    ["null", null, "null"],
    ["boolean", true, "true"],
    ["float", 1.5, "1.5"],
    ["double", -2, "-2"],
    ["bytes", "\u00ff", '"/w=="'],
    [{ type: "fixed", name: "F", size: 2 }, "\u0001\u0002", '"AQI="'],
    [{ type: "enum", name: "E", symbols: ["A", "B"] }, "B", '"B"'],
    [{ type: "map", values: "int" }, { k: 1 }, '{"k":1}'],
    [{ type: "array", items: { type: "array", items: "int" } }, [[1], []], "[[1],[]]"],
    [inner, { x: 1 }, '{"x":1,"y":"d"}'],
    [["null", "int", "string"], "a", '{"int":null,"string":"a"}'],
  ];
  for (const [type, value, cell] of DEFAULTS)
    test(`the default ${JSON.stringify(value)} of ${JSON.stringify(type)}`, () => {
      expect(decode(record([]), ["", ""], field(type, { default: value })).cells).toEqual([cell, cell]);
    });

  const NO_DEFAULTS: readonly (readonly [Schema, Schema, string])[] = [
    ["null", 1, "1 is no null"],
    ["boolean", 1, "1 is no boolean"],
    ["int", 2 ** 31, "2147483648 is no int"],
    ["long", 0.5, "0.5 is no long"],
    ["float", "1", '"1" is no float'],
    ["double", null, "null is no double"],
    ["string", 1, "1 is no string"],
    ["bytes", "\u0100", "is no text of bytes"],
    [{ type: "fixed", name: "F", size: 2 }, "a", "is no text of 2 bytes"],
    [{ type: "enum", name: "E", symbols: ["A"] }, "B", '"B" is no symbol'],
    [{ type: "array", items: "int" }, {}, "{} is no array"],
    [{ type: "array", items: "int" }, ["a"], '"a" is no int'],
    [{ type: "map", values: "int" }, [], "[] is no map"],
    [{ type: "map", values: "int" }, { k: "a" }, '"a" is no int'],
    [inner, [], "[] is no record"],
    [inner, {}, "it has no x"],
    [inner, { x: "x".repeat(100) }, "…"],
    [["null", "int"], "a", "any of its 2 branches"],
  ];
  for (const [type, value, reason] of NO_DEFAULTS)
    test(`${JSON.stringify(value)} is no default of ${JSON.stringify(type)}`, () => {
      expect(refusal(record([]), field(type, { default: value }))).toContain(reason);
    });

  test("a default of 64 bits is exact", () => {
    const text = (fields: string) => ({
      text: `{"type":"record","name":"R","fields":[${fields}]}`,
      references: [],
    });
    const reader = text('{"name":"f","type":"long","default":9223372036854775807}');
    const decoder = compileAvro({ writer: text(""), reader }, { isUtf8: () => true });
    expect(decoder.value(new Uint8Array(0), 0, 0)).toEqual({
      kind: "record",
      fields: [{ name: "f", value: { kind: "long", value: 9223372036854775807n } }],
    });
  });

  test("aliases of fields and of types", () => {
    const inner = (name: string, more: Schema = {}) => ({
      type: "record",
      name,
      fields: [of("x", "int")],
      ...more,
    });
    const writer = record([of("old", inner("Old"))]);
    const reader = record([of("new", ["null", inner("New", { aliases: ["Old"] })], { aliases: ["old"] })]);
    expect(decode(writer, ["02"], reader).cells).toEqual(['{"x":1}']);
  });

  test("a symbol that the reader does not know is its default, or refused", () => {
    const symbols = (list: string[], more: Schema = {}) =>
      field({ type: "enum", name: "E", symbols: list, ...more });
    expect(decode(symbols(["A", "B"]), ["00", "02"], symbols(["A", "C"], { default: "C" })).cells).toEqual([
      '"A"',
      '"C"',
    ]);
    const { cells, faults } = decode(symbols(["A", "B"]), ["00", "02"], symbols(["A"]));
    expect(cells).toEqual(['"A"']);
    expect(faults.map((f) => [f.row, f.code as string, f.path])).toEqual([[1, "decode.type", "f"]]);
  });

  test("a branch that the reader has no place for refuses only its values", () => {
    const { cells, faults } = decode(
      field(["null", "string", "int"]),
      ["04 02", "02 02 61", "00"],
      field(["null", "long"]),
    );
    expect(cells).toEqual(["1", "null"]);
    expect(faults).toEqual([
      {
        row: 1,
        code: "decode.type",
        path: "f",
        reason: "the writer's string does not go into the reader's optional long",
      },
    ]);
  });

  test("what was begun in a branch that does not fit is not used elsewhere", () => {
    const b = { type: "record", name: "B", fields: [of("back", ["null", "A"]), of("x", "int")] };
    const a = (bad: string) => ({ type: "record", name: "A", fields: [of("b", b), of("bad", bad)] });
    const schema = (bad: string) => record([of("f1", ["null", a(bad)]), of("f2", "B")]);
    const { cells, faults } = decode(schema("string"), ["00 00 02", "00 02 00 04 00 06"], schema("int"));
    expect(cells).toHaveLength(1);
    expect(faults.map((f) => [f.row, f.code as string, f.path])).toEqual([[1, "decode.type", "f2.back"]]);
  });

  test("the reader's branch of the same type comes before one by promotion", () => {
    expect(decode(field("int"), ["02"], field(["long", "int"])).cells).toEqual(['{"long":null,"int":1}']);
    expect(decode(field("int"), ["02"], field(["double", "long"])).cells).toEqual([
      '{"double":1,"long":null}',
    ]);
  });

  const NEVER: readonly (readonly [string, Schema, Schema])[] = [
    ["string to int", field("string"), field("int")],
    ["long to int", field("long"), field("int")],
    ["an array to its items", field({ type: "array", items: "int" }), field("int")],
    [
      "another enum",
      field({ type: "enum", name: "A", symbols: ["X"] }),
      field({ type: "enum", name: "B", symbols: ["X"] }),
    ],
    [
      "a fixed of another size",
      field({ type: "fixed", name: "F", size: 2 }),
      field({ type: "fixed", name: "F", size: 3 }),
    ],
    ["a new field without default", record([]), field("int")],
    ["a default that is none", record([]), field("int", { default: "x" })],
    [
      "another scale (confluentinc/schema-registry#833)",
      field({ type: "bytes", logicalType: "decimal", precision: 4, scale: 2 }),
      field({ type: "bytes", logicalType: "decimal", precision: 4, scale: 1 }),
    ],
    [
      "milliseconds as microseconds",
      field({ type: "long", logicalType: "timestamp-millis" }),
      field({ type: "long", logicalType: "timestamp-micros" }),
    ],
  ];
  for (const [what, writer, reader] of NEVER)
    test(`${what} is refused with its place`, () =>
      expect(refusal(writer, reader)).toMatch(/^decode\.schema f: /));

  test("a default decimal (confluentinc/schema-registry#1381)", () => {
    const decimal = { type: "bytes", logicalType: "decimal", precision: 4, scale: 2 };
    expect(decode(record([]), [""], field(decimal, { default: "\u0004\u00d2" })).cells).toEqual(["12.34"]);
  });
});

describe("schemas", () => {
  test("names take the namespace around them; one that is defined may be named with or without it", () => {
    const schema = {
      type: "record",
      name: "R",
      namespace: "a.b",
      fields: [
        of("x", { type: "enum", name: "E", symbols: ["S"] }),
        of("y", "E"),
        of("z", "a.b.E"),
        of("w", {
          type: "record",
          name: "c.In",
          fields: [of("v", { type: "fixed", name: "F", size: 1 }), of("u", "F")],
        }),
        of("t", "c.F"),
      ],
    };
    expect(decode(schema, ["00 00 00 07 08 09"]).cells).toEqual([
      '"S" "S" "S" {"v":"Bw==","u":"CA=="} "CQ=="',
    ]);
  });

  test("types of other texts by reference, also of references that share one", () => {
    const base = { name: "x.Base", text: '{"type":"fixed","name":"x.Base","size":1}', references: [] };
    const side = (name: string) => ({
      name,
      text: `{"type":"record","name":"${name}","fields":[{"name":"b","type":"x.Base"}]}`,
      references: [base],
    });
    const text =
      '{"type":"record","name":"R","fields":[{"name":"l","type":"x.L"},{"name":"r","type":"x.R"}]}';
    const decoder = compileAvro(
      { writer: { text, references: [side("x.L"), side("x.R")] } },
      { isUtf8: () => true },
    );
    expect(decoder.value(Uint8Array.of(1, 2), 0, 2)).toMatchObject({ kind: "record" });
  });

  test("a bare name is a schema, in quotes or not", () => {
    for (const text of ['"string"', "string", '{"type":"string"}'])
      expect(
        compileAvro({ writer: { text, references: [] } }, { isUtf8: () => true }).fields[0]!.type.id,
      ).toBe("utf8");
  });

  const WRONG: readonly (readonly [string, Schema, string])[] = [
    ["an unknown type", field("strin"), 'f: there is no type "strin"'],
    ["no type", { name: "x" }, "without `type`"],
    ["a number", 7, "7 is no type"],
    ["a record without fields", { type: "record", name: "R" }, "no list of fields"],
    ["a field twice", record([of("a", "int"), of("a", "int")]), "the field a twice"],
    ["a field without a name", record([{ type: "int" }]), "field 0"],
    ["a name that is none", record([], { name: "1a" }), "is no name"],
    ["a type defined twice", record([of("a", { type: "fixed", name: "R", size: 1 })]), "defined twice"],
    ["a union within a union", field(["int", ["string"]]), "a union within a union"],
    ["a branch twice", field(["int", "int"]), "the union has int twice"],
    ["a symbol twice", field({ type: "enum", name: "E", symbols: ["A", "A"] }), "a symbol twice"],
    [
      "a default that is no symbol",
      field({ type: "enum", name: "E", symbols: ["A"], default: "B" }),
      "none of its symbols",
    ],
    ["symbols that are no list", field({ type: "enum", name: "E", symbols: "A" }), "list of strings"],
    ["a fixed of size -1", field({ type: "fixed", name: "F", size: -1 }), "the size of F"],
  ];
  for (const [what, schema, reason] of WRONG)
    test(`${what} is refused`, () => expect(refusal(schema)).toContain(reason));

  test("no JSON, and nesting without end, are refused", () => {
    const raw = (text: string) => () =>
      compileAvro({ writer: { text, references: [] } }, { isUtf8: () => true });
    expect(raw("{")).toThrow("no JSON");
    expect(raw(`${'{"type":"array","items":'.repeat(100)}"int"${"}".repeat(100)}`)).toThrow("nests deeper");
    expect(raw(`${"[".repeat(200_000)}`)).toThrow();
  });

  test("a schema whose columns double with every type is refused, not tried", () => {
    const fields = (inner: string) => [of("a", inner), of("b", inner)];
    let types: Schema[] = [{ type: "record", name: "T0", fields: [of("x", "int")] }];
    for (let i = 1; i < 40; i++)
      types = [...types, { type: "record", name: `T${i}`, fields: fields(`T${i - 1}`) }];
    const schema = record(types.map((t, i) => of(`f${i}`, t)));
    expect(refusal(schema)).toContain("more than 4000 columns");
  });

  test("of a recursive type with many ways into itself fewer levels are columns", () => {
    const ways = Array.from({ length: 20 }, (_, i) => of(`w${i}`, ["null", "R"]));
    expect(decode(record([of("x", "int"), ...ways]), [`02 ${"00".repeat(20)}`]).types[1]).toContain("json");
  });
});

/**
 * Goal: JSON Schemas as registries hold them become the columns that their documents fill, and what has no one type becomes
 * JSON text. Method: a schema a case, its columns in words.
 */
import { expect, test } from "bun:test";
import { isUtf8 } from "node:buffer";
import { compileJson } from "../../../../src/core/codecs/json/compile.ts";
import { fieldsOfJsonSchema } from "../../../../src/core/codecs/json/json-schema.ts";
import { DecodeError } from "../../../../src/core/codecs/record-codec.ts";
import type { SchemaReference } from "../../../../src/core/schema/resolver.ts";
import { typeText } from "../../../../src/core/types/type-text.ts";

function columns(schema: unknown, references: readonly SchemaReference[] = []): string {
  const text = typeof schema === "string" ? schema : JSON.stringify(schema);
  return fieldsOfJsonSchema({ text, references })
    .map((f) => `${f.name} ${typeText(f.type)}${f.nullable ? "" : "!"}`)
    .join("; ");
}

/** Of a single property. */
const typeOf = (property: unknown, rest: object = {}): string =>
  columns({ type: "object", properties: { p: property }, ...rest }).slice(2);

test("types and formats", () => {
  expect(
    columns({
      $schema: "http://json-schema.org/draft-07/schema#",
      type: "object",
      required: ["id", "at"],
      properties: {
        id: { type: "integer" },
        at: { type: "string", format: "date-time" },
        day: { type: "string", format: "date" },
        key: { type: "string", format: "uuid" },
        mail: { type: "string", format: "email" },
        big: { type: "integer", maximum: 2 ** 64 },
        price: { type: "number", multipleOf: 0.01 },
        ratio: { type: "number", multipleOf: 0.25 },
        state: { enum: ["new", "paid"] },
        done: { type: ["boolean", "null"] },
        tags: { type: "array", items: { type: "string" } },
        counts: { type: "object", additionalProperties: { type: "integer" } },
        to: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
      },
    }),
  ).toBe(
    "id int64!; at timestamptz!; day date; key uuid; mail string; big decimal(38,0); price decimal(38,2); ratio double; " +
      "state string; done boolean; tags list<string>; counts map<string,int64>; to struct<city string>",
  );
});

test("what has no one type is JSON text", () => {
  for (const open of [
    {},
    true,
    { type: ["string", "integer"] },
    { oneOf: [{ type: "string" }, { type: "integer" }] },
    { type: "array" },
    { type: "array", prefixItems: [{ type: "string" }], items: { type: "integer" } },
    { type: "object" },
    { type: "object", patternProperties: { "^x": {} }, additionalProperties: { type: "string" } },
    { type: "object", properties: { a: {}, A: {} } },
    { enum: ["x", 1] },
    { allOf: [{ type: "string" }, { properties: { a: {} } }] },
  ])
    expect(typeOf(open)).toBe("json");
});

test("null and one other is that other; a required one may be null then", () => {
  const required = { required: ["p"] };
  expect(typeOf({ type: "string" }, required)).toBe("string!");
  expect(typeOf({ oneOf: [{ type: "null" }, { type: "integer", "connect.type": "int32" }] }, required)).toBe(
    "int32",
  );
  expect(typeOf({ anyOf: [{ type: "number" }] }, required)).toBe("double!");
  expect(typeOf({ enum: ["a", null] }, required)).toBe("string");
});

test("objects that are all to hold are one", () => {
  const base = { type: "object", properties: { id: { type: "integer" } }, required: ["id"] };
  expect(columns({ allOf: [base, { properties: { name: { type: "string" } } }] })).toBe(
    "id int64!; name string",
  );
  expect(columns({ ...base, allOf: [{ properties: { id: { type: "integer" } } }] })).toBe("id int64!");
});

test("references within the document, into others, and back to themselves", () => {
  const address: SchemaReference = {
    name: "address.json",
    text: JSON.stringify({
      $defs: { zip: { type: "string" } },
      type: "object",
      properties: { zip: { $ref: "#/$defs/zip" } },
    }),
    references: [],
  };
  const schema = {
    $defs: {
      "a/b": { type: "integer" },
      tree: { type: "object", properties: { next: { $ref: "#/$defs/tree" }, n: { $ref: "#/$defs/a~1b" } } },
    },
    type: "object",
    properties: {
      tree: { $ref: "#/$defs/tree" },
      to: { $ref: "address.json" },
      zip: { $ref: "address.json#/$defs/zip" },
    },
  };
  expect(columns(schema, [address])).toBe(
    "tree struct<next json, n int64>; to struct<zip string>; zip string",
  );
});

test("what is no schema of records is refused with its place", () => {
  const refused = (schema: unknown) => {
    try {
      return columns(schema);
    } catch (e) {
      if (!(e instanceof DecodeError)) throw e;
      return `${e.code} ${e.path}: ${e.message}`;
    }
  };
  expect(refused("{")).toStartWith("decode.schema : it is no JSON");
  expect(refused({ type: "string" })).toBe(
    "decode.schema : a record's schema is of type object and has properties",
  );
  for (const [what, schema] of [
    ["a data contract", { kind: "DataContract", apiVersion: "v3.0.2", schema: [{ name: "orders" }] }],
    ["a data contract", { dataContractSpecification: "1.1.0", models: {} }],
    ["a data contract in YAML", "apiVersion: v3.0.2\nkind: DataContract\n"],
    ["an Avro schema", { type: "record", name: "R", fields: [] }],
    ["an Arrow schema", { schema: { fields: [{ name: "a", type: { name: "int" } }] } }],
    ["an Arrow schema", { fields: [] }],
  ] as const)
    expect(refused(schema)).toStartWith(`decode.schema : ${what}: JSON is read by a JSON Schema`);
  expect(refused({ properties: { a: { properties: { b: { type: "int" } } } } })).toBe(
    'decode.schema a.b: "int" is no type',
  );
  expect(refused({ properties: { a: { $ref: "#/$defs/none" } } })).toBe(
    'decode.schema a: "#/$defs/none" leads nowhere',
  );
  expect(refused({ properties: { a: { $ref: "x.json" } } })).toBe(
    'decode.schema a: the schema references "x.json", which came with no text',
  );
});

test("a schema compiles into a decoder; a property under the reserved prefix is refused", () => {
  const options = { unknown: "reject", reserved: "_twg_", maxBytes: 1000, isUtf8 } as const;
  const compiled = (properties: object) =>
    compileJson({ text: JSON.stringify({ type: "object", properties }), references: [] }, options);
  const bytes = new TextEncoder().encode('{"id":9007199254740993}');
  expect(compiled({ id: { type: "integer" } }).value(bytes, 0, bytes.length)).toEqual({
    kind: "record",
    fields: [{ name: "id", value: { kind: "long", value: 9007199254740993n } }],
  });
  expect(() => compiled({ _TWG_dq: { type: "string" } })).toThrow("names that begin with _twg_ are reserved");
});

test("a table's schema compiles, too, and its columns may have other names than their keys", () => {
  const options = { unknown: "reject", reserved: "_twg_", maxBytes: 1000, isUtf8 } as const;
  const compiled = (document: object) =>
    compileJson({ text: JSON.stringify(document), references: [] }, options);
  const decoder = compiled({ columns: [{ name: "order_id", type: "int64", source: "id" }] });
  const bytes = new TextEncoder().encode('{"id":7}');
  expect(decoder.fields.map((f) => f.name)).toEqual(["order_id"]);
  expect(decoder.value(bytes, 0, bytes.length)).toEqual({
    kind: "record",
    fields: [{ name: "order_id", value: { kind: "long", value: 7n } }],
  });
  expect(() => compiled({ columns: [{ name: "a", type: "intt" }] })).toThrow('columns[0].type "intt"');
  expect(() => compiled({ columns: [{ name: "_twg_a", type: "int" }] })).toThrow("are reserved");
});

test("a part that is called by a name is found by it, and not taken for the whole", () => {
  const of = (part: object, ref = "#address") =>
    typeOf(
      { $ref: ref },
      { $defs: { a: { ...part, type: "object", properties: { city: { type: "string" } } } } },
    );
  for (const part of [{ $anchor: "address" }, { $id: "#address" }, { id: "#address" }])
    expect(of(part)).toBe("struct<city string>");
  for (const ref of ["#other", "#/$defs/%zz", "#/constructor", "#/$defs/a/type/length"])
    expect(() => of({ $anchor: "address" }, ref)).toThrow("leads nowhere");
});

test("schemas within each other without end or reason cost neither stack nor time", () => {
  let deep: object = { type: "string" };
  for (let i = 0; i < 5_000; i++) deep = { allOf: [deep] };
  expect(() => typeOf(deep)).toThrow("schemas within each other deeper than 200");
  const text = JSON.stringify({ type: "string", description: "x".repeat(1 << 20) });
  const properties = Object.fromEntries(Array.from({ length: 2_000 }, (_, i) => [`p${i}`, { $ref: "long" }]));
  const references = [{ name: "long", text, references: [] }];
  expect(columns({ type: "object", properties }, references)).toStartWith("p0 string; p1 string; ");
});

/**
 * Goal: rows that are written as JSON are valid by the schema that their columns get, and columns read by it are those that were
 * written. Method: tables by chance, read again by our decoder by that schema; the vendor's reader validates rows against it
 * in test/e2e/kafka-tables.test.ts. What JSON holds in another form (bytes, maps of other keys) is told by hand.
 */
import { expect, test } from "bun:test";
import { isUtf8 } from "node:buffer";
import fc from "fast-check";
import { compileJson } from "../../../../src/core/codecs/json/compile.ts";
import { encodeJsonColumns } from "../../../../src/core/codecs/json/encode.ts";
import { fieldsOfJsonSchema } from "../../../../src/core/codecs/json/json-schema.ts";
import { commentedJsonSchema, jsonSchemaOf } from "../../../../src/core/codecs/json/schema-of-columns.ts";
import { builderOf } from "../../../../src/core/types/column-builder.ts";
import type { ColumnField } from "../../../../src/core/types/table-batch.ts";
import { typeText } from "../../../../src/core/types/type-text.ts";
import { cellValue } from "../../../../src/core/types/value-cells.ts";
import { valueJson } from "../../../../src/core/types/value-json.ts";
import { EVERY, tables, typed, types } from "../random-columns.ts";

/** Those that come back by themselves. */
const SAME = EVERY.filter(
  (t) =>
    !["binary", "fixed", "null", "interval", "json"].includes(t.id) || (t.id === "fixed" && t.as === "uuid"),
);

const read = (text: string) => ({ text, references: [] });

test("every table comes back, types and cells", () => {
  fc.assert(
    fc.property(tables(types(SAME, ["string"])), (table) => {
      const text = jsonSchemaOf(table.fields, "Row");
      const options = { isUtf8, maxBytes: 1 << 20, unknown: "reject", reserved: "_twg_" } as const;
      const decoder = compileJson(read(text), options);
      expect(decoder.fields.map((f) => typeText(f.type))).toEqual(table.fields.map((f) => typeText(f.type)));
      const columns = decoder.fields.map((f) => builderOf(f.type));
      const faults: unknown[] = [];
      const rows = decoder.decode(encodeJsonColumns(table), columns, (f) => faults.push(f));
      expect([rows, faults]).toEqual([table.rows, []]);
      const done = columns.map((c) => c.finish());
      for (const [i, c] of done.entries())
        for (let row = 0; row < rows; row++)
          expect(valueJson(cellValue(c, row))).toBe(valueJson(cellValue(table.columns[i]!, row)));
    }),
    { numRuns: 200 },
  );
});

test("the schema: closed objects, null wherever it may be, nothing required", () => {
  const fields: ColumnField[] = [
    { name: "id", type: typed("int64"), nullable: false },
    { name: "price", type: typed("decimal(10,2)"), nullable: true },
    { name: "x", type: typed("double"), nullable: true },
    { name: "blob", type: typed("binary"), nullable: true },
    { name: "any", type: { id: "json" }, nullable: true },
    { name: "m", type: typed("map<int64,string>"), nullable: true },
    { name: "none", type: { id: "null" }, nullable: true },
    {
      name: "l",
      type: { id: "list", item: { name: "i", type: typed("uuid"), nullable: false } },
      nullable: true,
    },
  ];
  expect(JSON.parse(jsonSchemaOf(fields, "acme.Row"))).toEqual({
    $schema: "http://json-schema.org/draft-07/schema#",
    title: "acme.Row",
    type: "object",
    properties: {
      id: { type: ["integer", "null"], "connect.type": "int64" },
      price: { type: ["number", "null"], "twg.type": "decimal(10,2)" },
      x: {
        type: ["number", "string", "null"],
        pattern: "^(NaN|-?Infinity)$",
        "connect.type": "float64",
        "twg.type": "double",
      },
      blob: { type: ["string", "null"], contentEncoding: "base64" },
      any: {},
      m: {},
      none: { type: "null" },
      l: { type: ["array", "null"], items: { type: "string", format: "uuid" } },
    },
    additionalProperties: false,
  });
});

test("properties of the schema before stay, at any depth, and nothing new is the same text", () => {
  const field = (name: string, type: string): ColumnField => ({ name, type: typed(type), nullable: true });
  const first = jsonSchemaOf(
    [field("a", "int32"), field("s", "struct<x int32>"), field("l", "list<struct<p string>>")],
    "R",
  );
  const second = jsonSchemaOf(
    [field("l", "list<struct<q string>>"), field("s", "struct<y string>"), field("a", "int64")],
    "R",
    first,
  );
  const properties = JSON.parse(second).properties;
  expect(Object.keys(properties)).toEqual(["a", "s", "l"]);
  expect(properties.a).toEqual({ type: ["integer", "null"], "connect.type": "int64" });
  expect(Object.keys(properties.s.properties)).toEqual(["x", "y"]);
  expect(Object.keys(properties.l.items.properties)).toEqual(["p", "q"]);
  const shown = JSON.stringify(JSON.parse(second), null, 2);
  expect(jsonSchemaOf([field("s", "struct<y string>")], "R", shown)).toBe(shown);
  const commented = commentedJsonSchema(shown, "c");
  expect(jsonSchemaOf([field("s", "struct<y string>")], "R", commented)).toBe(commented);
  expect(jsonSchemaOf([field("z", "string")], "R", commented)).not.toContain("$comment");
  // Names that objects of JavaScript have are names.
  const odd = jsonSchemaOf([field("__proto__", "int32"), field("constructor", "string")], "R");
  const more = JSON.parse(jsonSchemaOf([field("a", "int32")], "R", odd)).properties;
  expect(Object.keys(more)).toEqual(["__proto__", "constructor", "a"]);
  // A type that became another is what it is now; what is no schema says nothing.
  expect(JSON.parse(jsonSchemaOf([field("s", "string")], "R", first)).properties.s).toEqual({
    type: ["string", "null"],
  });
  for (const none of ["true", "{"]) expect(jsonSchemaOf([], "R", none)).toBe(jsonSchemaOf([], "R"));
});

test("intervals are objects, and a keyword of ours that says no type says nothing", () => {
  const [field] = fieldsOfJsonSchema(
    read(jsonSchemaOf([{ name: "i", type: { id: "interval" }, nullable: true }], "R")),
  );
  expect(typeText(field!.type)).toBe("struct<months int64, days int64, nanoseconds int64>");
  const odd = JSON.stringify({ properties: { a: { type: "string", "twg.type": "nonsense" } } });
  expect(fieldsOfJsonSchema(read(odd)).map((f) => typeText(f.type))).toEqual(["string"]);
});

/**
 * Goal: a name that is ours is refused in every format alike, whatever its case; fields that a schema does not have are
 * refused or left out, as is wanted. Method: one schema of each format.
 */
import { expect, test } from "bun:test";
import { type DecoderOptions, payloadDecoder } from "../../src/commands/payload-decoder.ts";
import { DecodeError } from "../../src/core/codecs/record-codec.ts";
import type { SchemaFormat } from "../../src/core/schema/resolver.ts";

const OPTIONS: DecoderOptions = {
  prefix: "_twg_",
  maxPayloadBytes: 1 << 20,
  maxDepth: 32,
  unknown: "reject",
};
const SCHEMAS: readonly (readonly [SchemaFormat, (name: string) => string])[] = [
  ["avro", (name) => JSON.stringify({ type: "record", name: "R", fields: [{ name, type: "int" }] })],
  ["json", (name) => JSON.stringify({ columns: [{ name, type: "int32" }] })],
  ["xml", (name) => JSON.stringify({ columns: [{ name, type: "int32" }] })],
  ["protobuf", (name) => `syntax = "proto3"; message R { int32 ${name} = 1; }`],
];

for (const [format, text] of SCHEMAS)
  test(format, () => {
    const compiled = (name: string) => {
      const schema = { format, text: text(name), references: [], id: "1", subject: null, version: null };
      try {
        return payloadDecoder(schema, { message: null }, null, OPTIONS).fields.map((f) => f.name);
      } catch (e) {
        if (e instanceof DecodeError) return `${e.code} ${e.path}`;
        throw e;
      }
    };
    expect(compiled("_twg_x")).toBe("decode.reserved _twg_x");
    expect(compiled("_TWG_x")).toBe("decode.reserved _TWG_x");
    expect(compiled("a_twg_")).toEqual(["a_twg_"]);
  });

for (const [format, payload] of [
  ["json", '{"a":1,"b":{"c":[2]}}'],
  ["xml", "<r><a>1</a><b><c>2</c></b></r>"],
] as const)
  test(`${format}: fields that the schema does not have`, () => {
    const text = JSON.stringify({ columns: [{ name: "a", type: "int32" }] });
    const schema = { format, text, references: [], id: "1", subject: null, version: null };
    const read = (unknown: "reject" | "ignore", more = {}) => {
      const decoder = payloadDecoder({ ...schema, ...more }, { message: null }, null, {
        ...OPTIONS,
        unknown,
      });
      const bytes = new TextEncoder().encode(payload);
      try {
        return decoder.value(bytes, 0, bytes.length) as unknown;
      } catch (e) {
        if (e instanceof DecodeError) return `${e.code} ${e.path}`;
        throw e;
      }
    };
    expect(read("reject")).toStartWith("decode.unknown_field");
    expect(read("ignore")).toMatchObject({ fields: [{ name: "a", value: { value: 1 } }] });
    expect(read("ignore")).toHaveProperty("fields.length", 1);
    // Columns that are learned grow by what is refused.
    if (format === "json")
      expect(read("ignore", { inferred: "open", version: 1 })).toStartWith("decode.unknown_field");
  });

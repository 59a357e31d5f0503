/**
 * Goal: what Avro's own material (share/test/data of apache/avro, Apache-2.0) says must be read is read, and what it says must be
 * refused is refused by both ways. Method: the object container files that are there (test/golden/avro.json; the weather ones are in
 * container.test.ts), the payloads of binary-rejections.json and the schemas of schema-tests.txt, each as the type of a field.
 * Not held: canonical forms and fingerprints of schema-tests.txt and the messages of messageV1, which are of an encoding that is not
 * read (single objects); the interoperability files, which no repository has: each implementation's build makes them (Java's are in
 * test/real/avro-peers.test.ts).
 */
import { expect, test } from "bun:test";
import { DecodeError } from "../../../../src/core/codecs/record-codec.ts";
import golden from "../../../golden/avro.json";
import { readAll } from "./container-file.ts";
import { compile, decode, field } from "./decode.ts";
import type { Schema } from "./random-avro.ts";

test("the files of schemas/", () => {
  expect(readAll(Uint8Array.fromBase64(golden.simple))).toEqual([
    '{"text":"hello"}',
    '{"text":"bonjour"}',
    '{"text":"guten tag"}',
  ]);
  expect(readAll(Uint8Array.fromBase64(golden.withUnion))).toEqual([
    '{"data1":{"string":"textValue","int":null},"data2":null}',
    '{"data1":{"string":null,"int":123},"data2":{"d1":{"string":null,"int":null,"boolean":false}}}',
    '{"data1":{"string":null,"int":3},"data2":{"d1":{"string":"text value","int":null,"boolean":null}}}',
  ]);
});

const E: Schema = { type: "enum", name: "E", symbols: ["A", "B"] };
/** Name there, schema, payload, and what it is refused with here. */
const REJECTED: readonly (readonly [string, Schema, string, string])[] = [
  ["long_varint_non_terminating", "long", "80808080808080808080", "decode.truncated"],
  ["int_varint_non_terminating", "int", "8080808080", "decode.truncated"],
  ["array_block_count_int64_min", { type: "array", items: "int" }, "ffffffffffffffffff0102", "decode.range"],
  ["bytes_length_negative", "bytes", "01", "decode.syntax"],
  ["string_length_negative", "string", "01", "decode.syntax"],
  ["union_branch_index_negative", ["null", "int"], "01", "decode.type"],
  ["union_branch_index_too_large", ["null", "int"], "0a", "decode.type"],
  ["enum_index_negative", E, "01", "decode.type"],
  ["enum_index_too_large", E, "0a", "decode.type"],
];

test.each(REJECTED)("%s is refused", (_, schema, hex, code) => {
  const { cells, faults } = decode(field(schema), [hex]);
  expect({ cells, codes: faults.map((f) => f.code) }).toEqual({ cells: [], codes: [code as never] });
  const bytes = Uint8Array.fromHex(hex);
  expect(() => compile(field(schema)).value(bytes, 0, bytes.length)).toThrow(DecodeError);
});

const record = (more: object = {}): Schema => ({ fields: [], type: "record", name: "foo", ...more });
/** By their numbers there. */
const SCHEMAS: readonly (readonly [string, Schema])[] = [
  ...["null", "boolean", "int", "long", "float", "double", "bytes", "string"].flatMap(
    (type, i): [string, Schema][] => [
      [`00${2 * i}`, type],
      [`00${2 * i + 1}`, { type }],
    ],
  ),
  ["016", []],
  ["017", ["int"]],
  ["018", ["int", { type: "boolean" }]],
  ["019", record()],
  ["020", record({ namespace: "x.y" })],
  ["021", record({ name: "a.b.foo", namespace: "x.y" })],
  ["022", record({ doc: "Useful info" })],
  ["023", record({ aliases: ["foo", "bar"] })],
  ["024", record({ doc: "foo", aliases: ["foo", "bar"] })],
  ["025", record({ fields: [{ type: { type: "boolean" }, name: "f1" }] })],
  // Whether "true" is a boolean is asked where a payload lacks the field.
  ["026", record({ fields: [{ type: "boolean", aliases: [], name: "f1", default: "true" }] })],
  ["027", { type: "enum", name: "foo", symbols: ["A1"] }],
  ["028", { namespace: "x.y.z", type: "enum", name: "foo", doc: "foo bar", symbols: ["A1", "A2"] }],
  ["029", { name: "foo", type: "fixed", size: 15 }],
  ["030", { namespace: "x.y.z", type: "fixed", name: "foo", doc: "foo bar", size: 32 }],
  ["031", { items: { type: "null" }, type: "array" }],
  ["032", { values: "string", type: "map" }],
  [
    "033",
    {
      name: "PigValue",
      type: "record",
      fields: [{ name: "value", type: ["null", "int", "long", "PigValue"] }],
    },
  ],
];

test.each(SCHEMAS)("schema %s is taken", (_, schema) => {
  expect(compile(field(schema)).fields.map((f) => f.name)).toEqual(["f"]);
});

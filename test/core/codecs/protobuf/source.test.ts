/**
 * Goal: `.proto` source becomes the descriptors that Google's compiler makes of it, and what it refuses is refused with its
 * place. Method: descriptor sets of protoc beside the sources (test/golden/protobuf), compared field by field; texts of
 * numbers that have a default, options of others and services are not part of a descriptor of ours.
 */
import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { fromBinary, toBinary, toJson } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { registryOf } from "../../../../src/core/codecs/protobuf/descriptors.ts";
import { link } from "../../../../src/core/codecs/protobuf/source/link.ts";
import { parseProto } from "../../../../src/core/codecs/protobuf/source/parse.ts";
import { DecodeError } from "../../../../src/core/codecs/record-codec.ts";
import { schemaText } from "./schema-text.ts";

const GOLDEN = new URL("../../../golden/protobuf/", import.meta.url);
const NAMES = readdirSync(GOLDEN).filter((n) => n.endsWith(".proto"));

type Json = null | string | number | boolean | Json[] | { [key: string]: Json };

/** What the format says twice or what we leave out. */
const LEFT_OUT = new Set(["service", "uninterpretedOption", "optionDependency", "visibility"]);

function comparable(value: Json): Json {
  if (Array.isArray(value)) return value.map(comparable);
  if (value === null || typeof value !== "object") return value;
  const out: Record<string, Json> = {};
  for (const [key, inner] of Object.entries(value)) {
    if (LEFT_OUT.has(key) || key.startsWith("[")) continue;
    const plain = comparable(inner);
    if (key === "options" && Object.keys(plain as object).length === 0) continue;
    out[key] = plain;
  }
  // protoc writes 9e9 as 9e+09.
  const type = out["type"];
  if ((type === "TYPE_FLOAT" || type === "TYPE_DOUBLE") && typeof out["defaultValue"] === "string")
    out["defaultValue"] = Number(out["defaultValue"]);
  return out;
}

describe("as protoc compiles it", () => {
  test.each(NAMES)("%s", (name) => {
    const set = fromBinary(
      FileDescriptorSetSchema,
      readFileSync(new URL(name.replace(/proto$/, "binpb"), GOLDEN)),
    );
    const wanted = set.file.find((f) => f.name === name)!;
    const files = new Map(set.file.map((f) => [f.name, f]));
    const ours = parseProto(name, readFileSync(new URL(name, GOLDEN), "utf8"));
    files.set(name, ours);
    link(ours, files);
    expect(comparable(toJson(FileDescriptorProtoSchema, ours) as Json)).toEqual(
      comparable(toJson(FileDescriptorProtoSchema, wanted) as Json),
    );
  });
});

describe("where schemas come from", () => {
  const set = readFileSync(new URL("editions.binpb", GOLDEN)).toString("base64");

  test("a descriptor set in base64, over several lines", () => {
    const { main, registry } = registryOf(schemaText(set.replace(/.{76}/g, "$&\n")));
    expect(main.name).toBe("editions");
    expect(registry.getMessage("twg.editions.Inner")?.fields.map((f) => f.name)).toEqual(["s", "back"]);
  });

  test("a single file descriptor in base64, as registries serialise it", () => {
    const [file] = fromBinary(FileDescriptorSetSchema, Buffer.from(set, "base64")).file;
    const text = Buffer.from(toBinary(FileDescriptorProtoSchema, file!)).toString("base64");
    expect(registryOf(schemaText(text)).main.messages.map((m) => m.name)).toEqual(["Outer", "Inner"]);
  });

  test("references, by the path of their import, of each other too", () => {
    const c = { name: "x/c.proto", text: 'syntax="proto3"; package x; enum C { C0 = 0; }', references: [] };
    const b = {
      name: "b.proto",
      text: 'syntax="proto3"; package x; import public "x/c.proto"; message B { C c = 1; }',
      references: [c],
    };
    const text =
      'syntax="proto3"; package x.y; import "b.proto"; message A { B b = 1; C c = 2; .x.B abs = 3; x.B rel = 4; }';
    const { main } = registryOf(schemaText(text, [b]));
    expect(main.messages[0]!.fields.map((f) => (f.message ?? f.enum)?.typeName)).toEqual([
      "x.B",
      "x.C",
      "x.B",
      "x.B",
    ]);
  });

  test("files that Java clients bring along, and options of a file that nobody has", () => {
    const text = `syntax="proto3"; import "confluent/meta.proto"; import "confluent/type/decimal.proto";
      import "google/type/interval.proto";
      message A { confluent.type.Decimal d = 1 [(confluent.field_meta).doc = "x"]; google.type.Interval i = 2; }`;
    const { main } = registryOf(schemaText(text));
    expect(main.messages[0]!.fields.map((f) => f.message?.typeName)).toEqual([
      "confluent.type.Decimal",
      "google.type.Interval",
    ]);
  });
});

describe("what is refused", () => {
  const proto3 = (body: string) => `syntax = "proto3";\n${body}`;
  test.each([
    ["no end", proto3("message A {"), "2:12: the end of the file where a name is expected"],
    ["a sign", proto3("message A { int32 a % 1; }"), '2:21: "%" begins nothing that this language has'],
    ["number 0", proto3("message A { int32 a = 0; }"), "2:23: the field number 0 is not from 1 to 536870911"],
    ["a kept number", proto3("message A { int32 a = 19500; }"), "2:23: the field number 19500"],
    ["a number twice", proto3("message A { int32 a = 1; int32 b = 1; }"), "the field number 1 stands twice"],
    [
      "a name twice",
      proto3("message A { int32 a = 1; int32 a = 2; }"),
      "the name a stands twice in the file.A",
    ],
    ["no type", proto3("message A { B b = 1; }"), "A.b is of type B, which neither the file"],
    [
      "not imported",
      proto3("message A { google.protobuf.Any b = 1; }"),
      "A.b is of type google.protobuf.Any",
    ],
    ["a key", proto3("message A { map<double, int32> b = 1; }"), "2:17: the key of a map is an integer"],
    ["a string", proto3('import "a'), "2:8: the string has no end on its line"],
    [
      "an edition",
      'edition = "2099"; message A { int32 a = 1; }',
      'the edition "2099" is none that is known',
    ],
    ["no label", "message A { int32 a = 1; }", "1:13: in proto2 a field begins with optional"],
    ["depth", proto3(`${"message A {".repeat(50)}${"}".repeat(50)}`), "declared more than 32 deep"],
    ["an option", proto3("message A { int32 a = 1 [packd = true]; }"), "FieldOptions has no option packd"],
    ["base64", "AAAA", "neither a FileDescriptorSet nor a FileDescriptorProto"],
    ["length", `;${" ".repeat(5 << 20)}`, "at most 4194304 are read"],
  ])("%s", (_, text, reason) => {
    let thrown: unknown;
    try {
      registryOf(schemaText(text));
    } catch (e) {
      thrown = e;
    }
    expect(thrown).toBeInstanceOf(DecodeError);
    expect((thrown as DecodeError).code).toBe("decode.schema");
    expect((thrown as DecodeError).message).toContain(reason);
  });

  test("files that import each other", () => {
    const a = { name: "a.proto", text: 'syntax="proto3"; import "b.proto";', references: [] };
    const b = { name: "b.proto", text: 'syntax="proto3"; import "a.proto";', references: [a] };
    expect(() =>
      registryOf(schemaText('import "a.proto"; message M { optional int32 x = 1; }', [b])),
    ).toThrow("a.proto imports itself by way of b.proto");
  });
});

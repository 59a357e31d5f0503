/** Goal: it is known where no record can bring columns of its own. Method: sections of each kind, for one topic and for two. */
import { expect, test } from "bun:test";
import { isOfOneFile } from "../../src/commands/one-file.ts";
import { type DecodeSection, decodeSpec } from "../../src/core/config/decode-options.ts";

const one = (section: object, ...topics: string[]) =>
  isOfOneFile(decodeSpec.parse(section) as DecodeSection, topics.length === 0 ? ["a"] : topics);
const FILE = { schema_file: "/s" };
const NAMED = { framing: "confluent", schema_dir: "/d" };

test("a file that nothing overrules has the columns of all records", () => {
  expect(one({ format: "json", ...FILE })).toBe(true);
  expect(one({ format: "avro", framing: "confluent", ...FILE })).toBe(true);
  // What payloads name that name nothing.
  expect(one({ format: "avro", schema_dir: "/d", framing: "none", ...FILE })).toBe(true);
  expect(one({ format: "avro", ...NAMED, reader_schema: "/r" })).toBe(true);
  expect(one({ format: "protobuf", ...FILE })).toBe(true);
});

test("what is learned, is named by records, or comes from elsewhere is not a file's", () => {
  expect(one({ format: "json" })).toBe(false);
  expect(one({ format: "avro", ...NAMED })).toBe(false);
  expect(one({ format: "avro", ...NAMED, ...FILE })).toBe(false);
  expect(one({ format: "avro", schema_dir: "/d", framing: "none", subject: "s" })).toBe(false);
  // Envelopes of Protobuf say which message of the file.
  expect(one({ format: "protobuf", framing: "confluent", ...FILE })).toBe(false);
});

test("keys count as values do; those without columns, or with one of text, are no other schema", () => {
  const value = { format: "json", ...FILE };
  expect(one({ ...value, key: { format: "text" } })).toBe(true);
  expect(one({ ...value, key: { format: "avro", schema_file: "/k" } })).toBe(true);
  expect(
    one({ ...value, schema_dir: "/d", framing: "none", key: { format: "avro", framing: "confluent" } }),
  ).toBe(false);
  const some = {
    ...value,
    message: "M",
    key: { format: "text" },
    topic: [{ name: "b", key: { format: "none" } }],
  };
  expect(one(some, "a", "b")).toBe(true);
});

test("of several topics it is one file, and one table of it, or nobody can say", () => {
  const all = { format: "avro", ...FILE };
  expect(one(all, "a", "b")).toBe(false);
  expect(one({ ...all, message: "M" }, "a", "b")).toBe(true);
  expect(one({ ...all, message: "M", topic: [{ name: "b", message: "N" }] }, "a", "b")).toBe(false);
  expect(one({ ...all, message: "M", topic: [{ name: "b", schema_file: "/t" }] }, "a", "b")).toBe(false);
  expect(one({ ...all, topic: [{ name: "b", schema_file: "/t" }] }, "b")).toBe(true);
  expect(isOfOneFile(decodeSpec.parse(all) as DecodeSection, [])).toBe(false);
});

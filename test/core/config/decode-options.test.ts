/** Goal: [decode] says how each topic's payloads are read, and what cannot work is told by path. Method: tables of options. */
import { describe, expect, test } from "bun:test";
import { decodeSpec, payloadPlan } from "../../../src/core/config/decode-options.ts";

const registry = { url: ["http://r:8081"] };

function problems(o: object): [string, string, string][] {
  const issues = decodeSpec.safeParse(o).error?.issues ?? [];
  return issues.map((i) => {
    const code = "params" in i ? String((i.params as { code: string }).code) : i.code;
    return [i.path.join("."), i.message, code];
  });
}

describe("plans", () => {
  test("a topic's own options go before the section's", () => {
    const decode = decodeSpec.parse({
      format: "avro",
      framing: "confluent",
      subject: "all-value",
      registry,
      key: { format: "json", framing: "none" },
      topic: [
        { name: "a", subject: "a-value", on_error: "fail" },
        { name: "b", format: "json", framing: "none" },
      ],
    });
    const rest = { schemaFile: null, readerSchema: null, message: null, prefix: "" };
    expect(payloadPlan(decode, "other", "value")).toEqual({
      format: "avro",
      framing: "confluent",
      subject: "all-value",
      onError: "reject",
      ...rest,
    });
    expect(payloadPlan(decode, "a", "value")).toMatchObject({
      framing: "confluent",
      subject: "a-value",
      onError: "fail",
    });
    // Another format: neither the subject nor the framing of the section are of it.
    expect(payloadPlan(decode, "b", "value")).toEqual({
      format: "json",
      framing: "none",
      subject: null,
      onError: "reject",
      ...rest,
    });
    expect(payloadPlan(decode, "a", "key")).toMatchObject({
      format: "json",
      framing: "none",
      onError: "fail",
    });
  });

  test("what a topic says of its keys goes before what is said of all", () => {
    const decode = decodeSpec.parse({
      format: "avro",
      framing: "confluent",
      schema_dir: "/s",
      key: { format: "avro", framing: "confluent", message: "Key", prefix: "k_" },
      topic: [
        { name: "same", on_error: "fail", key: { subject: "orders-key" } },
        { name: "text", key: { format: "text", prefix: "id_" } },
        { name: "none", key: { format: "none" } },
        { name: "json", key: { format: "json", schema_file: "k.json" } },
      ],
    });
    const key = (topic: string) => payloadPlan(decode, topic, "key");
    expect(key("same")).toMatchObject({
      ...{ format: "avro", framing: "confluent", subject: "orders-key", message: "Key" },
      ...{ prefix: "k_", onError: "fail" },
    });
    expect(key("text")).toMatchObject({ format: "text", framing: "none", message: null, prefix: "id_" });
    expect(key("none")).toBeNull();
    expect(key("json")).toMatchObject({ framing: "none", schemaFile: "k.json", message: null, prefix: "k_" });
    expect(key("other")).toMatchObject({ subject: null, message: "Key", prefix: "k_" });
    expect(payloadPlan(decode, "text", "value")).toMatchObject({ format: "avro", prefix: "" });
    const alone = decodeSpec.parse({
      ...{ format: "json", schema_file: "v.json" },
      topic: [{ name: "keyed", key: { format: "text" } }],
    });
    expect(payloadPlan(alone, "keyed", "key")).toMatchObject({ format: "text", prefix: "key_" });
    expect(payloadPlan(alone, "other", "key")).toBeNull();
  });

  test("keys stay bytes unless they are asked for; a message's leading dot is taken off; defaults", () => {
    const decode = decodeSpec.parse({ format: "protobuf", schema_file: "x.proto", message: ".a.B" });
    expect(payloadPlan(decode, "t", "key")).toBeNull();
    expect(payloadPlan(decode, "t", "value")).toMatchObject({
      framing: "none",
      schemaFile: "x.proto",
      readerSchema: null,
      message: "a.B",
    });
    expect([decode.max_depth, decode.max_payload_bytes, decode.subject_strategy]).toEqual([
      64,
      16 << 20,
      "topic",
    ]);
  });
});

describe("what is refused", () => {
  const missing = "config.missing";
  const conflict = "config.conflict";
  const cases: [string, object, [string, string, string][]][] = [
    ["nothing wrong: JSON needs no schema", { format: "json" }, []],
    [
      "nothing wrong: a file, an envelope and a file",
      { format: "avro", framing: "glue", schema_file: "x" },
      [],
    ],
    [
      "Avro from nowhere",
      { format: "avro" },
      [["schema_file", "avro cannot be read without its schema", missing]],
    ],
    [
      "a registry, and no word on envelopes",
      { format: "avro", registry },
      [["framing", "do payloads name their schema?", missing]],
    ],
    ["nothing wrong: the latest schema of the registry", { format: "avro", framing: "none", registry }, []],
    [
      "envelopes that nobody can look up",
      { format: "json", framing: "confluent" },
      [["framing", "nothing knows the schemas that envelopes name", conflict]],
    ],
    [
      "two sources",
      { format: "avro", framing: "confluent", registry, schema_dir: "d" },
      [["schema_dir", "schemas come from a registry already", conflict]],
    ],
    [
      "a topic twice",
      { format: "json", topic: [{ name: "a" }, { name: "b" }, { name: "a" }] },
      [["topic.2.name", "decode.topic[0] is of the same topic", conflict]],
    ],
    [
      "a topic and keys from nowhere",
      { format: "json", topic: [{ name: "a", format: "avro" }], key: { format: "protobuf" } },
      [
        ["key.schema_file", "protobuf cannot be read without its schema", missing],
        ["topic.0.schema_file", "avro cannot be read without its schema", missing],
      ],
    ],
    [
      "nothing wrong: a reader's schema",
      { format: "avro", framing: "confluent", registry, reader_schema: "r", subject_strategy: "record" },
      [],
    ],
    [
      "a reader's schema without the writers', and of a format that has none",
      { format: "avro", reader_schema: "r", topic: [{ name: "a", format: "json", reader_schema: "r" }] },
      [
        ["schema_file", "avro cannot be read without its schema", missing],
        ["topic.0.reader_schema", "json has no schemas of readers", conflict],
      ],
    ],
    [
      "keys of JSON, whose columns are not learned",
      { format: "json", key: { format: "json" } },
      [["key.schema_file", "json cannot be read without its schema", missing]],
    ],
    ["nothing wrong: keys that are text", { format: "json", key: { format: "text" } }, []],
    [
      "a schema of text",
      { format: "json", key: { format: "text", framing: "confluent", schema_file: "x", subject: "s" } },
      [
        ["key.schema_file", "text has no schema", conflict],
        ["key.subject", "text has no schema", conflict],
        ["key.framing", "envelopes name schemas, and text has none", conflict],
      ],
    ],
    [
      "nothing wrong: keys of one topic",
      { format: "json", topic: [{ name: "a", key: { format: "text" } }] },
      [],
    ],
    [
      "keys of topics of no format, from nowhere, and with a schema of none",
      {
        format: "json",
        topic: [
          { name: "a", key: { prefix: "k_" } },
          { name: "b", key: { format: "avro" } },
          { name: "c", key: { format: "text", subject: "s" } },
          { name: "d", key: { format: "json" } },
        ],
      },
      [
        ["topic.0.key.format", "what are the keys of this topic?", missing],
        ["topic.1.key.schema_file", "avro cannot be read without its schema", missing],
        ["topic.2.key.subject", "text has no schema", conflict],
        ["topic.3.key.schema_file", "json cannot be read without its schema", missing],
      ],
    ],
    [
      "a message of JSON",
      { format: "json", message: "a.B" },
      [["message", "JSON has no messages", conflict]],
    ],
    ["nothing wrong: XML by a file", { format: "xml", schema_file: "x", registry }, []],
    [
      "XML from nowhere, or from a registry",
      { format: "xml", framing: "confluent", registry, topic: [{ name: "a", format: "json" }] },
      [
        ["schema_file", "xml cannot be read without its schema", missing],
        ["framing", "no registry has schemas of XML that envelopes could name", conflict],
      ],
    ],
    [
      "a subject, which XML has not",
      {
        format: "json",
        topic: [{ name: "a", format: "xml", schema_file: "x", subject: "s", message: "a.B" }],
      },
      [["topic.0.subject", "XML has no subjects", conflict]],
    ],
    [
      "records without a name",
      { format: "avro", framing: "confluent", registry, subject_strategy: "record" },
      [["message", "the strategy record needs the record's name", conflict]],
    ],
    [
      "nothing wrong: records with a name",
      { format: "avro", framing: "confluent", registry, subject_strategy: "topic_record", message: "a.B" },
      [],
    ],
  ];
  for (const [name, options, expected] of cases)
    test(name, () => expect(problems(options)).toEqual(expected));

  test("values and names that are none", () => {
    expect(problems({ format: "yaml" }).map(([path]) => path)).toEqual(["format"]);
    expect(problems({ format: "json", topic: [{ nam: "a" }] }).map(([path]) => path)).toEqual([
      "topic.0.name",
      "topic.0",
    ]);
    expect(problems({ format: "avro", schema_file: "x", message: "1a" }).map(([path]) => path)).toEqual([
      "message",
    ]);
    expect(problems({ format: "json", max_depth: 0 }).map(([path]) => path)).toEqual(["max_depth"]);
  });
});

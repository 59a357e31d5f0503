/** Goal: what the configuration says of rows in a topic is what lanes are told and people read. Method: sinks by hand. */
import { expect, test } from "bun:test";
import { kafkaSinkSpec } from "../../src/adapters/kafka/sink/spec.ts";
import type { SinkOf } from "../../src/commands/config-file.ts";
import { encodeOf, encodingText } from "../../src/commands/kafka-encode.ts";

const sink = (encode: object | undefined, receives = "decoded") =>
  ({
    ...kafkaSinkSpec.parse({ bootstrap: ["k:1"], topic: "orders.typed", ...(encode && { encode }) }),
    receives,
  }) as unknown as SinkOf<"kafka">;
const URL = { url: ["http://r:8081"] };

test("names come from the topic, unless they are given", () => {
  expect([
    encodeOf(sink({ format: "json" })),
    encodeOf(sink({ format: "avro", registry: URL })),
    encodeOf(sink({ format: "avro", subject: "s", record: "acme.Order" })),
    encodeOf(sink({ format: "protobuf", record: "acme.Order" })),
    encodeOf(sink({ format: "json_schema" })),
    encodeOf(sink(undefined, "rejected")),
    encodeOf(sink(undefined, "raw")),
  ]).toEqual([
    { format: "json" },
    { format: "avro", subject: "orders.typed-value", record: "orders_typed" },
    { format: "avro", subject: "s", record: "acme.Order" },
    { format: "protobuf", subject: "orders.typed-value", record: "acme.Order" },
    { format: "json_schema", subject: "orders.typed-value", record: "orders_typed" },
    null,
    null,
  ]);
});

test("explain says it", () => {
  const none = { decode: null };
  expect(encodingText(none, sink({ format: "json" }))).toBe(" as JSON");
  expect(encodingText(none, sink({ format: "avro", registry: URL, register: false }))).toBe(
    " as Avro, orders_typed, by the schema there under orders.typed-value at http://r:8081",
  );
  expect(encodingText(none, sink({ format: "protobuf", registry: URL }))).toBe(
    " as Protobuf, orders_typed, by the schema registered under orders.typed-value at http://r:8081",
  );
  expect(encodingText(none, sink(undefined, "raw"))).toBe("");
});

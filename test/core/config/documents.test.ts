// Goal: what is made from the specs (starter, effective configuration, schema, texts) says what the specs say. Method: sample adapters, exact text.
import { describe, expect, test } from "bun:test";
import * as z from "zod";
import { fullSpec } from "../../../src/core/config/adapter-spec.ts";
import { checkConfig } from "../../../src/core/config/check.ts";
import { effective } from "../../../src/core/config/effective.ts";
import { configJsonSchema } from "../../../src/core/config/json-schema.ts";
import { hostPortText, tomlValue } from "../../../src/core/config/render.ts";
import {
  adapterOptions,
  allowedText,
  choicesOf,
  keysAt,
  open,
  optionsOf,
  schemaAt,
} from "../../../src/core/config/schema-walk.ts";
import { FileRef, Secret, SecretRef } from "../../../src/core/config/secret.ts";
import {
  defaultLanes,
  isLoopback,
  observabilitySpec,
  pipelineSpec,
} from "../../../src/core/config/sections.ts";
import { starterFile } from "../../../src/core/config/starter.ts";
import { GOOD, SAMPLE_ADAPTERS } from "./sample-adapters.ts";

const [source, sink] = SAMPLE_ADAPTERS;
if (source === undefined || sink === undefined) throw new Error("no samples");

test.each([
  [64 * 1024 * 1024, "bytes", '"64MiB"'],
  [10_000, "ms", '"10s"'],
  [500, "ms", "500"],
  [3, "", "3"],
  [9007199254740993n, "", "9007199254740993"],
  [true, "", "true"],
  ['a"b\n', "", '"a\\"b\\n"'],
  [new Secret("hunter2"), "", '"***"'],
  [new SecretRef("n"), "", '{ secret = "n" }'],
  [new FileRef("/p"), "", '{ file = "/p" }'],
  [
    [
      { host: "::1", port: 1 },
      { host: "h", port: 2 },
    ],
    "",
    '["[::1]:1", "h:2"]',
  ],
  [{ a: 1, "b c": ["x"], gone: undefined }, "", '{ a = 1, "b c" = ["x"] }'],
  [{}, "", "{}"],
  [null, "", '""'],
])("%p (%s) as TOML is %s", (value, unit, text) => {
  expect(tomlValue(value, unit)).toBe(text);
});

test("addresses of either kind", () => {
  expect([hostPortText({ host: "::1", port: 9 }), hostPortText({ host: "h", port: 9 })]).toEqual([
    "[::1]:9",
    "h:9",
  ]);
});

describe("allowed values in words", () => {
  test.each([
    [z.enum(["a", "b"]), '"a" | "b"'],
    [z.literal("a"), '"a"'],
    [z.string(), "a string"],
    [z.boolean(), "true or false"],
    [z.int(), "a whole number"],
    [z.int().min(1).max(5), "a whole number, at least 1, at most 5"],
    [z.number().min(0.5), "a number, at least 0.5"],
    [z.array(z.string()), "a list, each a string"],
    [z.strictObject({ a: z.string(), b: z.int() }), "a table of a, b"],
    [z.record(z.string(), z.int()), "a table, each value a whole number"],
    [z.union([z.string(), z.int()]), "a string, or a whole number"],
    [z.null(), "null"],
    [z.string().optional().meta({ allowed: "this" }), "this"],
    [z.string().nullable().readonly().default("x"), "a string"],
  ])("%#", (schema, text) => {
    expect(allowedText(schema)).toBe(text);
  });

  test("of a place in a spec", () => {
    const spec = z.strictObject({
      list: z.array(z.strictObject({ x: z.record(z.string(), z.enum(["y"])) })),
    });
    expect(keysAt(spec, ["list", 3])).toEqual(["x"]);
    expect(keysAt(spec, ["list", 3, "x"])).toEqual([]);
    expect(keysAt(spec, ["none"])).toEqual([]);
    const at = schemaAt(spec, ["list", 0, "x", "any"]);
    expect(at === null ? null : choicesOf(at)).toEqual(["y"]);
    expect(schemaAt(spec, ["list", 0, "constructor"])).toBeNull();
    expect(schemaAt(spec, ["list", 0, "x", "any", "deeper"])).toBeNull();
    expect(choicesOf(z.union([z.string(), z.int()]))).toBeNull();
  });

  test("the outermost of two meanings wins, and defaults are found under wrappers", () => {
    const opened = open(z.int().describe("inner").meta({ unit: "ms" }).default(3).describe("outer"));
    expect(opened).toMatchObject({
      required: false,
      fallback: 3,
      meta: { description: "outer", unit: "ms" },
    });
    expect(open(z.string()).required).toBe(true);
    expect(optionsOf(z.string())).toEqual([]);
  });
});

test("every option of the shared sections has a meaning, and an example or a default", () => {
  for (const spec of [pipelineSpec, observabilitySpec]) {
    for (const option of optionsOf(spec).flatMap((o) => [o, ...o.options])) {
      expect(option.meta.description ?? "").toMatch(/\.$/);
      const shown =
        option.meta.examples ?? option.fallback ?? (option.options.length > 0 ? "table" : undefined);
      expect([option.key, shown]).not.toEqual([option.key, undefined]);
    }
  }
});

test("shared options come first and are not repeated", () => {
  const keys = adapterOptions(fullSpec(sink)).map((o) => o.key);
  expect(keys).toEqual([
    "type",
    "name",
    "receives",
    "role",
    "path",
    "roll_bytes",
    "mode",
    "roll_interval_ms",
    "metadata",
    "duplicates",
    "hold_bytes",
  ]);
});

test("an adapter's own option wins over the shared one of its name", () => {
  const own = { ...sink, spec: z.strictObject({ name: z.literal("fixed"), type: z.literal("parquet") }) };
  expect(fullSpec(own).safeParse({ type: "parquet", name: "raw" }).success).toBe(false);
  expect(fullSpec(own).parse({ type: "parquet", name: "fixed" })).toEqual({
    type: "parquet",
    name: "fixed",
    receives: "raw",
    hold_bytes: 16_777_216,
    metadata: "locator",
    duplicates: "keep",
  });
});

describe("the starter", () => {
  const text = starterFile(source, sink);
  test("names what is required and comments out the rest with its default", () => {
    expect(text).toContain('\n[[sink]]\n# This sink: a sample sink\ntype = "parquet"\n');
    expect(text).toContain('\n# Where.\npath = "./data"\n# How large.\n# roll_bytes = "128MiB"\n');
    expect(text).toContain('\n# Log in.\n# [source.sasl]\n# mechanism = "PLAIN"\n# username = "CHANGE-ME"\n');
    expect(text).toContain("\n# [batch]\n");
  });
});

describe("the effective configuration", () => {
  const text = GOOD.replace(
    'type = "kafka"',
    'type = "kafka"\nsasl = { mechanism = "PLAIN", username = "u", password = { secret = "p" } }',
  );
  const result = checkConfig(new TextEncoder().encode(text), "x.toml", SAMPLE_ADAPTERS);
  if (!result.ok) throw new Error("refused");
  const tables = effective(result.config, SAMPLE_ADAPTERS);

  test("has the tables in the order of a file", () => {
    expect(tables.map((t) => t.header)).toEqual([
      "[pipeline]",
      "[source]",
      "[source.sasl]",
      "[batch]",
      "[recovery]",
      "[dedup]",
      "[observability]",
      "[secrets]",
      "[[sink]]",
    ]);
  });

  test("says of each option where its value is from", () => {
    const option = (path: string) => tables.flatMap((t) => t.options).find((o) => o.path === path);
    expect(option("source.bootstrap")).toMatchObject({ value: '["kafka:9092"]', from: "file" });
    expect(option("source.start")).toMatchObject({ value: '"earliest"', from: "default" });
    expect(option("source.tls")).toMatchObject({ value: null, from: "unset" });
    expect(option("source.sasl.password")).toMatchObject({ value: '{ secret = "p" }', from: "file" });
    expect(option("sink[0].roll_bytes")).toMatchObject({ value: '"128MiB"', from: "default", unit: "bytes" });
  });

  test("of an adapter that nobody knows any more is empty, not an exception", () => {
    expect(effective(result.config, []).find((t) => t.header === "[[sink]]")?.options).toEqual([]);
  });
});

test("the JSON Schema describes what may be written", () => {
  const schema = configJsonSchema(SAMPLE_ADAPTERS);
  expect(schema).toMatchObject({
    required: ["pipeline", "source", "sink"],
    additionalProperties: false,
    properties: {
      pipeline: {
        properties: { max_bytes: { type: ["string", "integer"], default: 33554432, examples: ["64MiB"] } },
        additionalProperties: false,
      },
      sink: {
        maxItems: 16,
        items: {
          oneOf: [
            { properties: { type: { const: "parquet" }, role: { enum: ["primary_raw", "secondary"] } } },
          ],
        },
      },
      source: {
        oneOf: [
          {
            properties: {
              bootstrap: { examples: [["kafka:9092"]] },
              start: { enum: ["earliest", "latest"], default: "earliest" },
            },
          },
        ],
      },
    },
  });
  const text = JSON.stringify(schema);
  expect(text).toContain("How large. Unit: bytes.");
  expect(text).not.toContain("9007199254740991");
});

test.each([
  [0, 1],
  [1, 1],
  [2, 2],
  [4, 4],
  [64, 4],
  [2.9, 2],
])("%d processors get %d lanes", (processors, lanes) => {
  expect(defaultLanes(processors)).toBe(lanes);
});

test("loopback is told from its text, not by resolving names", () => {
  const loopback = ["127.0.0.1:1", "127.255.0.9:1", "[::1]:1", "LOCALHOST:1"];
  const open = ["0.0.0.0:1", "[::]:1", "127.0.0.1.example:1", "128.0.0.1:1", "nonsense"];
  expect([...loopback, ...open].filter(isLoopback)).toEqual(loopback);
});

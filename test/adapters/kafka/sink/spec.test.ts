/** Goal: the options of `[[sink]] type = "kafka"` and what they come to. Method: options in, settings or problems out. */
import { expect, test } from "bun:test";
import { filledName, kafkaSinkSettings } from "../../../../src/adapters/kafka/sink/settings.ts";
import { kafkaSinkSpec } from "../../../../src/adapters/kafka/sink/spec.ts";
import type { Resolved } from "../../../../src/core/config/secret.ts";

const LEAST = { bootstrap: ["kafka:9092"], topic: "copy.{topic}" };
const problems = (more: object): string[] => {
  const result = kafkaSinkSpec.safeParse({ ...LEAST, ...more });
  return result.success ? [] : result.error.issues.map((i) => i.path.join("."));
};

test("what is not written has the documented default", () => {
  const spec = kafkaSinkSpec.parse(LEAST);
  expect(spec).toMatchObject({
    partition: "key",
    metadata: "none",
    compression: "lz4",
    commit_interval_ms: 1000,
    transaction_timeout_ms: 60_000,
    coverage_topic: "_twg_coverage.{pipeline}.{sink}",
    create: false,
  });
  expect(kafkaSinkSettings(spec as Resolved<typeof spec>, "1.2.3")).toMatchObject({
    bootstrap: [{ host: "kafka", port: 9092 }],
    version: "1.2.3",
    tls: null,
    sasl: null,
    dialTimeoutMs: 10_000,
    connectTimeoutMs: 30_000,
  });
});

test.each<[object, string[]]>([
  [{ topic: "a b" }, ["topic"]],
  [{ topic: "{pipeline}" }, ["topic"]],
  [{ topic: ".." }, ["topic"]],
  [{ coverage_topic: "{topic}" }, ["coverage_topic"]],
  [{ commit_interval_ms: "40s" }, ["commit_interval_ms"]],
  [{ compression_level: 3 }, ["compression_level"]],
  [{ compression: "gzip", compression_level: 12 }, ["compression_level"]],
  [{ compression: "zstd", compression_level: 12 }, []],
  [{ topic: "{topic}" }, []],
])("%j", (more, wrong) => {
  expect(problems(more)).toEqual(wrong);
});

test("names are filled in, and what is no name of ours stays", () => {
  expect(filledName("c.{topic}.{x}", { topic: "orders" })).toBe("c.orders.{x}");
});

/**
 * Goal: a [decode] section is checked with the rest of a file, its secrets are references like others, and `explain` shows
 * it. Method: files of a version that has the section.
 */
import { expect, test } from "bun:test";
import { catalogue } from "../../../src/adapters/catalogue.ts";
import { checkConfig } from "../../../src/core/config/check.ts";
import { effective } from "../../../src/core/config/effective.ts";
import { collectRefs } from "../../../src/core/config/resolve.ts";
import { warningsOf } from "../../../src/core/config/warnings.ts";

const BASE = `
[pipeline]
name = "orders"
[source]
type = "kafka"
bootstrap = ["k:9092"]
topics = ["orders"]
[[sink]]
name = "raw"
type = "parquet"
path = "/tmp/x"
`;

function check(decode: string, later: ReadonlyMap<string, string> = new Map()) {
  return checkConfig(new TextEncoder().encode(`${BASE}${decode}`), "f.toml", catalogue(), later);
}

function checked(decode: string) {
  const result = check(decode);
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  return result.config;
}

test("absent: null; there: with its defaults", () => {
  expect(checked("").decode).toBeNull();
  expect(checked('[decode]\nformat = "json"\n').decode).toMatchObject({ format: "json", on_error: "reject" });
});

test("problems have their line, path and the nearest name", () => {
  const result = check(
    '[decode]\nformat = "avro"\nframin = "none"\n[[decode.topic]]\nname = "a"\nformat = "jsn"\n',
  );
  expect(!result.ok && result.problems.map((p) => [p.code, p.path, p.line])).toEqual([
    ["config.unknown_key", "decode.framin", 14],
    ["config.range", "decode.topic[0].format", 17],
  ]);
  const conflict = check('[decode]\nformat = "avro"\n[decode.registry]\nurl = ["http://r"]\n');
  expect(!conflict.ok && conflict.problems.map((p) => [p.code, p.path])).toEqual([
    ["config.missing", "decode.framing"],
  ]);
});

test("a version without it says so", () => {
  const result = check('[decode]\nformat = "json"\n', new Map([["decode", "not yet"]]));
  expect(!result.ok && result.problems.map((p) => [p.code, p.hint])).toEqual([
    ["config.not_in_this_version", "not yet"],
  ]);
});

test("secrets are found, those in the file warned of, and none shown", () => {
  const config = checked(
    '[decode]\nformat = "avro"\nframing = "confluent"\n[decode.registry]\nurl = ["http://r"]\nusername = "u"\npassword = "hush"\nheaders = { a = { secret = "b" } }\n',
  );
  expect(collectRefs(config.decode, ["decode"]).map((r) => r.path)).toEqual([
    ["decode", "registry", "headers", "a"],
  ]);
  expect(warningsOf(config).map((p) => [p.code, p.path])).toEqual([
    ["config.literal_secret", "decode.registry.password"],
  ]);
  const tables = effective(config, catalogue());
  expect(tables.map((t) => t.header)).toContain("[decode.registry]");
  expect(JSON.stringify(tables)).not.toContain("hush");
});

/**
 * Goal: duplicates are left out only where it follows from the records alone which they are; everything else is refused with
 * its place. Method: whole configurations, changed at one place each; contracts with keys and without.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkBytes, typed } from "../../src/commands/config-file.ts";
import { naturalKeyOf, naturalKeyProblems, topicsWithKeys } from "../../src/commands/natural-key-check.ts";
import { decodeSpec } from "../../src/core/config/decode-options.ts";
import { tableOfContract } from "../../src/core/contract/odcs.ts";
import { asFailure } from "../../src/core/failure/failure.ts";

const folder = mkdtempSync(join(tmpdir(), "twg-dedup-"));
afterAll(() => rmSync(folder, { recursive: true }));

const CONFIG = `[pipeline]
name = "p"
[source]
type = "kafka"
bootstrap = ["k:9092"]
topics = ["orders"]
[decode]
format = "json"
schema_file = "shop.yaml"
#decode
[[sink]]
name = "raw"
role = "primary_raw"
#raw
[[sink]]
name = "typed"
#typed
[[sink]]
name = "bad"
receives = "rejected"
type = "parquet"
path = "/data/bad"
`;
const RAW = 'type = "parquet"\npath = "/data/raw"';
const TYPED = 'type = "parquet"\npath = "/data/typed"\nreceives = "decoded"\nduplicates = "drop"';

function told({ raw = RAW, typed: of = TYPED, decode = "", from = "", to = "" } = {}): string[] {
  const text = CONFIG.replace("#raw", raw).replace("#typed", of).replace("#decode", decode).replace(from, to);
  const result = checkBytes(new TextEncoder().encode(text), "p.toml");
  return result.ok ? [] : result.problems.map((p) => `${p.path} ${p.code}`);
}

const later = "config.not_in_this_version";

describe("where duplicates can be left out", () => {
  test("JSON by a contract, decoded rows behind raw files", () => {
    expect(told()).toEqual([]);
    expect(told({ decode: '[decode.key]\nformat = "text"' })).toEqual([]);
    expect(told({ from: 'format = "json"', to: 'format = "xml"' })).toEqual([]);
  });

  test("not in sinks of other rows, of other kinds, or behind another raw sink", () => {
    expect(told({ typed: 'type = "parquet"\npath = "/data/typed"\nduplicates = "drop"' })).toEqual([
      "sink[1].duplicates config.conflict",
    ]);
    const table = 'type = "postgres"\nurl = { secret = "pg" }\ntable = "public.orders"\n';
    expect(told({ typed: `${table}receives = "decoded"\nduplicates = "drop"` })).toEqual([]);
    const topic =
      'type = "kafka"\nbootstrap = ["b:1"]\ntopic = "clean"\nreceives = "decoded"\nencode = { format = "json" }\n';
    expect(told({ typed: topic })).toEqual([]);
    expect(told({ typed: `${topic}duplicates = "drop"` })).toEqual([`sink[1].duplicates ${later}`]);
    expect(told({ raw: table })).toEqual([`sink[0].type ${later}`]);
  });

  test("not where the schema may be another one tomorrow", () => {
    expect(told({ decode: 'registry = { url = ["http://r:8081"] }\nframing = "confluent"' })).toEqual([
      `decode.registry ${later}`,
    ]);
    expect(told({ decode: 'schema_dir = "/s"\nframing = "confluent"' })).toEqual([
      `decode.schema_dir ${later}`,
    ]);
    expect(told({ from: 'schema_file = "shop.yaml"', to: "" })).toEqual([
      "decode.schema_file config.missing",
    ]);
    const avro = '[[decode.topic]]\nname = "orders"\nformat = "avro"\nschema_file = "o.avsc"';
    expect(told({ decode: avro })).toEqual(["decode.topic[0].reader_schema config.missing"]);
    const protobuf = avro.replace('"avro"', '"protobuf"').replace("o.avsc", "o.proto");
    expect(told({ decode: protobuf })).toEqual(["decode.topic[0].reader_schema config.missing"]);
    for (const one of [avro, protobuf]) {
      expect(told({ decode: `${one}\nreader_schema = "shop.yaml"` })).toEqual([]);
      expect(told({ decode: `${one}\nframing = "confluent"\nreader_schema = "shop.yaml"` })).toEqual([]);
    }
    expect(
      told({ decode: '[decode.key]\nformat = "avro"\nframing = "none"\nschema_file = "k.avsc"' }),
    ).toEqual([]);
  });

  test("the window is bounded", () => {
    expect(told({ decode: "[dedup]\nwindow_records = 0\nmax_bytes = 10" })).toEqual([
      "dedup.window_records config.range",
      "dedup.max_bytes config.range",
    ]);
  });
});

const contract = (properties: readonly string[]) =>
  `apiVersion: v3.1.0\nkind: DataContract\nid: c\nversion: 1.0.0\nstatus: active\nschema:\n  - name: orders\n    properties:\n${properties.map((p) => `      - { ${p} }\n`).join("")}`;

describe("the natural key of a contract", () => {
  const keyOf = (...properties: string[]) =>
    tableOfContract(contract(properties), { name: null, topic: "orders" }, "c.yaml").naturalKey;

  test("by position, then as they stand; by the name of the column", () => {
    expect(keyOf("name: a, logicalType: string", "name: b, logicalType: string")).toEqual([]);
    expect(
      keyOf(
        "name: a, logicalType: string, primaryKey: true, primaryKeyPosition: 2",
        "name: b, physicalName: bb, logicalType: string, primaryKey: true, primaryKeyPosition: 1",
        "name: c, logicalType: string, primaryKey: true",
        "name: d, logicalType: string, primaryKey: true, primaryKeyPosition: -1",
      ),
    ).toEqual(["bb", "a", "c", "d"]);
    // Without what stands within a column two keys would be one.
    const lines =
      "name: line, logicalType: object, properties: [{ name: number, logicalType: integer, primaryKey: true }]";
    const tags = "name: tags, logicalType: array, items: { logicalType: string, primaryKey: true }";
    expect(keyOf("name: a, logicalType: string, primaryKey: true", lines, tags)).toEqual([
      "a",
      "line.number",
      "tags.element",
    ]);
  });

  test("is looked for at the start and by validate", async () => {
    const path = join(folder, "c.yaml");
    const decode = decodeSpec.parse({ format: "json", schema_file: path });
    const text = CONFIG.replace("#raw", RAW).replace("#typed", TYPED);
    const config = checkBytes(new TextEncoder().encode(text), "p.toml");
    if (!config.ok) throw new Error("the configuration is right");
    const problems = async () =>
      (await naturalKeyProblems(typed(config.config), decode, ["orders"])).map((p) => `${p.path} ${p.code}`);
    // Perhaps it is where the pipeline will run.
    expect(await problems()).toEqual([]);
    writeFileSync(path, contract(["name: a, logicalType: string, primaryKey: true"]));
    expect(await naturalKeyOf(decode, "orders")).toEqual(["a"]);
    expect(await problems()).toEqual([]);
    const key = "name: k, logicalType: string, primaryKey: true";
    for (const bad of [
      ["name: a, logicalType: string"],
      [key, "name: a, logicalType: number, physicalType: DOUBLE, primaryKey: true"],
      [
        key,
        "name: a, logicalType: object, properties: [{ name: b, logicalType: integer, primaryKey: true }]",
      ],
    ]) {
      writeFileSync(path, contract(bad));
      expect(asFailure(await naturalKeyOf(decode, "orders").catch((e) => e)).code).toBe("dedup.no_key");
      expect(await problems()).toEqual(["sink[1].duplicates dedup.no_key"]);
    }
    expect(topicsWithKeys(decode, undefined)).toEqual([""]);
  });
});

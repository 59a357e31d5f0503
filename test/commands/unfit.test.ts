/** Goal: settings of several sinks and of [decode] that are wrong together are told, each at its place. Method: whole files. */
import { expect, test } from "bun:test";
import { checkBytes } from "../../src/commands/config-file.ts";

const RAW = `[[sink]]
name = "raw"
type = "parquet"
role = "primary_raw"
path = "/lake/raw"
`;
const DECODE = `[decode]
format = "avro"
schema_file = "/etc/order.avsc"
`;
const files = (name: string, more = "", path = `/lake/${name}`) =>
  `[[sink]]\nname = "${name}"\ntype = "parquet"\npath = "${path}"\n${more}\n`;
const table = (name: string, more = "") =>
  `[[sink]]\nname = "${name}"\ntype = "postgres"\nurl = { secret = "db" }\ntable = "public.t"\n${more}\n`;

function problems(sinks: string, more = "", source = ""): string[] {
  const kafka = `type = "kafka"\nbootstrap = ["k:1"]\ntopics = ["t"]\ngroup = "g"`;
  const text = `[pipeline]\nname = "p"\n[source]\n${source === "" ? kafka : source}\n${sinks}${more}`;
  const result = checkBytes(new TextEncoder().encode(text), "f.toml");
  return result.ok ? [] : result.problems.map((p) => `${p.code} ${p.path}`);
}

const topic = (name: string, more: string) =>
  `[[sink]]\nname = "${name.replaceAll(/\W/g, "_")}"\ntype = "kafka"\nbootstrap = ["k:1"]\ntopic = "${name}"\n${more}\n`;
const REJECTED = files("bad", 'receives = "rejected"');
const DECODED = files("typed", 'receives = "decoded"');

test("sinks of all kinds that fit together", () => {
  expect(
    problems(RAW + DECODED + REJECTED + table("orders", 'receives = "decoded"\ncreate = true'), DECODE),
  ).toEqual([]);
  expect(problems(RAW + DECODED, `${DECODE}on_error = "fail"\n`)).toEqual([]);
});

test.each([
  [
    "two that write the same folder",
    RAW + files("b", "", "/lake//raw/"),
    "",
    ["config.conflict sink[1].path"],
  ],
  [
    "two that write the same folder, each in its own words",
    RAW + files("b", "", "/lake/x/../raw/.") + files("c", "", "here") + files("d", "", "./here/"),
    "",
    ["config.conflict sink[1].path", "config.conflict sink[3].path"],
  ],
  [
    "two that write the same place in a bucket",
    RAW + files("b", "", "s3://bucket/lake") + files("c", "", "s3://bucket/lake/"),
    "",
    ["config.conflict sink[2].path"],
  ],
  [
    "nothing wrong: buckets of one name in two stores",
    RAW +
      files("b", "", "s3://bucket/lake") +
      files("c", '[sink.s3]\nendpoint = "http://127.0.0.1:9000"', "s3://bucket/lake"),
    "",
    [],
  ],
  [
    "files where coverage lies",
    RAW + files("b", "", "/lake/raw/_twg/p/raw") + files("c", "", "s3://bucket/_twg"),
    "",
    ["config.conflict sink[1].path", "config.conflict sink[2].path"],
  ],
  [
    "a table that is one of its own coverage",
    `${RAW}${table("a").replace("public.t", "twg.coverage")}${table("b", 'state_schema = "public"').replace("public.t", "public.lease")}`,
    "",
    ["config.conflict sink[1].table", "config.conflict sink[2].table"],
  ],
  [
    "a table that is one of another sink's coverage",
    `${RAW}${table("a", 'state_schema = "mine"')}${table("b").replace("public.t", "mine.receipt")}`,
    "",
    ["config.conflict sink[2].table"],
  ],
  [
    "refused rows among the rows",
    `${RAW}${table("a", 'rejects = "public.t"')}`,
    "",
    ["config.conflict sink[1].rejects"],
  ],
  [
    "refused rows among the rows of a sink that comes later",
    `${RAW}${table("a", 'rejects = "public.u"')}${table("b").replace("public.t", "public.u")}`,
    "",
    ["config.conflict sink[1].rejects"],
  ],
  [
    "nothing wrong: refused rows of two sinks in one table",
    `${RAW}${table("a", 'rejects = "public.bad"')}${table("b", 'rejects = "public.bad"').replace("public.t", "public.u")}`,
    "",
    [],
  ],
  [
    "a topic that holds its own coverage",
    RAW + topic("out", 'coverage_topic = "out"'),
    "",
    ["config.conflict sink[1].topic"],
  ],
  [
    "topics of which one holds the coverage of another sink",
    RAW + topic("copy.{topic}", "") + topic("out", 'coverage_topic = "copy.t"'),
    "",
    ["config.conflict sink[1].topic"],
  ],
  [
    "a topic of [decode] that is not read",
    RAW + DECODED + REJECTED,
    `${DECODE}[[decode.topic]]\nname = "t"\non_error = "fail"\n[[decode.topic]]\nname = "T"\non_error = "fail"\n`,
    ["config.conflict decode.topic[1].name"],
  ],
  ["two that write the same table", RAW + table("a") + table("b"), "", ["config.conflict sink[2].table"]],
  ["decoded without [decode]", RAW + DECODED, "", ["config.conflict sink[1].receives"]],
  ["rejects without a place", RAW + DECODED, DECODE, ["config.missing decode.on_error"]],
  [
    "a primary that does not keep the records",
    `${RAW}receives = "rejected"\n`,
    DECODE,
    ["config.conflict sink[0].receives"],
  ],
  [
    "braces in the path of a table",
    RAW + REJECTED + files("typed", 'receives = "decoded"', "/lake/typed/{date}"),
    DECODE,
    ["config.not_in_this_version sink[2].path"],
  ],
  [
    "decoded rows that replace each other",
    RAW + REJECTED + table("t", 'receives = "decoded"\nmode = "upsert"'),
    DECODE,
    ["config.not_in_this_version sink[2].mode"],
  ],
  [
    "a row key of rows that replace each other, and of rejects",
    RAW +
      DECODED +
      table("t", 'mode = "upsert"\nrow_key = true') +
      table("u", 'receives = "rejected"\nrow_key = true').replace("public.t", "public.u"),
    DECODE,
    ["config.conflict sink[2].row_key", "config.conflict sink[3].row_key"],
  ],
  [
    "nothing wrong: a row key",
    RAW + REJECTED + table("t", 'receives = "decoded"\nrow_key = true\nmetadata = "none"'),
    DECODE,
    [],
  ],
  [
    "two prefixes",
    RAW + REJECTED + files("typed", 'receives = "decoded"\nmetadata_prefix = "m_"'),
    DECODE,
    ["config.conflict sink[2].metadata_prefix"],
  ],
  [
    "nothing wrong: keys that are decoded",
    RAW + DECODED + REJECTED,
    `${DECODE}[decode.key]\nformat = "avro"\nschema_file = "/etc/key.avsc"\n`,
    [],
  ],
  [
    "keys whose columns would be metadata's",
    RAW + DECODED + REJECTED,
    `${DECODE}[decode.key]\nformat = "text"\nprefix = "_twg_key_"\n`,
    ["config.conflict decode.key.prefix"],
  ],
  ["JSON without a schema, which is learned", RAW + DECODED + REJECTED, '[decode]\nformat = "json"\n', []],
  [
    "columns that are learned, and a table that may not grow",
    RAW + REJECTED + table("t", 'receives = "decoded"'),
    '[decode]\nformat = "json"\n',
    ["config.conflict decode.infer.new_fields"],
  ],
  [
    "such a table, and fields that are refused",
    RAW + REJECTED + table("t", 'receives = "decoded"'),
    '[decode]\nformat = "json"\ninfer = { new_fields = "reject" }\n',
    [],
  ],
  [
    "decoded rows in a topic that nobody says how to write",
    RAW + REJECTED + topic("out", 'receives = "decoded"'),
    DECODE,
    ["config.missing sink[2].encode"],
  ],
  [
    "decoded rows in a topic for each source",
    RAW + REJECTED + topic("out.{topic}", 'receives = "decoded"\nencode = { format = "json" }'),
    DECODE,
    ["config.not_in_this_version sink[2].topic"],
  ],
  [
    "Avro without a registry",
    RAW + REJECTED + topic("out", 'receives = "decoded"\nencode = { format = "protobuf" }'),
    DECODE,
    ["config.missing sink[2].encode.registry"],
  ],
  [
    "an encoding of what stays as it came",
    RAW + topic("dead.{topic}", 'receives = "rejected"\nencode = { format = "json" }'),
    DECODE,
    ["config.conflict sink[1].encode"],
  ],
  [
    "a schema for JSON",
    RAW + REJECTED + topic("out", 'receives = "decoded"\nencode = { format = "json", record = "Order" }'),
    DECODE,
    ["config.conflict sink[2].encode.record"],
  ],
  [
    "topics of rows and of rejects",
    RAW +
      topic("dead.{topic}", 'receives = "rejected"') +
      topic("out", 'receives = "decoded"\nencode = { format = "json" }'),
    DECODE,
    [],
  ],
])("%s", (_, sinks, more, want) => {
  expect(problems(sinks, more)).toEqual([...want]);
});

test("a topic of [decode] that no pattern reads", () => {
  const source = 'type = "kafka"\nbootstrap = ["k:1"]\ntopics_pattern = "orders[.].*"\ngroup = "g"';
  const own = (name: string) => `[[decode.topic]]\nname = "${name}"\non_error = "fail"\n`;
  expect(problems(RAW + DECODED + REJECTED, DECODE + own("orders.eu") + own("order.eu"), source)).toEqual([
    "config.conflict decode.topic[1].name",
  ]);
});

test("names that clash, no primary sink and two of them", () => {
  expect(problems(RAW + files("raw", "", "/lake/b"))).toEqual(["config.conflict sink[1].name"]);
  expect(problems(files("a") + files("b"))).toEqual(["config.conflict sink"]);
  expect(problems(RAW + files("b", 'role = "primary_raw"'))).toEqual(["config.conflict sink[1].role"]);
});

test("a role that recovers needs raw that can be read again", () => {
  const withRole = (sinks: string) => {
    const text = `[pipeline]\nname = "p"\nrole = "recovery"\n[source]\ntype = "kafka"\nbootstrap = ["k:1"]\ntopics = ["t"]\ngroup = "g"\n${sinks}`;
    const result = checkBytes(new TextEncoder().encode(text), "f.toml");
    return result.ok ? [] : result.problems.map((p) => `${p.code} ${p.path}`);
  };
  expect(withRole(RAW + files("b"))).toEqual([]);
  expect(withRole(RAW)).toEqual(["config.conflict pipeline.role"]);
  expect(withRole(table("t", 'role = "primary_raw"') + files("b"))).toEqual([]);
  expect(withRole(table("t", 'role = "primary_raw"\nmode = "upsert"') + files("b"))).toEqual([
    "config.conflict pipeline.role",
  ]);
});

test("rows of files land in one sink", () => {
  const source = 'type = "files"\npaths = ["/in/*.csv"]';
  expect(problems(RAW + files("b"), "", source)).toEqual(["config.not_in_this_version sink[1]"]);
});

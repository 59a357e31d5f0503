/**
 * Goal: what went wrong in public with the types, codecs and files of others is tried here, and it can be seen where. Method: a
 * table of those reports, each with the tests that hold ours to it; a test that is renamed or removed fails its row. What
 * concerns a part that is not there yet says so. The reports are cited by their trackers, owner/name and number.
 */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

interface Case {
  readonly reports: string;
  readonly what: string;
  /** File below test/, and a title in it. */
  readonly tests?: readonly (readonly [file: string, title: string])[];
  /** What it waits for. */
  readonly later?: "contracts" | "quality rules" | "replay of dead letters" | "Excel files";
}

const AVRO = "core/codecs/avro";
const PROTOBUF = "core/codecs/protobuf/compile.test.ts";
const JSON_RECORDS = "core/codecs/json/records.test.ts";
const XML = "core/codecs/xml/records.test.ts";
const TYPES = "fidelity/types.test.ts";

const CASES: readonly Case[] = [
  {
    reports: "bitol-io/open-data-contract-standard#127, #306, #322, #343, #344, #345, #349",
    what: "how versions of a contract's schema are read",
    later: "contracts",
  },
  {
    reports:
      "datacontract/datacontract-cli#890, #891, #1042, #1067, #1220, #1246, #1404, #1514, #1586, #1590",
    what: "options of a contract that are dropped or not enforced",
    later: "contracts",
  },
  {
    reports:
      "datacontract/datacontract-cli#1124, ClickHouse/clickhouse-kafka-connect#800, apache/pinot#13224, duckdb/duckdb-avro#120",
    what: "Avro unions of several branches, and a logical type within one",
    tests: [
      [TYPES, "union of several"],
      [`${AVRO}/logical.test.ts`, "by their full names where the simple ones are one"],
      [`${AVRO}/resolve.test.ts`, "the reader's branch of the same type comes before one by promotion"],
    ],
  },
  {
    reports: "ClickHouse/ClickHouse#49088, trinodb/trino#26224, confluentinc/schema-registry#833, #1381",
    what: "Avro decimals: bytes of any length, fixed, negative, zero, defaults",
    tests: [
      [`${AVRO}/resolve.test.ts`, "a default decimal (confluentinc/schema-registry#1381)"],
      [TYPES, "10n ** 38n - 1n"],
    ],
  },
  {
    reports:
      "mercari/pipeline#118, #122, apache/beam#21018, risingwavelabs/risingwave#8730, duckdb/duckdb-avro#82",
    what: "instants of another unit, before 1970, without a zone, in nanoseconds",
    tests: [
      [TYPES, '"local-timestamp-ns"'],
      [`${AVRO}/resolve.test.ts`, "milliseconds as microseconds"],
      [`${AVRO}/encode.test.ts`, "microseconds that are no milliseconds"],
    ],
  },
  {
    reports:
      "chrusty/protoc-gen-jsonschema#20, #34, risingwavelabs/risingwave#10443, redpanda-data/redpanda#5573, awslabs/aws-glue-schema-registry#448",
    what: "messages within themselves, Struct and Value, Any in a oneof",
    tests: [
      [PROTOBUF, "three levels of structs, then JSON"],
      [PROTOBUF, "by way of lists, maps, other messages and oneofs; wide ones with fewer levels"],
      [TYPES, "record within itself"],
    ],
  },
  {
    reports: "protocolbuffers/protobuf#1606, #7270, #8237",
    what: "a zero of proto3 against nothing, wrappers",
    tests: [
      [PROTOBUF, "well-known types"],
      ["core/codecs/protobuf/encode.test.ts", "a zero with presence, and a negative one, are written"],
    ],
  },
  {
    reports: "protocolbuffers/protobuf#25587",
    what: "an Any in an Any goes around the limit of depth",
    tests: [
      [PROTOBUF, "an Any in an Any in an Any is bytes"],
      [PROTOBUF, "depth is bounded, in messages, groups, Struct and unknown fields"],
    ],
  },
  {
    reports: "jqlang/jq#369, rhysd/fixjson#19, influxdata/telegraf#9520",
    what: "integers above 2^53, 1e400",
    tests: [
      [
        "core/codecs/json/decoder.test.ts",
        "integers above 2^53 keep every digit; a fraction, a boolean and 1e400 are refused",
      ],
      [TYPES, "18446744073709551615"],
    ],
  },
  {
    reports: "duckdb/duckdb#11152, #23819",
    what: "a key that comes twice",
    tests: [
      [
        "core/codecs/json/decoder.test.ts",
        "a key that comes twice and a key that nobody knows refuse the row",
      ],
    ],
  },
  {
    reports: "duckdb/duckdb#17329, #22598",
    what: "NaN and infinity in JSON",
    tests: [[JSON_RECORDS, "numbers are not bent, and lone surrogates and NaN are no JSON"]],
  },
  {
    reports: "JamesNK/Newtonsoft.Json#351, x2js#34, nextgenhealthcare/connect#4328",
    what: "one namespace under several prefixes",
    tests: [
      [XML, "text is what it says, however it is written; a prefix is as good as another"],
      [XML, "the same name in another namespace is another name"],
    ],
  },
  {
    reports: "gs1/EPCIS#276, jettison#1, simonrupf/convert2json#91, stleary/JSON-java#423",
    what: "one element or many, attributes, mixed content",
    tests: [
      [XML, "elements, attributes, lists of one and of many, text of the element itself"],
      [XML, "what is no record of the schema"],
    ],
  },
  {
    reports: "duckdb/duckdb#11838, #14883, #16251, #16760, #25827",
    what: "a CSV reader that guesses drops its header, or rows",
    tests: [
      ["core/codecs/csv/sniff.test.ts", "what may be either is a question"],
      ["core/codecs/csv/sniff.test.ts", "records that agree on nothing are a question"],
      [
        "core/codecs/csv/decoder.test.ts",
        "torn records are refused with their reason, their neighbours land",
      ],
      [
        "core/codecs/csv/decoder.test.ts",
        "a quote that is never closed takes the rest of the file with it, and says so",
      ],
    ],
  },
  {
    reports: "duckdb/duckdb#12338",
    what: "files in another encoding",
    tests: [
      ["adapters/files/sample.test.ts", "other encodings become UTF-8"],
      ["core/codecs/csv/decoder.test.ts", "bytes that are no UTF-8 refuse their row alone"],
    ],
  },
  {
    reports:
      "SheetJS/sheetjs#1470, #1565, #1804, #2311, exceljs/exceljs#219, #1002, dtjohnson/xlsx-populate#200",
    what: "times of a workbook",
    later: "Excel files",
  },
  {
    reports: "apache/arrow-js#66, #77, #81, #421",
    what: "getters that bend decimals, 64 bits and far timestamps: cells are read from the columns' own memory",
    tests: [[TYPES, "docs/reference/types.md is the same after it was encoded"]],
  },
  {
    reports: "apache/arrow-rs#3123, #3228, #8247",
    what: "offsets of 32 bits overflow where rows explode",
    tests: [
      [
        "core/codecs/protobuf/compile.test.ts",
        "empty messages in a list cost what they make, and that is bounded",
      ],
      [JSON_RECORDS, "records with more items than there is room for"],
    ],
  },
  {
    reports:
      "duckdb/duckdb#1310, Meaningful-Data/vtlengine#792, dbt-labs/dbt-core#207, #8543, #11829, dbt-labs/dbt-utils#784",
    what: "what a rule means for nulls and patterns",
    later: "quality rules",
  },
  {
    reports:
      "confluentinc/confluent-kafka-javascript#405, confluentinc/schema-registry#2643, Apicurio/apicurio-registry#9739",
    what: "rules of a registry: names lost, replay that loops",
    later: "replay of dead letters",
  },
  {
    reports: "open-metadata/OpenMetadata#25828, OpenDQV/OpenDQV#176",
    what: "fresh versions of contracts",
    later: "contracts",
  },
  {
    reports: "datacontract/datacontract-cli#1344, #1347",
    what: "tombstones as rows of nulls, envelopes, bytes that are no Avro as nulls",
    tests: [
      [
        "core/pipeline/decode-stage.test.ts",
        "what is bad costs itself and keeps all of its bytes; a tombstone is neither row nor reject",
      ],
      ["core/codecs/framing/framing.test.ts", "a wrong envelope is the fault of its row alone"],
    ],
  },
];

test.each(CASES.map((c) => [c.what, c] as const))("%s", (_, { tests, later }) => {
  expect((tests === undefined) === (later !== undefined)).toBe(true);
  for (const [file, title] of tests ?? []) {
    const source = readFileSync(join(import.meta.dir, "..", file), "utf8").replaceAll(/\n \* /g, " ");
    expect([file, title, source.includes(title)]).toEqual([file, title, true]);
  }
});

/** `[[sink]] type = "kafka"`: every option of the Kafka sink, declared once. */
import * as z from "zod";
import { byteSize, durationMs, hostPort, KIB, MIB, wholeNumber } from "../../../core/config/option-types.ts";
import { registrySpec } from "../../../core/config/registry-options.ts";
import { DEFAULT_METADATA_PREFIX, METADATA_PREFIX_PATTERN } from "../../../core/records/metadata-columns.ts";
import { clientId } from "../client-id.ts";
import { kafkaSasl, kafkaTls } from "../security-spec.ts";

/** A topic's name, in which some words in braces may stand. */
const named = (...words: readonly string[]) => {
  const word = words.map((w) => `\\{${w}\\}`).join("|");
  return z.string().regex(new RegExp(`^(?!\\.{1,2}$)(?:[A-Za-z0-9._-]|${word}){1,249}$`));
};

const encodeSpec = z
  .strictObject({
    format: z
      .enum(["json", "avro", "protobuf", "json_schema"])
      .describe(
        "json: an object a row, every digit of numbers, bytes as base64, instants in ISO 8601. avro, protobuf: behind Confluent's envelope, by a schema that is registered; so is json_schema, which is json with a JSON Schema.",
      )
      .meta({ examples: ["avro"] }),
    subject: z
      .string()
      .min(1)
      .max(1024)
      .default("{topic}-value")
      .describe(
        "Name under which the registry has the schema of the rows; `{topic}` stands for the topic that is written to.",
      )
      .meta({ examples: ["orders-typed-value"], why: "What readers expect: the topic-name strategy." }),
    record: z
      .string()
      .regex(/^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$/)
      .max(1024)
      .optional()
      .describe(
        "Full name of the Avro record or the Protobuf message, title of the JSON Schema. Without it: the topic's name, with _ for what such names have not.",
      )
      .meta({ allowed: "a name such as acme.orders.Order", examples: ["acme.orders.Order"] }),
    register: z
      .boolean()
      .default(true)
      .describe(
        "Register schemas that the subject has not. false: they must be there, as they are made here.",
      )
      .meta({ why: "A table grows while it runs, and so does its schema." }),
    registry: registrySpec
      .optional()
      .describe("The registry that the schema goes to. Without it: that of `[decode]`."),
  })
  .superRefine((o, ctx) => {
    if (o.format !== "json") return;
    for (const path of ["record", "registry"] as const)
      if (o[path] !== undefined)
        ctx.addIssue({
          code: "custom",
          path: [path],
          message: "JSON has no schema here",
          params: {
            code: "config.conflict",
            allowed: "only with a format that has one: avro, protobuf, json_schema",
          },
        });
  });

export const kafkaSinkSpec = z
  .strictObject({
    bootstrap: z
      .array(hostPort())
      .min(1)
      .describe("Addresses of some brokers of the cluster that is written to.")
      .meta({ allowed: `a list of "host:port"`, examples: [["kafka-b:9092"]] }),
    tls: kafkaTls.optional().describe("TLS. Absent: plain text."),
    sasl: kafkaSasl.optional().describe("Login. Absent: none."),
    topic: named("topic")
      .describe(
        "Topic that is written to; `{topic}` stands for the name of the source's topic. Never the topic that is read.",
      )
      .meta({
        allowed: "a topic name: 1 to 249 of A-Z, a-z, 0-9, '.', '_', '-' and `{topic}`",
        examples: ["copy.{topic}"],
      }),
    create: z
      .boolean()
      .default(false)
      .describe("Make topics that are missing, as the brokers make them by default.")
      .meta({ why: "Partitions and retention are somebody's decision." }),
    partition: z
      .enum(["key", "same"])
      .default("key")
      .describe(
        "Which partition a record goes to. key: by the hash of its key, as Kafka's Java client does, and without a key to any. same: that of the number in the source, so that the order stays; the topic needs as many.",
      )
      .meta({
        examples: ["same"],
        why: "Records of a key stand together whatever the number of partitions is.",
      }),
    metadata: z
      .enum(["none", "locator", "all"])
      .default("none")
      .describe(
        "Headers that are added behind a record's own. locator: source_topic, source_partition and source_offset. all: source_transport, source_cluster, source_leader_epoch, source_timestamp_type, source_producer_id, source_producer_epoch, source_base_sequence, source_transactional (true or false), record_id (hexadecimal), ingest_ts and pipeline besides; what a record does not have is left out. Rejected records have at least the locator, with reject_stage, reject_code, reject_path, reject_message, schema_id and source_timestamp.",
      )
      .meta({ examples: ["locator"], why: "A copy is the same record." }),
    metadata_prefix: z
      .string()
      .regex(METADATA_PREFIX_PATTERN)
      .default(DEFAULT_METADATA_PREFIX)
      .describe("Prefix of the names of these headers.")
      .meta({ allowed: "1 to 32 of a-z, 0-9 and '_', not beginning with a digit" }),
    encode: encodeSpec.optional().describe("How decoded rows are written; only with `receives` = decoded."),
    compression: z
      .enum(["none", "gzip", "snappy", "lz4", "zstd"])
      .default("lz4")
      .describe("Compression of the batches.")
      .meta({ examples: ["zstd"], why: "Costs next to nothing and mostly halves what is sent and stored." }),
    compression_level: wholeNumber({ min: 1, max: 22 })
      .optional()
      .describe("Level of gzip (1 to 9, without it 6) and zstd (1 to 22, without it 3).")
      .meta({ examples: [3] }),
    batch_bytes: byteSize({ min: 1 * KIB, max: 64 * MIB })
      .default(1_000_000)
      .describe("Most bytes of a batch before compression; a larger record goes alone.")
      .meta({ unit: "bytes", examples: ["512KiB"], why: "Fits the brokers' default limit of 1 MiB." }),
    commit_bytes: byteSize({ min: 64 * KIB, max: 1024 * MIB })
      .default(16 * MIB)
      .describe("A transaction is committed when it holds so much.")
      .meta({ unit: "bytes", examples: ["16MiB"], why: "A commit's cost no longer shows." }),
    commit_interval_ms: durationMs({ min: 50, max: 600_000 })
      .default(1000)
      .describe(
        "Records are committed and acknowledged at the latest after this time; readers of committed records see them then.",
      )
      .meta({ unit: "ms", examples: ["1s"], why: "Fresh, and few enough transactions for any cluster." }),
    transaction_timeout_ms: durationMs({ min: 1000, max: 900_000 })
      .default(60_000)
      .describe(
        "A transaction that is older is ended by the brokers, and its records are read again. An outage may last so long before they are; readers of committed records wait so long for one that a killed process left behind, unless it is started again before.",
      )
      .meta({
        unit: "ms",
        examples: ["60s"],
        why: "Kafka's own default. Brokers refuse more than their transaction.max.timeout.ms (15 minutes).",
      }),
    transactional_id_prefix: z
      .string()
      .regex(/^[A-Za-z0-9._-]{1,100}$/)
      .default("twg")
      .describe(
        "Transactional ids are `<prefix>.<pipeline>.<sink>.…`: what the permission to write transactions is given for.",
      )
      .meta({ allowed: "1 to 100 of A-Z, a-z, 0-9, '.', '_' and '-'", examples: ["twg"] }),
    coverage_topic: named("pipeline", "sink")
      .default("_twg_coverage.{pipeline}.{sink}")
      .describe(
        "Compacted topic of the same cluster that says what of each stream has landed. Made where it is missing; one that is there must have cleanup.policy=compact and two partitions. Fixed once data was written.",
      )
      .meta({
        allowed: "a topic name: 1 to 249 of A-Z, a-z, 0-9, '.', '_', '-', `{pipeline}` and `{sink}`",
        why: "One of its own: another sink's open transaction holds nothing up.",
      }),
    coverage_replicas: wholeNumber({ min: 1, max: 100 })
      .optional()
      .describe("Replicas of the coverage topic when it is made.")
      .meta({ examples: [3], why: "Without it: the brokers' default.replication.factor." }),
    connect_timeout_ms: durationMs({ min: 100, max: 600_000 })
      .default(30_000)
      .describe("At the start: longest that no broker at all is reached before the job fails.")
      .meta({ unit: "ms", examples: ["30s"] }),
    request_timeout_ms: durationMs({ min: 1000, max: 600_000 })
      .default(30_000)
      .describe("Longest that an answer may take.")
      .meta({ unit: "ms", examples: ["30s"], why: "Kafka's own default." }),
    client_id: clientId,
    response_max_bytes: byteSize({ min: MIB, max: 2047 * MIB })
      .default(64 * MIB)
      .describe("A response larger than this is refused before memory is taken for it.")
      .meta({ unit: "bytes", examples: ["64MiB"] }),
  })
  .superRefine((o, ctx) => {
    const issue = (path: string, message: string, allowed: string) =>
      ctx.addIssue({ code: "custom", path: [path], message, params: { code: "config.conflict", allowed } });
    if (o.commit_interval_ms * 2 > o.transaction_timeout_ms)
      issue(
        "commit_interval_ms",
        "the brokers would end the transaction before",
        "at most half of transaction_timeout_ms",
      );
    if (o.compression_level === undefined) return;
    if (o.compression !== "gzip" && o.compression !== "zstd")
      issue("compression_level", `${o.compression} has none`, "only with gzip and zstd");
    else if (o.compression === "gzip" && o.compression_level > 9)
      issue("compression_level", "gzip has no such level", "1 to 9");
  });

export type KafkaSinkOptions = z.output<typeof kafkaSinkSpec>;

/** What of `[decode]`, the sinks of its rows and those of its rejects is fine alone and wrong together. */
import type { KafkaSinkOptions } from "../adapters/kafka/sink/spec.ts";
import type { KafkaSourceOptions } from "../adapters/kafka/spec.ts";
import { TopicPattern } from "../adapters/kafka/topic-pattern.ts";
import type { CheckedConfig } from "../core/config/check.ts";
import { type DecodeSection, payloadPlan } from "../core/config/decode-options.ts";
import { type ConfigPath, type Problem, pathText, quoted } from "../core/config/problem.ts";

type Say = (code: Problem["code"], path: ConfigPath, seen: string, allowed: string, hint: string) => Problem;

export function unfitToDecode(config: CheckedConfig): Problem[] {
  const say: Say = (code, path, seen, allowed, hint) => ({
    ...{ code, file: config.file, line: config.lineOf(path), path: pathText(path) },
    ...{ seen, allowed, hint },
  });
  const derived = [...config.sinks.entries()].filter(([, s]) => s.receives !== "raw");
  const prefix = derived[0]?.[1].metadata_prefix;
  return [
    ...derived.flatMap(([at, sink]) => [
      ...unfitRole(config, sink, at, say),
      ...unfitPlace(sink, at, prefix, say),
    ]),
    ...[...config.sinks.entries()].flatMap(([at, sink]) => unfitEncode(config, sink, at, say)),
    ...(config.decode === null ? [] : unfitDecode(config, config.decode, say)),
    ...(config.decode === null ? [] : unfitTopics(config, config.decode, say)),
    ...unfitKeys(config, prefix, say),
  ];
}

type Sink = CheckedConfig["sinks"][number];

function unfitRole({ decode, source }: CheckedConfig, sink: Sink, at: number, say: Say): Problem[] {
  const path = ["sink", at, "receives"];
  const seen = quoted(String(sink.receives));
  if (source.type === "files")
    return [say("config.conflict", path, seen, quoted("raw"), "rows of files are typed as they are")];
  if (sink.role === "primary_raw")
    return [
      say("config.conflict", path, seen, quoted("raw"), "the primary sink keeps the records as they came"),
    ];
  if (decode === null)
    return [say("config.conflict", path, seen, "a [decode] section", "it says what payloads are")];
  return [];
}

function unfitPlace(sink: Sink, at: number, prefix: unknown, say: Say): Problem[] {
  const later = (key: string, seen: unknown, allowed: string, hint: string) =>
    say("config.not_in_this_version", ["sink", at, key], quoted(String(seen)), allowed, hint);
  const problems: Problem[] = [];
  if (sink.type === "parquet" && String(sink.path).includes("{"))
    problems.push(later("path", sink.path, "a path without braces", "a table is one folder"));
  if (sink.type === "postgres" && sink.mode === "upsert")
    problems.push(later("mode", "upsert", quoted("append"), "decoded rows are added in this version"));
  if (sink.metadata_prefix !== prefix) {
    const hint = "one prefix is reserved in payloads";
    const seen = quoted(String(sink.metadata_prefix));
    problems.push(
      say("config.conflict", ["sink", at, "metadata_prefix"], seen, quoted(String(prefix)), hint),
    );
  }
  return problems;
}

/** How decoded rows become records of a topic. */
function unfitEncode({ decode }: CheckedConfig, sink: Sink, at: number, say: Say): Problem[] {
  if (sink.type !== "kafka") return [];
  const encode = sink.encode as KafkaSinkOptions["encode"];
  const path = ["sink", at, "encode"];
  if (sink.receives !== "decoded")
    return encode === undefined
      ? []
      : [
          say(
            "config.conflict",
            path,
            "a table",
            'only with receives = "decoded"',
            "records go as they came",
          ),
        ];
  const problems: Problem[] = [];
  if (String(sink.topic).includes("{"))
    problems.push(
      say(
        "config.not_in_this_version",
        ["sink", at, "topic"],
        quoted(String(sink.topic)),
        "a topic without braces",
        "a table is one topic",
      ),
    );
  if (encode === undefined) {
    const allowed = "`format`: json, avro, protobuf or json_schema";
    problems.push(say("config.missing", path, "", allowed, "what a row is as a value"));
  } else if (encode.format !== "json" && encode.registry === undefined && decode?.registry === undefined) {
    const allowed = "a registry here or in [decode]";
    problems.push(
      say("config.missing", [...path, "registry"], "", allowed, "readers look the schema up there"),
    );
  }
  return problems;
}

/** What is said of a topic that nobody reads is a slip: the topic that was meant would be decoded by the section. */
function unfitTopics({ source }: CheckedConfig, { topic = [] }: DecodeSection, say: Say): Problem[] {
  const { topics, topics_pattern: pattern } = source as unknown as Pick<
    KafkaSourceOptions,
    "topics" | "topics_pattern"
  >;
  const matcher = pattern === undefined ? null : new TopicPattern(pattern);
  return [...topic.entries()]
    .filter(([, { name }]) => (matcher === null ? topics?.includes(name) === false : !matcher.matches(name)))
    .map(([at, { name }]) =>
      say(
        "config.conflict",
        ["decode", "topic", at, "name"],
        quoted(name),
        matcher === null
          ? `one of ${topics!.map(quoted).join(", ")}`
          : `a name that ${quoted(pattern!)} matches`,
        "the source does not read it",
      ),
    );
}

function unfitDecode({ sinks }: CheckedConfig, decode: DecodeSection, say: Say): Problem[] {
  const problems: Problem[] = [];
  const rejecting = decode.on_error === "reject" || (decode.topic ?? []).some((t) => t.on_error === "reject");
  const has = (receives: string) => sinks.some((s) => s.receives === receives);
  if (has("decoded") && rejecting && !has("rejected")) {
    const allowed = `a sink with receives = "rejected", or on_error = "fail"`;
    const hint = "records that cannot be decoded need a place";
    problems.push(say("config.missing", ["decode", "on_error"], "", allowed, hint));
  }
  const fixed = sinks.findIndex(
    (s) => s.type === "postgres" && s.receives === "decoded" && s.create !== true,
  );
  if (fixed >= 0 && decode.infer.new_fields === "add" && infers(decode)) {
    const allowed = `"reject", or create = true on sink[${fixed}]`;
    const hint = "a record with a field more would stop a table that may not grow";
    problems.push(say("config.conflict", ["decode", "infer", "new_fields"], quoted("add"), allowed, hint));
  }
  return problems;
}

/** Whether columns of a topic are learned from its records. */
function infers(decode: DecodeSection): boolean {
  if (decode.registry !== undefined || decode.schema_dir !== undefined) return false;
  const topics = ["", ...(decode.topic ?? []).map((t) => t.name)];
  return topics.some((topic) => {
    const plan = payloadPlan(decode, topic, "value");
    return plan !== null && plan.format === "json" && plan.schemaFile === null;
  });
}

/** Columns of keys are no metadata. */
function unfitKeys({ decode }: CheckedConfig, prefix: unknown, say: Say): Problem[] {
  if (typeof prefix !== "string") return [];
  const places = [
    { path: ["decode", "key", "prefix"], own: decode?.key?.prefix },
    ...(decode?.topic ?? []).map((t, i) => ({
      path: ["decode", "topic", i, "key", "prefix"],
      own: t.key?.prefix,
    })),
  ];
  return places.flatMap(({ path, own }) => {
    if (own === undefined || !(own.startsWith(prefix) || prefix.startsWith(own))) return [];
    const allowed = `a prefix that ${quoted(prefix)} does not begin with, nor it with that`;
    return [say("config.conflict", path, quoted(own), allowed, "metadata has it")];
  });
}

/**
 * Where duplicates can be left out. Whether a record is one must follow from the records alone, so that live ingest, recovery
 * and a restart say the same; where something else has a say, it is refused (decision 0038).
 */
import type { KafkaSourceOptions } from "../adapters/kafka/spec.ts";
import type { CheckedConfig } from "../core/config/check.ts";
import { type DecodeSection, payloadPlan } from "../core/config/decode-options.ts";
import { type ConfigPath, type Problem, pathText, quoted } from "../core/config/problem.ts";

type Say = (code: Problem["code"], path: ConfigPath, seen: string, allowed: string, hint: string) => Problem;

export function unfitDedup(config: CheckedConfig): Problem[] {
  const say: Say = (code, path, seen, allowed, hint) => ({
    ...{ code, file: config.file, line: config.lineOf(path), path: pathText(path) },
    ...{ seen, allowed, hint },
  });
  const dropping = [...config.sinks.entries()].filter(([, s]) => s.duplicates === "drop");
  if (dropping.length === 0) return [];
  const { decode } = config;
  return [
    ...dropping.flatMap(([at, sink]) => unfitSink(sink, at, say)),
    ...unfitRaw(config, say),
    ...(decode === null ? [] : unfitSchemas(config, decode, say)),
  ];
}

type Sink = CheckedConfig["sinks"][number];

function unfitSink(sink: Sink, at: number, say: Say): Problem[] {
  const path = ["sink", at, "duplicates"];
  const seen = quoted("drop");
  if (sink.receives !== "decoded") {
    const hint = "raw and rejected records have no natural key";
    return [say("config.conflict", path, seen, 'only with receives = "decoded"', hint)];
  }
  if (sink.type === "kafka") {
    const hint = "records of topics are encoded as they come";
    return [say("config.not_in_this_version", path, seen, "a sink of type parquet or postgres", hint)];
  }
  return [];
}

function unfitRaw({ sinks, sink: primary }: CheckedConfig, say: Say): Problem[] {
  if (primary.type === "parquet") return [];
  const at = sinks.indexOf(primary);
  const hint = "the records of a window are read from raw again when a partition begins";
  const allowed = "a primary sink of type parquet, beside sinks without duplicates";
  return [
    say("config.not_in_this_version", ["sink", at, "type"], quoted(String(primary.type)), allowed, hint),
  ];
}

/** Schemas that come and go would change which records are rows. */
function unfitSchemas({ source }: CheckedConfig, decode: DecodeSection, say: Say): Problem[] {
  const problems: Problem[] = [];
  const refuse = (path: ConfigPath, seen: string, allowed: string, hint: string) =>
    problems.push(say("config.not_in_this_version", path, seen, allowed, hint));
  const files = "schemas in `schema_file`";
  const moves = "what it says of a record may change, and with it which records are duplicates";
  if (decode.registry !== undefined) refuse(["decode", "registry"], "a registry", files, moves);
  if (decode.schema_dir !== undefined)
    refuse(["decode", "schema_dir"], quoted(decode.schema_dir), files, moves);
  for (const { topic, path } of topicsOf(decode, source)) {
    const value = payloadPlan(decode, topic, "value");
    if (value?.schemaFile === null) {
      const hint = "what payloads are written by must not change with the day";
      problems.push(say("config.missing", [...path, "schema_file"], "", "a schema", hint));
    }
    const binary = value?.format === "avro" || value?.format === "protobuf";
    if (binary && value.readerSchema === null) {
      const hint = "duplicates are records with one natural key, which a data contract declares";
      problems.push(say("config.missing", [...path, "reader_schema"], "", "a data contract", hint));
    }
    const key = payloadPlan(decode, topic, "key");
    if (key !== null && key.format !== "text" && key.schemaFile === null)
      refuse([...path, "key", "format"], quoted(key.format), '"text", or a `schema_file`', moves);
  }
  return problems;
}

interface TopicPath {
  readonly topic: string;
  readonly path: ConfigPath;
}

/** Each place that says what payloads are, with a topic of it. */
function topicsOf(decode: DecodeSection, source: CheckedConfig["source"]): readonly TopicPath[] {
  const { topics } = source as unknown as Pick<KafkaSourceOptions, "topics">;
  const own = (decode.topic ?? []).map(({ name: topic }, i) => ({ topic, path: ["decode", "topic", i] }));
  const other = topics === undefined ? "" : topics.find((t) => !own.some((o) => o.topic === t));
  return other === undefined ? own : [{ topic: other, path: ["decode"] }, ...own];
}

/** What running a configuration will do, in sentences for `config explain`: topic and text. */
import { resolve } from "node:path";
import type { FilesSource } from "../adapters/catalogue.ts";
import { coverageFolderOf } from "../adapters/coverage/local.ts";
import { filledName } from "../adapters/kafka/sink/settings.ts";
import { rootOf } from "../adapters/parquet/template.ts";
import { formatBytes, formatMs } from "../core/config/option-types.ts";
import { hostPortText } from "../core/config/render.ts";
import { defaultLanes, LISTEN_OFF, RECOVERY_BESIDE_BYTES_PER_S } from "../core/config/sections.ts";
import type { PipelineConfig, SinkOf } from "./config-file.ts";
import { encodingText } from "./kafka-encode.ts";
import { commitBytesOf, recoveryBytes, sinkMemory } from "./sink-memory.ts";

export type Plan = readonly (readonly [topic: string, text: string])[];

export function planOf(config: PipelineConfig, processors: number): Plan {
  if (config.source.type === "files") return filesPlan(config);
  if (config.pipeline.role === "recovery") return recoveryPlan(config);
  return [
    ["source", sourceText(config)],
    ["start", startText(config)],
    ["lanes", lanesText(config, processors)],
    ["memory", memoryText(config, processors)],
    ["raw", rawText(config, processors)],
    ["coverage", coverageText(config)],
    ["delivery", deliveryText(config)],
    ...besidePlan(config),
    ...duplicatesPlan(config),
    ["recovery", recoveryText(config)],
    ["http", httpText(config)],
  ];
}

const besidePlan = (config: PipelineConfig): Plan =>
  config.sinks.flatMap((s) => (s.role === "secondary" ? [[s.name, besideText(config, s)] as const] : []));

/** Of a process that reads no source. */
function recoveryPlan(config: PipelineConfig): Plan {
  const { sink } = config;
  const raw = sink.type === "parquet" ? `files under ${resolve(sink.path)}` : `a sink of type ${sink.type}`;
  return [
    ["source", `raw, which is ${raw}; ${config.source.type} is not read`],
    [
      "memory",
      `about base, and while something is missing ${formatBytes(recoveryBytes(config))} more (2 x recovery.max_bytes, and hold_bytes of each sink)`,
    ],
    ["coverage", coverageText(config)],
    ...besidePlan(config),
    ["recovery", recoveryText(config)],
    ["http", httpText(config)],
  ];
}

function sourceText({ source }: PipelineConfig): string {
  const brokers = source.bootstrap.map(hostPortText).join(", ");
  const tls = source.tls?.enabled === true ? ", TLS" : ", no TLS";
  const sasl = source.sasl === undefined ? "" : `, SASL ${source.sasl.mechanism}`;
  const what = source.isolation === "read_committed" ? "committed records only" : "uncommitted records too";
  const topics =
    source.topics === undefined
      ? `topics that match ${source.topics_pattern}, also those to come`
      : `topics ${source.topics.join(", ")}`;
  return `${source.type} at ${brokers}${tls}${sasl}; ${topics}; ${what}`;
}

function startText({ source }: PipelineConfig): string {
  const at = typeof source.start === "string" ? source.start : new Date(source.start.timestamp).toISOString();
  if (source.group === undefined) return `where coverage ends; a partition without any begins at ${at}`;
  return `where the commits of group ${source.group} and coverage end; a partition with neither begins at ${at}`;
}

function lanesText({ pipeline }: PipelineConfig, processors: number): string {
  if (pipeline.lanes !== undefined) return `${pipeline.lanes} worker threads, as configured`;
  return `${defaultLanes(processors)} worker threads: one per processor (${processors} here), at most 4`;
}

function memoryText(config: PipelineConfig, processors: number): string {
  const { pipeline } = config;
  const twice = formatBytes(2 * pipeline.max_bytes);
  const sink = sinkMemory(config, pipeline.lanes ?? defaultLanes(processors));
  const beside = sink === null ? "" : `; besides ${sink.text}`;
  return `about base + ${twice} (2 x pipeline.max_bytes), whatever the lag${beside}`;
}

function rawText({ pipeline, sink }: PipelineConfig, processors: number): string {
  if (sink.type === "postgres") {
    const bytes = commitBytesOf(pipeline, sink, pipeline.lanes ?? defaultLanes(processors));
    const when = `at ${formatBytes(bytes)} or after ${formatMs(sink.commit_interval_ms)}`;
    const what = sink.mode === "upsert" ? "the latest record of each key in" : "rows of";
    return `${what} ${sink.table}${onceText(sink)} by COPY; each lane commits ${when}`;
  }
  if (sink.type === "kafka") {
    const bytes = commitBytesOf(pipeline, sink, pipeline.lanes ?? defaultLanes(processors));
    const when = `at ${formatBytes(bytes)} or after ${formatMs(sink.commit_interval_ms)}`;
    const where =
      sink.partition === "same" ? "the partition of the same number" : "the partition of their key";
    return `records as they are into topic ${sink.topic}, ${where}, ${sink.compression}; each lane commits ${when}`;
  }
  const size = formatBytes(sink.roll_bytes);
  const codec =
    sink.compression === "none" ? "uncompressed" : `${sink.compression} level ${sink.compression_level}`;
  const closed = `a file is closed at ${size} or after ${formatMs(sink.roll_interval_ms)}`;
  return `${sink.type} files, ${codec}, under ${resolve(sink.path)}; ${closed}`;
}

function coverageText({ pipeline, sink }: PipelineConfig): string {
  const kept = "losing this machine's state_dir loses nothing";
  if (sink.type === "postgres") {
    return (
      `in the schema ${sink.state_schema} of the same database: rows and the record of what they hold ` +
      `become durable in one commit, and ${kept}`
    );
  }
  if (sink.type === "kafka") {
    const topic = filledName(sink.coverage_topic, { pipeline: pipeline.name, sink: sink.name });
    return (
      `in the compacted topic ${topic} of the cluster that is written to: records and the record of what they ` +
      `stand for become visible in one transaction, and ${kept}`
    );
  }
  const folder = resolve(coverageFolderOf(rootOf(sink.path), pipeline.name, sink.name));
  return `in ${folder}, beside the files: whoever has the files has the record of what they hold, and ${kept}`;
}

function deliveryText({ source, sink }: PipelineConfig): string {
  const acknowledged =
    source.group === undefined
      ? "no offsets are committed"
      : `offsets are committed to group ${source.group} last`;
  const how =
    sink.type === "postgres"
      ? "transactional, every record exactly once: rows, receipt and positions are one transaction, an answer to " +
        "COMMIT that is lost is settled by the receipt"
      : sink.type === "kafka"
        ? "transactional, every record exactly once for readers of committed records: records and positions are one " +
          "transaction, whose end is looked up where its answer is lost"
        : "two-phase, every record exactly once: a file is durable under a temporary name, its intent is recorded, " +
          "it is renamed, its positions are covered";
  return `${how}; ${acknowledged}`;
}

function besideText(config: PipelineConfig, sink: PipelineConfig["sink"]): string {
  const where = placeText(config, sink);
  const held = formatBytes(sink.hold_bytes);
  return (
    `secondary: ${WHAT[sink.receives]} in ${where}, each visible once it is covered in the primary sink; a lane holds at most ` +
    `${held} for it and goes on without it where that is not enough`
  );
}

const WHAT = {
  raw: "the raw records",
  decoded: "decoded rows",
  rejected: "records that cannot be decoded",
} as const;

function placeText(config: PipelineConfig, sink: PipelineConfig["sink"]): string {
  if (sink.type === "parquet") return `files under ${resolve(sink.path)}`;
  return sink.type === "postgres"
    ? `rows of ${sink.table}${onceText(sink)}`
    : `topic ${sink.topic}${encodingText(config, sink)}`;
}

function onceText({
  row_key,
  metadata_prefix,
}: Pick<SinkOf<"postgres">, "row_key" | "metadata_prefix">): string {
  return row_key
    ? ` (once by a unique index on ${metadata_prefix}record_id: what is there already is compared)`
    : "";
}

function duplicatesPlan({ sinks, dedup, pipeline }: PipelineConfig): Plan {
  const dropping = sinks.filter((s) => s.duplicates === "drop").map((s) => s.name);
  if (dropping.length === 0) return [];
  const apart = dedup.window_ms === undefined ? "" : `, at most ${formatMs(dedup.window_ms)} apart`;
  const lanes = pipeline.lanes === undefined ? "each lane keeps" : `each of ${pipeline.lanes} lanes keeps`;
  const text =
    `of records with one natural key within ${dedup.window_records} positions of a partition${apart} the first is a row of ` +
    `${dropping.join(", ")}; what a window holds is read from raw when a partition begins, and ${lanes} at most ${formatBytes(dedup.max_bytes)} of keys`;
  return [["duplicates", text]];
}

function recoveryText({ sinks, sink, pipeline, recovery, decode }: PipelineConfig): string {
  if (sinks.length === 1) return "none: with one sink, which is raw itself, there is nothing to recover";
  const readable = sink.type === "parquet" || (sink.type === "postgres" && sink.mode === "append");
  if (!readable) {
    const what =
      sink.type === "postgres" ? "a table of the latest record of each key" : `a sink of type ${sink.type}`;
    return `none: this version reads raw again from Parquet files and from tables to which rows are added, and raw is in ${what}`;
  }
  const by = {
    ingest: "by `twg recover`, or a process with role recovery",
    recovery: "by this process, which does not read the source and holds nothing while no sink is behind",
    both: "by this process, beside live records, for which it waits while they fall behind",
  }[pipeline.role];
  const { max_bytes_per_s: bytes, max_records_per_s: records, window_bytes } = recovery;
  const rate = [
    bytes === undefined
      ? `${formatBytes(RECOVERY_BESIDE_BYTES_PER_S)}/s of raw while a pipeline writes raw, as fast as it goes else`
      : `${formatBytes(bytes)}/s of raw`,
    ...(records === undefined ? [] : [`${records} records/s`]),
  ].join(", ");
  const rows =
    sink.type === "postgres"
      ? `; rows are read by an index of ${sink.table} on topic, partition and offset, which has to be there`
      : "";
  const plans =
    sink.type === "postgres" && decode !== null
      ? "; they are decoded by the configuration of now, since beside a table none of their time is kept"
      : "";
  return `what a secondary sink misses is a gap, which \`twg inspect coverage\` shows; it is filled ${by}: windows of ${formatBytes(window_bytes)}, ${rate}${rows}${plans}`;
}

function httpText({ observability }: PipelineConfig): string {
  if (observability.listen === LISTEN_OFF) return "off";
  const guards = [
    observability.tls === undefined ? "" : "TLS",
    observability.token === undefined ? "" : "bearer token",
  ];
  const guarded = guards.filter((g) => g !== "").join(" and ");
  return `/live /ready /health /metrics /stats and the status page at ${observability.listen}${guarded === "" ? "" : `, ${guarded}`}`;
}

/** Of a batch job `twg batch --dry-run` says more: it looks at the files. */
function filesPlan({ source, sink }: PipelineConfig): Plan {
  const { paths } = source as unknown as FilesSource;
  const where = sink.type === "parquet" ? sink.path : sink.type;
  return [
    ["source", `files ${paths.join(", ")}, each landed once, by \`twg batch\``],
    ["sink", `${sink.type} in ${where}`],
    ["files", "`twg batch -c FILE --dry-run` looks at them and prints the whole plan"],
  ];
}

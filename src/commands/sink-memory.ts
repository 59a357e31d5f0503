/** What sinks hold in memory beside `pipeline.max_bytes`, which counts what was read and not yet written: bounded as well. */
import { rootOf } from "../adapters/parquet/template.ts";
import { isBucketUrl } from "../core/config/bucket-url.ts";
import { formatBytes } from "../core/config/option-types.ts";
import type { PipelineConfig, SinkOf } from "./config-file.ts";

/** Of an upload: the part that gathers and two under way. */
const PARTS_HELD = 3;
/** Of a lane's producer; as much may wait before it. */
const KAFKA_BUFFER_BYTES = 8 * 1024 * 1024;
/** As of the option's spec, for a bucket without a section of its own. */
const PART_BYTES = 8 * 1024 * 1024;

type Sized = Pick<SinkOf<"postgres" | "kafka">, "commit_bytes">;

/** Bytes of rows at which a lane commits: all lanes together hold no more than `max_bytes` of them. */
export function commitBytesOf(
  pipeline: Pick<PipelineConfig["pipeline"], "max_bytes">,
  sink: Sized,
  lanes: number,
): number {
  return Math.min(sink.commit_bytes, Math.floor(pipeline.max_bytes / lanes));
}

export interface SinkMemory {
  /** With one file open in each lane. */
  readonly bytes: number;
  /** For people. */
  readonly text: string;
}

type Configured = Pick<PipelineConfig, "pipeline" | "sink" | "sinks" | "recovery">;

/** Of all sinks, and of recovery beside live records. Null: only what stands with the options of the primary sink's files. */
export function sinkMemory(config: Configured, lanes: number): SinkMemory | null {
  const sinks = ingestMemory(config, lanes);
  if (config.pipeline.role !== "both" || config.sinks.length === 1) return sinks;
  const bytes = recoveryBytes(config);
  const text = `recovery, while something is missing: about ${formatBytes(bytes)} (2 x recovery.max_bytes, and hold_bytes of each sink)`;
  return sinks === null ? { bytes, text } : { bytes: sinks.bytes + bytes, text: `${sinks.text}; ${text}` };
}

/** Of recovery while it is at work, in one lane. */
export function recoveryBytes({ sinks, recovery }: Pick<PipelineConfig, "sinks" | "recovery">): number {
  const held = sinks.reduce((n, s) => n + (s.role === "secondary" ? s.hold_bytes : 0), 0);
  return 2 * recovery.max_bytes + held;
}

function ingestMemory(config: Configured, lanes: number): SinkMemory | null {
  const primary = primaryMemory(config, lanes);
  const beside = config.sinks.filter((s) => s.role === "secondary");
  if (beside.length === 0) return primary;
  const bytes = lanes * beside.reduce((n, s) => n + s.hold_bytes, 0);
  const text = `secondary sinks: up to ${formatBytes(bytes)} (${lanes} lanes x hold_bytes of each)`;
  if (primary === null) return { bytes, text };
  return { bytes: primary.bytes + bytes, text: `${primary.text}; ${text}` };
}

function primaryMemory(
  { pipeline, sink }: Pick<PipelineConfig, "pipeline" | "sink">,
  lanes: number,
): SinkMemory | null {
  if (sink.type === "postgres") {
    const each = commitBytesOf(pipeline, sink, lanes);
    const why = each < sink.commit_bytes ? "max_bytes / lanes, less than commit_bytes" : "commit_bytes";
    const bytes = lanes * each;
    return { bytes, text: `rows until they are committed: ${formatBytes(bytes)} (${lanes} lanes x ${why})` };
  }
  if (sink.type === "kafka") {
    const bytes = lanes * 2 * KAFKA_BUFFER_BYTES;
    const each = formatBytes(KAFKA_BUFFER_BYTES);
    return {
      bytes,
      text: `records until they are sent: ${formatBytes(bytes)} (${lanes} lanes x 2 x ${each})`,
    };
  }
  if (!isBucketUrl(rootOf(sink.path))) return null;
  const file = PARTS_HELD * (sink.s3?.part_bytes ?? PART_BYTES);
  const most = formatBytes(lanes * sink.max_open_files * file);
  const each = `${formatBytes(file)} for each open file (${PARTS_HELD} x part_bytes)`;
  const all = `${most} where all ${lanes} lanes have max_open_files of that size`;
  return { bytes: lanes * file, text: `upload parts: up to ${each}; ${all}` };
}

/** Joins the configuration of a batch job to its threads and its sink. */
import { randomBytes } from "node:crypto";
import { availableParallelism } from "node:os";
import { BLOCK_BYTES, digestOf, EMPTY_DIGEST } from "../adapters/files/blocks.ts";
import { spawnThread } from "../adapters/lanes/worker-host.ts";
import { systemClock } from "../adapters/system/clock.ts";
import { defaultLanes } from "../core/config/sections.ts";
import { BatchRunner } from "../core/pipeline/batch-runner.ts";
import type {
  FromBatchLane,
  FromCutter,
  RejectSample,
  TableSpec,
  ToBatchLane,
  ToCutter,
} from "../core/ports/batch-lane.ts";
import type { Observer } from "../core/ports/observer.ts";
import type { BatchConfig } from "./batch-config.ts";
import { bucketAccess } from "./batch-inputs.ts";
import type { BatchLaneInit, CutterInit } from "./batch-lane.ts";
import type { BatchPlan } from "./batch-plan.ts";
import { parquetParts } from "./parquet-parts.ts";
import { postgresTableParts } from "./postgres-parts.ts";
import { type BatchSinkParts, HEARTBEAT_MS, type PointHook, type SinkContext } from "./sink-parts.ts";

/** An engine encodes one batch at a time: its columns, their pages, and room. */
const ENGINE_GROUPS = 8;
const ENGINE_LEAST = 256 * 1024 * 1024;

export function lanesOfBatch(config: BatchConfig): number {
  return config.pipeline.lanes ?? defaultLanes(availableParallelism());
}

export interface BatchParts {
  readonly runner: BatchRunner;
  prepare(): Promise<void>;
}

export function buildBatch(
  config: BatchConfig,
  plan: BatchPlan,
  observer: Observer,
  hook: PointHook | null,
  onSample: (sample: RejectSample) => void,
): BatchParts {
  const instance = randomBytes(8).toString("hex");
  const lanes = lanesOfBatch(config);
  const { source, sink } = config;
  const ranked = sink.type === "postgres" && sink.mode === "upsert";
  const table: TableSpec = {
    schema: plan.schema,
    metadata: source.metadata,
    prefix: sink.metadata_prefix,
    pipeline: config.pipeline.name,
    ranked,
  };
  const buckets = bucketAccess(source.s3, process.env);
  const parts = sinkParts(config, table, { instance, shared: false, lanes, observer, hook, secondary: null });
  const laneInit = (lane: number): BatchLaneInit => ({
    t: "batch",
    lane,
    instance,
    table,
    sink: parts.lane(),
    engineBytes: engineBytesOf(sink),
    maxRejects: source.max_rejects,
    maxBlockBytes: source.max_record_bytes,
    buckets,
  });
  const cutterInit: CutterInit = {
    t: "cutter",
    options: { pieceBytes: source.piece_bytes, maxRecordBytes: source.max_record_bytes },
    buckets,
  };
  const runner = new BatchRunner(
    plan.works,
    {
      sink: sink.name,
      lanes,
      credits: 2 * lanes + 1,
      heartbeatMs: HEARTBEAT_MS,
      maxRejects: source.max_rejects,
      ranked,
      blockBytes: BLOCK_BYTES,
      columnsOf: ({ layout }) => (layout.format === "csv" ? layout.columns.length : 0),
    },
    {
      clock: systemClock,
      coverage: parts.coverage,
      committer: parts.committer,
      sweep: parts.sweep,
      spawnLane: (lane) => spawnThread<ToBatchLane, FromBatchLane>(`lane ${lane}`, laneInit(lane)),
      spawnCutter: () => spawnThread<ToCutter, FromCutter>("cutter", cutterInit),
      digestOf: (hashes) => (hashes.length === 0 ? EMPTY_DIGEST : digestOf(hashes)),
      observer,
      onSample,
    },
  );
  return { runner, prepare: () => parts.prepare() };
}

function engineBytesOf(sink: BatchConfig["sink"]): number {
  return sink.type === "parquet" ? Math.max(ENGINE_LEAST, ENGINE_GROUPS * sink.row_group_bytes) : 0;
}

function sinkParts(config: BatchConfig, table: TableSpec, context: SinkContext): BatchSinkParts {
  const { sink } = config;
  if (sink.type === "postgres") return postgresTableParts(config, sink, context, table);
  const { lane, renew: _, ...parts } = parquetParts(config, sink, context);
  return { ...parts, lane: () => lane };
}

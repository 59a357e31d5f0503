/** Joins a configuration to the adapters: everything that a running pipeline is made of. */
import { randomBytes } from "node:crypto";
import { kafkaSettings } from "../adapters/kafka/settings.ts";
import { KafkaSource } from "../adapters/kafka/source.ts";
import { spawnWorkerLane, type Thread } from "../adapters/lanes/worker-host.ts";
import { createNet } from "../adapters/net/net.ts";
import { systemChance } from "../adapters/system/chance.ts";
import { systemClock } from "../adapters/system/clock.ts";
import { systemSaslCrypto } from "../adapters/system/sasl-crypto.ts";
import type { DecodeSection } from "../core/config/decode-options.ts";
import { defaultLanes, RAW_BATCH_BYTES, RAW_BATCH_RECORDS } from "../core/config/sections.ts";
import { Budget, type Owner } from "../core/delivery/budget.ts";

import { Ledger } from "../core/delivery/ledger.ts";
import { asFailure, type Failure } from "../core/failure/failure.ts";
import { BufferPool } from "../core/pipeline/buffer-pool.ts";
import { Runner } from "../core/pipeline/runner.ts";
import { PRIMARY, type SecondarySpec } from "../core/pipeline/secondary-parts.ts";
import type { FromLane, LanePort, ToLane } from "../core/ports/lane.ts";
import type { Observer } from "../core/ports/observer.ts";
import { admissionOf } from "./admission-parts.ts";
import type { ResolvedConfig } from "./config-file.ts";
import { crashHook, crashPlan } from "./crash-hook.ts";
import { DedupAnswers, type DedupService, dedupService, dropsDuplicates } from "./dedup-service.ts";
import { kafkaSinkParts } from "./kafka-sink-parts.ts";
import type { LaneConfig, LaneDecode, LaneDedup, LaneSink, RenewSink } from "./lane-config.ts";
import type { AnswerDedup, AskDedup } from "./lane-dedup-asks.ts";
import { type AnswerSchema, type AskSchema, answerSchema, type SchemaService } from "./lane-schemas.ts";
import { type AnswerTable, type AskTable, KeptTables } from "./lane-tables.ts";
import { naturalKeyOf, topicsWithKeys } from "./natural-key-check.ts";
import { isOfOneFile } from "./one-file.ts";
import { parquetParts } from "./parquet-parts.ts";
import { epochsOf, readOnce } from "./plan-epochs.ts";
import { growthOf, postgresParts } from "./postgres-parts.ts";
import { checkSchemaFiles } from "./schema-file-check.ts";
import { schemaService } from "./schema-service.ts";
import { HEARTBEAT_MS, isShared, type PointHook, type SinkContext, type SinkParts } from "./sink-parts.ts";
import { VERSION } from "./version.ts";

/** Above the largest batch that a broker takes with any sane setting. */
const MAX_DECOMPRESSED_BYTES = 512 * 1024 * 1024;

/** A row has some 250 bytes beside the record. */
const COPY_BATCH_RECORDS = 16_384;
const COPY_BATCH_BYTES = 1024 * 1024;

export interface StreamFlags {
  readonly acceptGap: boolean;
  readonly untilCaughtUp: boolean;
}

export interface StreamParts {
  readonly runner: Runner;
  readonly source: KafkaSource;
  readonly budget: Budget;
  readonly lanes: number;
  /** Proves that the sink can be written, before anything is fetched. */
  prepare(): Promise<void>;
  /** Takes over secrets that were read again. True if any that matters to connections changed. */
  renew(config: ResolvedConfig): boolean;
}

export function lanesOf(config: ResolvedConfig): number {
  return config.pipeline.lanes ?? defaultLanes(navigator.hardwareConcurrency);
}

export function buildStream(
  config: ResolvedConfig,
  flags: StreamFlags,
  observer: Observer,
  hook: PointHook | null,
): StreamParts {
  const { pipeline, source: from } = config;
  const instance = randomBytes(8).toString("hex");
  const lanes = lanesOf(config);
  const lives = new Map<number, string>();
  const laneLife = (lane: number) => `${lives.get(lane) ?? ""}-l${lane}`;
  const shared = isShared(from);
  const sink = sinkParts(config, config.sink, {
    instance,
    shared,
    lanes,
    laneLife,
    observer,
    hook,
    secondary: null,
  });
  const read = readOnce();
  const schemas = schemaService(config, sink, { instance, observer }, { read });
  const dedup = dedupService(config, schemas, { instance, live: true });
  const begins = epochsOf(config, sink.plans, { instance, read, observer });
  const beside = besideParts(config, { instance, shared, lanes, laneLife, observer }).map((b): Beside => {
    if (begins === null || b.sink.receives === "raw") return b;
    const hook = crashHook(crashPlan(process.env.TWG_CRASH_AT, b.spec.name));
    const distinct = b.sink.duplicates === "drop";
    return { ...b, spec: { ...b.spec, begin: begins(b.spec.name, hook, distinct ? dedup : null) } };
  });
  let spawned = 0;
  const threads = new Map<number, LaneThread>();
  const tables = keptTables(beside);
  const hooked = hook === null ? {} : { hook };
  const source = new KafkaSource(kafkaSettings(from, VERSION), {
    net: createNet(systemClock),
    clock: systemClock,
    chance: systemChance,
    crypto: systemSaslCrypto,
    observer,
  });
  const budget: Budget = new Budget({
    maxBytes: pipeline.max_bytes,
    owners: Array.from({ length: lanes }, (_, i) => i),
    onChange: watchBudget(observer, pipeline.max_bytes, () => budget.used),
  });
  const runner = new Runner(
    {
      sink: config.sink.name,
      lanes,
      rules: {
        start: typeof from.start === "string" ? from.start : "timestamp",
        acceptGap: flags.acceptGap,
        retention: from.on_out_of_range === "fail" ? "fail" : "skip",
        onRecreated: from.on_recreated,
      },
      untilCaughtUp: flags.untilCaughtUp,
      heartbeatMs: HEARTBEAT_MS,
      drainMs: pipeline.drain_ms,
    },
    {
      clock: systemClock,
      source,
      coverage: sink.coverage,
      committer: sink.committer,
      spawnLane: (lane) => {
        // A lane that was replaced must not use its predecessor's ids again.
        const life = `${instance}.${spawned++}`;
        lives.set(lane, life);
        const init = { t: "init", lane, config: laneConfig(config, life, sink.lane, beside) } as const;
        const thread = spawnWorkerLane<LaneConfig, ToThread>(init);
        threads.set(lane, thread);
        return schemas === null ? thread : withAnswers(thread, { schemas, tables, dedup });
      },
      ledger: new Ledger(),
      admission: admissionOf(pipeline, budget),
      buffers: new BufferPool(pipeline.max_bytes / 2),
      observer,
      sweep: () => sink.sweep(),
      secondaries: beside.map((b) => b.spec),
      ...(sink.retention === undefined ? {} : { retention: sink.retention }),
      ...hooked,
    },
  );
  return {
    runner,
    source,
    budget,
    lanes,
    prepare: async () => {
      if (config.decode !== null)
        await checkSchemaFiles(
          config.decode as DecodeSection,
          config.source.topics ?? [],
          config.sink.metadata_prefix,
        );
      if (config.decode !== null && dedup !== null)
        for (const topic of topicsWithKeys(config.decode as DecodeSection, config.source.topics))
          await naturalKeyOf(config.decode as DecodeSection, topic);
      await sink.prepare();
      for (const b of beside) await preparedOrLater(b);
    },
    renew: (renewed) => {
      const atSource = source.renew(kafkaSettings(renewed.source, VERSION));
      // Each takes over what is new to it.
      const atSink = [sink, ...beside.map((b) => b.parts)].map((s) => s.renew(renewed)).includes(true);
      const branches = beside.map((b) => b.parts.lane);
      if (atSink) for (const t of threads.values()) t.post({ t: "renew", sink: sink.lane, branches });
      const atRegistry = schemas?.renew(renewed) ?? false;
      return atSource || atSink || atRegistry;
    },
  };
}

/** Messages to a lane's thread that are not for its lane. */
export type ToThread = RenewSink | AnswerSchema | AnswerTable | AnswerDedup;

type LaneThread = Thread<ToLane | ToThread, FromLane>;

/** Who knows what lanes ask. */
export interface LaneAnswers {
  readonly schemas: SchemaService;
  readonly tables: KeptTables;
  /** Null: no sink leaves duplicates out. */
  readonly dedup: DedupService | null;
}

/** The lane's questions are answered on the way; everything else goes to the runner. */
export function withAnswers(thread: LaneThread, { schemas, tables, dedup }: LaneAnswers): LanePort {
  const duplicates = dedup === null ? null : new DedupAnswers(dedup);
  return {
    post: (message, transfer) => thread.post(message, transfer),
    kill: () => {
      thread.kill();
      void duplicates?.close().catch(() => {});
    },
    onMessage: (handler) =>
      thread.onMessage((m) => {
        const message = m as FromLane | AskSchema | AskTable | AskDedup;
        if (message.t === "ask_schema" || message.t === "register_schema")
          void answerSchema(message, schemas).then((answer) => thread.post(answer));
        else if (message.t === "ask_table") void tables.answer(message).then((answer) => thread.post(answer));
        else if (message.t === "ask_dedup")
          void duplicates?.answer(message).then((answer) => thread.post(answer));
        else handler(message);
      }),
  };
}

/** Tells when a lane takes no more data, and how long that lasted. */
function watchBudget(
  observer: Observer,
  max: number,
  used: () => number,
): (lane: Owner, full: boolean) => void {
  const since = new Map<Owner, number>();
  return (lane, full) => {
    const owner = String(lane);
    const now = systemClock.monotonic();
    if (full) {
      since.set(lane, now);
      observer.emit({ e: "budget.exhausted", owner, inFlight: used(), budget: max });
    } else observer.emit({ e: "budget.released", owner, ms: now - (since.get(lane) ?? now) });
  };
}

function sinkParts(config: ResolvedConfig, sink: ResolvedConfig["sink"], context: SinkContext): SinkParts {
  switch (sink.type) {
    case "parquet":
      return parquetParts(config, sink, context);
    case "postgres":
      return postgresParts(config, sink, context);
    case "kafka":
      return kafkaSinkParts(config, sink, context);
  }
}

export interface Beside {
  readonly parts: SinkParts;
  readonly spec: SecondarySpec;
  readonly holdBytes: number;
  readonly sink: ResolvedConfig["sink"];
}

/** The sinks beside the primary one. */
export function besideParts(
  config: ResolvedConfig,
  context: Omit<SinkContext, "hook" | "secondary">,
): Beside[] {
  const ranked = config.sinks
    .filter((sink) => sink.role === "secondary")
    .toSorted((a, b) => RANK[a.receives] - RANK[b.receives]);
  const rejecting = ranked.flatMap((sink, n) => (sink.receives === "rejected" ? [n] : []));
  return ranked.map((sink) => {
    const outages: SecondarySpec["outages"] = { tell: null };
    const holdBytes = sink.hold_bytes;
    const secondary = { holdBytes, trouble: (f: Failure | null) => outages.tell?.(f) };
    const hook = crashHook(crashPlan(process.env.TWG_CRASH_AT, sink.name));
    const parts = sinkParts(config, sink, { ...context, hook, secondary });
    const spec: SecondarySpec = {
      name: sink.name,
      after: sink.receives === "decoded" ? [PRIMARY, ...rejecting] : [PRIMARY],
      commits: parts.lane.kind !== "parquet",
      coverage: parts.coverage,
      committer: parts.committer,
      // The table of decoded rows is known with its first schema: lanes make it fit.
      prepare: () =>
        sink.receives === "raw" || sink.type !== "postgres" ? parts.prepare() : Promise.resolve(),
      sweep: () => parts.sweep(),
      outages,
    };
    return { parts, spec, holdBytes, sink };
  });
}

/** The tables of decoded rows that are folders of files: each has one schema, whoever writes. */
export function keptTables(beside: readonly Beside[]): KeptTables {
  const kept = beside.flatMap(({ parts: { table }, sink: { receives, metadata } }, n) =>
    receives === "decoded" && table !== undefined ? [{ sink: n, table, metadata }] : [],
  );
  const prefix = beside[0]?.sink.metadata_prefix ?? "";
  return new KeptTables(kept, { prefix, clock: systemClock });
}

/** Raw first; rejects before what is decoded. */
const RANK = { raw: 0, rejected: 1, decoded: 2 } as const;

/** What will not mend itself is told at the start; a sink that is down is waited for beside the work. */
async function preparedOrLater({ spec }: Beside): Promise<void> {
  try {
    await spec.prepare();
  } catch (e) {
    const failure = asFailure(e);
    if (!failure.retry) throw failure;
    spec.outages.tell?.(failure);
  }
}

export function laneConfig(
  config: ResolvedConfig,
  instance: string,
  sink: LaneSink,
  beside: readonly Beside[],
): LaneConfig {
  const { max_records, max_bytes } = config.batch;
  // A set takes whole batches: smaller ones keep it near the size at which it is committed.
  const whole = sink.kind === "parquet" && !beside.some((b) => b.spec.commits);
  const [rows, bytes] = whole ? [RAW_BATCH_RECORDS, RAW_BATCH_BYTES] : [COPY_BATCH_RECORDS, COPY_BATCH_BYTES];
  return {
    instance,
    maxDecompressedBytes: MAX_DECOMPRESSED_BYTES,
    batchRows: Math.min(max_records, rows),
    batchBytes: Math.min(max_bytes, bytes),
    sink,
    decode: decodeOf(config, beside, sink.kind === "replay" && sink.fixedColumns),
    dedup: dedupOf(config, beside, { maxRows: rows, maxBatchBytes: bytes }),
    branches: beside.map(({ parts, spec, holdBytes, sink: of }, i) => ({
      receives: of.receives,
      metadata: of.metadata,
      distinct: of.duplicates === "drop",
      create: of.type === "postgres" && of.create,
      growth: of.type === "postgres" && of.create ? growthOf(of) : null,
      name: spec.name,
      after: spec.after.filter((n) => n !== PRIMARY),
      eager: beside.some((b) => b.spec.after.includes(i)),
      holdBytes,
      sink: parts.lane,
    })),
  };
}

/** Null where nothing leaves duplicates out. */
function dedupOf(
  { dedup, sink }: ResolvedConfig,
  beside: readonly Beside[],
  batch: Pick<LaneDedup, "maxRows" | "maxBatchBytes">,
): LaneDedup | null {
  if (sink.type !== "parquet" || !dropsDuplicates(beside.map((b) => b.sink))) return null;
  return {
    windowRecords: dedup.window_records,
    windowMs: dedup.window_ms ?? null,
    maxBytes: dedup.max_bytes,
    rowGroupBytes: sink.row_group_bytes,
    ...batch,
  };
}

/** Null where nothing gets what is decoded. */
function decodeOf(
  { decode, pipeline, source }: ResolvedConfig,
  beside: readonly Beside[],
  fixedColumns: boolean,
): LaneDecode | null {
  const derived = beside.filter((b) => b.sink.receives !== "raw");
  const [one] = derived;
  if (decode === null || one === undefined) return null;
  const { registry: _, ...options } = decode;
  return {
    pipeline: pipeline.name,
    prefix: one.sink.metadata_prefix,
    fixedColumns,
    oneFile: isOfOneFile(decode as DecodeSection, source.type === "kafka" ? (source.topics ?? []) : []),
    options: options as LaneDecode["options"],
  };
}

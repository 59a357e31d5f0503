/** A run that reads raw again: the runner of a stream with raw files for a source and nothing for a primary sink. */
import { randomBytes } from "node:crypto";
import { spawnWorkerLane } from "../adapters/lanes/worker-host.ts";
import { systemClock } from "../adapters/system/clock.ts";
import { Budget } from "../core/delivery/budget.ts";
import { CoveredCommitter } from "../core/delivery/covered-committer.ts";
import { Ledger } from "../core/delivery/ledger.ts";
import { BufferPool } from "../core/pipeline/buffer-pool.ts";
import { Runner } from "../core/pipeline/runner.ts";
import type { Observer } from "../core/ports/observer.ts";
import { type StreamId, streamKey } from "../core/records/stream.ts";
import { ReplayOrder } from "../core/recovery/replay-order.ts";
import { ReplaySource } from "../core/recovery/replay-source.ts";
import { ReplayCoverage } from "../core/recovery/replayed.ts";
import { admissionOf } from "./admission-parts.ts";
import type { ResolvedConfig } from "./config-file.ts";
import type { LaneConfig, RenewSink, ReplayLaneSink } from "./lane-config.ts";
import type { AnswerSchema } from "./lane-schemas.ts";
import type { AnswerTable } from "./lane-tables.ts";
import { objectSinkStores } from "./object-stores.ts";
import { type RecoverPlan, rawSinkOf } from "./recover-plan.ts";
import { rawSets } from "./recover-sets.ts";
import { schemaService } from "./schema-service.ts";
import { HEARTBEAT_MS } from "./sink-parts.ts";
import { besideParts, keptTables, laneConfig, withAnswers } from "./stream-parts.ts";

const NAME = "raw, read again";

interface RecoverConfigs {
  /** Its sinks are those to fill, and the primary one. */
  readonly config: ResolvedConfig;
  /** As it is loaded: columns that are learned have names that each of its sinks can have, filled now or not. */
  readonly whole: ResolvedConfig;
}

/** `streams`: of one incarnation. */
export async function buildRecovery(
  { config, whole }: RecoverConfigs,
  { wanted, index }: RecoverPlan,
  streams: readonly StreamId[],
  observer: Observer,
): Promise<Runner> {
  const raw = rawSinkOf(config);
  const instance = randomBytes(8).toString("hex");
  // One lane: what recovery takes from a machine is bounded by it.
  const lanes = 1;
  // Alone in the sinks that it fills: whoever writes them now is in the way, and is named.
  const context = { instance, shared: false, lanes, laneLife: () => `${instance}.0-l0`, observer };
  const beside = besideParts(config, context);
  for (const b of beside) await b.spec.prepare();
  const stores = objectSinkStores(config.pipeline.name, raw, instance, null);
  const schemas = schemaService(whole, stores, { instance, observer });
  const keys = new Set(streams.map(streamKey));
  const mine = new Map([...wanted].filter(([key]) => keys.has(key)));
  const source = new ReplaySource(
    streams.map((id) => ({ id, span: spanOf(mine.get(streamKey(id))!) })),
    { order: new ReplayOrder(index, mine), read: rawSets(raw) },
  );
  const { pipeline } = config;
  const budget = new Budget({ maxBytes: pipeline.max_bytes, owners: [0] });
  const sink: ReplayLaneSink = {
    kind: "replay",
    rowGroupBytes: raw.row_group_bytes,
    rollBytes: raw.roll_bytes,
    rollIntervalMs: raw.roll_interval_ms,
  };
  const coverage = new ReplayCoverage(mine, streams[0]?.incarnation ?? 0);
  const tables = keptTables(beside);
  let spawned = 0;
  return new Runner(
    {
      sink: NAME,
      lanes,
      rules: { start: "earliest", acceptGap: false, retention: "fail", onRecreated: "fail" },
      untilCaughtUp: true,
      heartbeatMs: HEARTBEAT_MS,
      drainMs: pipeline.drain_ms,
    },
    {
      clock: systemClock,
      source,
      coverage,
      committer: (listener) => new CoveredCommitter({ sink: NAME, clock: systemClock, observer, listener }),
      spawnLane: (lane) => {
        const life = `${instance}.${spawned++}`;
        const init = { t: "init", lane, config: laneConfig(config, life, sink, beside) } as const;
        const thread = spawnWorkerLane<LaneConfig, RenewSink | AnswerSchema | AnswerTable>(init);
        return schemas === null ? thread : withAnswers(thread, schemas, tables);
      },
      ledger: new Ledger(),
      admission: admissionOf(pipeline, budget),
      buffers: new BufferPool(pipeline.max_bytes / 2),
      observer,
      sweep: async () => {},
      secondaries: beside.map((b) => b.spec),
    },
  );
}

function spanOf(ranges: readonly { readonly from: bigint; readonly next: bigint }[]) {
  return { from: ranges[0]!.from, next: ranges.at(-1)!.next };
}

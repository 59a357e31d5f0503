/** A run that reads raw again: the runner of a stream with raw for a source and nothing for a primary sink. */
import { randomBytes } from "node:crypto";
import { spawnWorkerLane } from "../adapters/lanes/worker-host.ts";
import { systemClock } from "../adapters/system/clock.ts";
import { PlanBook } from "../core/coverage/plan-book.ts";
import { subtractRanges } from "../core/coverage/ranges.ts";
import type { IndexEntry } from "../core/coverage/state.ts";
import { recoveryInstance } from "../core/coverage/windows.ts";
import { Budget } from "../core/delivery/budget.ts";
import { CoveredCommitter } from "../core/delivery/covered-committer.ts";
import { Ledger } from "../core/delivery/ledger.ts";
import type { RateLimit } from "../core/delivery/rate-limit.ts";
import { SizeEstimate } from "../core/delivery/size-estimate.ts";
import { Failure } from "../core/failure/failure.ts";
import { Admission } from "../core/pipeline/admission.ts";
import { Runner } from "../core/pipeline/runner.ts";
import type { Observer } from "../core/ports/observer.ts";
import { type StreamKey, streamKey } from "../core/records/stream.ts";
import { ReplayOrder, type Wanted } from "../core/recovery/replay-order.ts";
import { ReplaySource } from "../core/recovery/replay-source.ts";
import { ReplayCoverage } from "../core/recovery/replayed.ts";
import type { ResolvedConfig } from "./config-file.ts";
import type { DecodePlan } from "./decode-plan.ts";
import { type DedupService, dedupService } from "./dedup-service.ts";
import type { LaneConfig, ReplayLaneSink } from "./lane-config.ts";
import type { SchemaService } from "./lane-schemas.ts";
import { type Raw, rawOf } from "./raw-of.ts";
import { byIncarnation } from "./recover-plan.ts";
import { ReplayBuffers } from "./replay-buffers.ts";
import { decodeOfPlan, EarlierPlans, hasOwnColumns, tellsClashes } from "./replay-plans.ts";
import { schemaService } from "./schema-service.ts";
import { HEARTBEAT_MS } from "./sink-parts.ts";
import {
  type Beside,
  besideParts,
  keptTables,
  laneConfig,
  type ToThread,
  withAnswers,
} from "./stream-parts.ts";

/** What stands in the place of the primary sink. */
export const REPLAYED = "raw, read again";
/** What recovery takes from a machine is bounded by it. */
const LANES = 1;

export interface ReplayScope {
  /** Its sinks are those to fill, and the primary one. */
  readonly config: ResolvedConfig;
  /** As it is loaded: columns that are learned have names that each of its sinks can have, filled now or not. */
  readonly whole: ResolvedConfig;
  readonly observer: Observer;
  readonly limit: RateLimit;
}

/** What runs over raw have in common, one after the other in one process. */
export interface ReplayHost {
  readonly config: ResolvedConfig;
  readonly raw: Raw;
  readonly beside: readonly Beside[];
  readonly observer: Observer;
  readonly schemas: SchemaService | null;
  readonly dedup: DedupService | null;
  /** Of `LaneDecode`. */
  readonly fixedColumns: boolean;
  readonly admission: () => Admission;
  /** Of a lane; never the same twice, since the ids of sets are made of it. */
  readonly life: () => string;
}

/** By the configuration of now, and by the plans of earlier ones. */
export interface ReplayHosts {
  readonly now: ReplayHost;
  readonly plans: EarlierPlans;
  /** A failure: what the plan needs is not there now. */
  readonly of: (plan: DecodePlan) => ReplayHost | Failure;
}

/** Beside others, under leases. */
export function replayHosts({ config, whole, observer, limit }: ReplayScope): ReplayHosts {
  const id = randomBytes(8).toString("hex");
  const instance = recoveryInstance(id);
  let spawned = 0;
  // What is leased is written by the lane of the run to come.
  const laneLife = () => `${id}.${spawned}-l0`;
  const leaseMs = whole.recovery.lease_ms;
  const context = { instance, shared: false, lanes: LANES, laneLife, leaseMs, observer };
  const beside = besideParts(config, context);
  const raw = rawOf(whole);
  const stores = raw.stores(instance);
  const schemas = schemaService(whole, stores, { instance: id, observer });
  const dedup = dedupService(config, schemas, { instance, live: false });
  const { recovery } = config;
  const size = new SizeEstimate(config.pipeline.record_size_est_bytes);
  const now: ReplayHost = {
    ...{ config, raw, beside, observer, schemas, dedup, fixedColumns: false },
    admission: () =>
      new Admission(systemClock, new Budget({ maxBytes: recovery.max_bytes, owners: [0] }), limit, size),
    life: () => `${id}.${spawned++}`,
  };
  let planned = 0;
  const of = (plan: DecodePlan): ReplayHost | Failure => {
    const decode = config.decode === null ? null : decodeOfPlan(plan, config.decode);
    if (decode === null || decode instanceof Failure) return decode ?? now;
    const context = { instance: `${id}.p${planned++}`, observer };
    const read = async (path: string) => plan.files.get(path) ?? null;
    const service = schemaService(whole, stores, context, { decode, read });
    const earlier = { ...config, decode };
    return {
      ...now,
      ...{ config: earlier, schemas: service, fixedColumns: hasOwnColumns(plan) },
      observer: tellsClashes(observer),
      dedup: dedupService(earlier, service, { instance, live: false }),
    };
  };
  return { now, plans: earlierPlans(raw, instance, whole.file), of };
}

function earlierPlans({ plans: versions }: Raw, instance: string, file: string): EarlierPlans {
  if (versions === null) return new EarlierPlans({ plan: async () => null }, file);
  return new EarlierPlans(new PlanBook({ versions, instance }), versions.place);
}

export interface Replay {
  /** Of one incarnation. */
  readonly wanted: Wanted;
  readonly index: readonly IndexEntry[];
  /** As of `DedupService.cuts`. */
  readonly cuts: ReadonlyMap<StreamKey, readonly bigint[]>;
}

/**
 * One run, of what raw files are known for. `beside`: those of the host's sinks that take part, numbered among themselves.
 */
export function replayRunner(host: ReplayHost, beside: readonly Beside[], replay: Replay): Runner {
  const { config, raw, observer, schemas, dedup, fixedColumns } = host;
  const { index, cuts } = replay;
  const wanted = indexedOf(replay);
  const streams = [...byIncarnation(wanted).values()].flat();
  const source = new ReplaySource(
    streams.map((id) => ({ id, span: spanOf(wanted.get(streamKey(id))!) })),
    { order: new ReplayOrder(index, wanted), read: raw.read },
  );
  const { pipeline } = config;
  const sink: ReplayLaneSink = {
    kind: "replay",
    cuts,
    fixedColumns,
    ...raw.rolls,
  };
  const coverage = new ReplayCoverage(wanted, streams[0]?.incarnation ?? 0);
  const tables = keptTables(beside);
  return new Runner(
    {
      sink: REPLAYED,
      lanes: LANES,
      rules: { start: "earliest", acceptGap: false, retention: "fail", onRecreated: "fail" },
      untilCaughtUp: true,
      heartbeatMs: HEARTBEAT_MS,
      drainMs: pipeline.drain_ms,
    },
    {
      clock: systemClock,
      source,
      coverage,
      committer: (listener) =>
        new CoveredCommitter({ sink: REPLAYED, clock: systemClock, observer, listener }),
      spawnLane: (lane) => {
        const init = { t: "init", lane, config: laneConfig(config, host.life(), sink, beside) } as const;
        const thread = spawnWorkerLane<LaneConfig, ToThread>(init);
        return schemas === null ? thread : withAnswers(thread, { schemas, tables, dedup });
      },
      ledger: new Ledger(),
      admission: host.admission(),
      buffers: new ReplayBuffers(config.recovery.max_bytes / 2, source),
      observer,
      sweep: async () => {},
      secondaries: beside.map((b) => b.spec),
    },
  );
}

function indexedOf({ index, wanted }: Replay): Wanted {
  const unknown = new ReplayOrder(index, wanted).missing(wanted);
  const known = [...wanted].map(
    ([stream, ranges]) => [stream, subtractRanges(ranges, unknown.get(stream) ?? [])] as const,
  );
  return new Map(known.filter(([, ranges]) => ranges.length > 0));
}

function spanOf(ranges: readonly { readonly from: bigint; readonly next: bigint }[]) {
  return { from: ranges[0]!.from, next: ranges.at(-1)!.next };
}

/** What recovery has to do: the gaps of the chosen sinks against raw, and where raw has what they lack. */
import { linuxIdentity } from "../adapters/coverage/host-identity.ts";
import { readBytes } from "../adapters/registry/schema-files.ts";
import type { DecodeSection } from "../core/config/decode-options.ts";
import { PlanBook } from "../core/coverage/plan-book.ts";
import { intersectRanges, normalRanges, unionRanges } from "../core/coverage/ranges.ts";
import type { CoverageState, IndexEntry } from "../core/coverage/state.ts";
import { isRecovery } from "../core/coverage/windows.ts";
import { asFailure, Failure } from "../core/failure/failure.ts";
import type { Range } from "../core/ports/coverage.ts";
import type { VersionedStore } from "../core/ports/versioned-store.ts";
import type { StreamId, StreamKey } from "../core/records/stream.ts";
import type { PlanPieces } from "../core/recovery/plan-phases.ts";
import { ReplayOrder, type Wanted } from "../core/recovery/replay-order.ts";
import type { Cli } from "./cli.ts";
import type { PipelineConfig, ResolvedConfig } from "./config-file.ts";
import { type Gap, gapsBetween, summarizeCoverage } from "./coverage-summary.ts";
import { PresentPlans } from "./plan-epochs.ts";
import { demandNothingLanded } from "./raw-away.ts";
import { rawOf } from "./raw-of.ts";
import { piecesOf } from "./replay-plans.ts";
import { type StateAt, statesOfSink } from "./sink-states.ts";
import { streamIdOf } from "./stream-id.ts";

export interface RecoverChoice {
  /** Empty: all beside the primary one. */
  readonly sinks: readonly string[];
  /** Empty: all. */
  readonly topics: readonly string[];
  readonly from: bigint | null;
  readonly to: bigint | null;
  /** By the configuration of now, whatever they were decoded by at their time. */
  readonly replan: boolean;
}

export interface SinkGaps {
  readonly sink: string;
  readonly gaps: readonly Gap[];
}

export interface RecoverPlan {
  readonly sinks: readonly SinkGaps[];
  /** Of any of the sinks. */
  readonly wanted: Wanted;
  readonly index: readonly IndexEntry[];
  /** Sinks whose coverage, or by which plans their records were decoded, cannot be read now. */
  readonly away: ReadonlyMap<string, Failure>;
  /** By which plans records of the gaps were decoded at their time. */
  readonly pieces: PlanPieces;
  /** Records are decoded, and by which plan they were at their time is kept nowhere: by the one of now. */
  readonly forgetful: boolean;
  /** A pipeline writes raw, as far as it is known of its process. */
  readonly live: boolean;
}

/** What of the gaps of a sink is to be filled, by what its coverage says besides. */
export type Narrow = (
  sink: PipelineConfig["sink"],
  gaps: readonly Gap[],
  states: readonly StateAt[],
) => readonly Gap[];

/** The sinks to fill, of the configuration: what decoded rows come after is filled with them. Throws cli.usage. */
export function sinksToFill<S extends Pick<PipelineConfig["sink"], "name" | "role" | "receives">>(
  all: readonly S[],
  named: readonly string[],
  file: string,
): readonly S[] {
  const secondary = all.filter((s) => s.role === "secondary");
  const unknown = named.find((n) => !secondary.some((s) => s.name === n));
  if (unknown !== undefined)
    throw new Failure("cli.usage", `no sink beside the primary one is named ${JSON.stringify(unknown)}`, {
      at: file,
      hint: `There are: ${secondary.map((s) => s.name).join(", ") || "none"}`,
    });
  const chosen = secondary.filter((s) => named.length === 0 || named.includes(s.name));
  const decodes = chosen.some((s) => s.receives === "decoded");
  return secondary.filter((s) => chosen.includes(s) || (decodes && s.receives === "rejected"));
}

/** Throws cli.usage for a topic that is not in raw, and recovery.raw_missing where raw shows nothing and a sink has records. */
export async function planRecovery(
  loaded: PipelineConfig,
  config: ResolvedConfig,
  choice: RecoverChoice,
  cli: Cli,
  narrow: Narrow = (_, gaps) => gaps,
): Promise<RecoverPlan> {
  const raw = rawOf(config);
  const state = await raw.state();
  const has = summarizeCoverage(state).streams;
  const unseen = has.length > 0 ? null : await demandNothingLanded(loaded, config.file, cli);
  checkTopics(choice.topics, [...has.map((s) => s.topic), ...(loaded.source.topics ?? [])], config.file);
  const seen: SinkGaps[] = [];
  const away = new Map<string, Failure>();
  for (const sink of sinksToFill(loaded.sinks, choice.sinks, config.file)) {
    try {
      const failure = unseen?.get(sink.name);
      if (failure !== undefined) throw failure;
      if (unseen !== null) continue;
      const states = await statesOfSink(loaded, sink, config.file, cli);
      const covered = states.flatMap((s) => summarizeCoverage(s.state).streams);
      const lacks = gapsBetween(has, covered).flatMap((g) => narrowed(g, choice));
      seen.push({ sink: sink.name, gaps: narrow(sink, lacks, states) });
    } catch (e) {
      away.set(sink.name, asFailure(e));
    }
  }
  const { plans } = raw;
  const isPlanOfNow = choice.replan || plans === null;
  const pieces = isPlanOfNow ? new Map() : await piecesOfGaps(config, seen, plans).catch(asFailure);
  // By what the records of derived rows were decoded is not known: what is as it is in raw needs no plan.
  if (pieces instanceof Failure)
    for (const { sink, gaps } of seen) if (gaps.length > 0 && isDerived(config, sink)) away.set(sink, pieces);
  const sinks = seen.filter((s) => !away.has(s.sink));
  const wanted = new Map<StreamKey, readonly Range[]>();
  for (const { stream, ranges } of sinks.flatMap((s) => s.gaps))
    wanted.set(stream, unionRanges(normalRanges(wanted.get(stream) ?? []), normalRanges(ranges)));
  const index = wanted.size === 0 ? [] : await raw.index(state, wanted);
  const known = pieces instanceof Failure ? new Map() : pieces;
  const forgetful = config.decode !== null && plans === null;
  return { sinks, wanted, index, away, pieces: known, forgetful, live: isWritten(state) };
}

const isDerived = ({ sinks }: ResolvedConfig, name: string): boolean =>
  sinks.some((s) => s.name === name && s.receives !== "raw");

async function piecesOfGaps(
  { decode, sinks }: ResolvedConfig,
  lacking: readonly SinkGaps[],
  versions: VersionedStore,
): Promise<PlanPieces> {
  const derived = sinks.filter((s) => s.receives !== "raw");
  const streams = new Map(lacking.map(({ sink, gaps }) => [sink, gaps.map((g) => g.stream)] as const));
  if (decode === null || !derived.some((s) => (streams.get(s.name) ?? []).length > 0)) return new Map();
  const book = await new PlanBook({ versions, instance: "recover" }).read();
  return await piecesOf(book, derived, streams, new PresentPlans(decode as DecodeSection, readBytes));
}

function isWritten({ owners }: CoverageState): boolean {
  const { isAlive } = linuxIdentity();
  return owners.some((o) => !isRecovery(o.instance) && isAlive(o.host) !== "dead");
}

function checkTopics(named: readonly string[], known: readonly string[], file: string): void {
  const unknown = named.find((n) => !known.includes(n));
  if (unknown === undefined) return;
  throw new Failure("cli.usage", `raw has nothing of a topic ${JSON.stringify(unknown)}`, {
    at: file,
    hint: `It has: ${[...new Set(known)].toSorted().join(", ") || "none"}`,
  });
}

function narrowed(gap: Gap, { topics, from, to }: RecoverChoice): readonly Gap[] {
  if (topics.length > 0 && !topics.includes(gap.topic)) return [];
  const last = gap.ranges.at(-1)?.next ?? 0n;
  const ranges = intersectRanges(normalRanges(gap.ranges), [{ from: from ?? 0n, next: to ?? last }]);
  return ranges.length === 0 ? [] : [{ ...gap, ranges }];
}

/** Positions that raw has and none of its files: null if there are none. */
export function unindexed({ index, wanted }: RecoverPlan, at: string): Failure | null {
  const [first] = new ReplayOrder(index, wanted).missing(wanted);
  if (first === undefined) return null;
  const [stream, [range]] = first;
  const text = `nothing in raw is known for ${stream} [${range?.from}, ${range?.next})`;
  return new Failure("recovery.raw_missing", text, { at });
}

export function positionsOf(gaps: readonly Gap[]): bigint {
  return gaps.flatMap((g) => g.ranges).reduce((n, r) => n + (r.next - r.from), 0n);
}

/** Streams by the incarnation of their topic: one run can have one of each name. */
export function byIncarnation(wanted: Wanted): ReadonlyMap<number, readonly StreamId[]> {
  return Map.groupBy([...wanted.keys()].map(streamIdOf), (id) => id.incarnation);
}

/** The sinks of a lane beside its primary one. */
import { systemClock } from "../adapters/system/clock.ts";
import { Branch } from "../core/pipeline/branch.ts";
import { Branches } from "../core/pipeline/branches.ts";
import type { LaneBranches } from "../core/pipeline/lane.ts";
import type { RawBatch } from "../core/records/raw-batch.ts";
import type { LaneBranch, LaneConfig, LaneSink } from "./lane-config.ts";
import type { DecodeContext, decodeLane as DecodeLaneFunction } from "./lane-decode.ts";
import { laneTransactions, type OpenedWriter, rawWriter } from "./lane-writers.ts";

/** Loaded by lanes that decode alone. */
export type DecodeLaneOf = typeof DecodeLaneFunction;

export interface OpenedBranches extends LaneBranches {
  /** Takes over secrets that were read again. */
  renew(sinks: readonly LaneSink[]): void;
}

/** Sets of a sink that are filled and sealed at a time. */
const MOST_WRITERS = 64;

/** Null: the primary sink is the only one. Sinks of raw records come before those of what is made of them. */
export function laneBranches(
  { branches: configured, decode }: LaneConfig,
  context: Omit<DecodeContext, "first">,
  decodeLane: DecodeLaneOf | null,
): OpenedBranches | null {
  if (configured.length === 0) return null;
  const raw = configured.filter((b) => b.receives === "raw");
  const first = raw.length;
  const plain = rawBranches(raw, context);
  const derived =
    decode === null || decodeLane === null
      ? null
      : decodeLane(decode, configured.slice(first), { ...context, first });
  const all: readonly Pick<
    Branches<never>,
    "bundled" | "crowded" | "relief" | "primarySealed" | "skips" | "pressing"
  >[] = derived === null ? [plain.branches] : [plain.branches, derived.branches];
  return {
    get pressing() {
      return all.some((b) => b.pressing);
    },
    get crowded() {
      return derived?.stage.crowded === true || all.some((b) => b.crowded);
    },
    skips: (stream) => all.flatMap((b) => b.skips(stream)),
    bundled: () => {
      for (const b of all) b.bundled();
    },
    relief: async (isReplay) => {
      await derived?.stage.relief(isReplay);
      for (const b of all) await b.relief(isReplay);
    },
    primarySealed: (reason) => {
      for (const b of all) b.primarySealed(reason);
    },
    forget: (streams) => {
      plain.branches.forget(streams);
      derived?.forget(streams);
    },
    reset: (epoch) => {
      plain.branches.reset(epoch);
      derived?.reset(epoch);
    },
    receive: (sink, m) =>
      sink < first ? plain.branches.receive(sink, m) : derived?.branches.receive(sink - first, m),
    take: (stream, key, batch) => {
      if (first > 0) plain.branches.give(stream, key, () => batch, batch.span);
      derived?.stage.take(stream, key, batch);
    },
    settled: () => derived?.stage.settled() ?? Promise.resolve(),
    renew: (sinks) => {
      plain.renew(sinks.slice(0, first));
      derived?.renew(sinks.slice(first));
    },
  };
}

function rawBranches(
  configured: readonly LaneBranch[],
  { lane, instance, codecs, primaryOpen, post }: Omit<DecodeContext, "first">,
) {
  const sinks: LaneSink[] = configured.map((b) => b.sink);
  const writers: OpenedWriter[][] = configured.map(() => []);
  const shared = sinks.map((sink) => laneTransactions(sink, instance, codecs));
  const branches = new Branches<RawBatch>(
    configured.map(({ name, after, eager, holdBytes, sink }, i) => {
      let serial = 0;
      let made = 0;
      const branch = new Branch<RawBatch>({
        lane,
        name,
        commits: sink.kind !== "parquet",
        eager,
        holdBytes,
        rollBytes: sink.rollBytes,
        rollIntervalMs: sink.rollIntervalMs,
        clock: systemClock,
        newWriter: () => {
          // Each has its own connection or staging name.
          const opened = rawWriter(sinks[i]!, `${instance}b${i}w${made++}`, codecs, shared[i]);
          writers[i]!.push(opened);
          // Those that were given up are older.
          if (writers[i]!.length > MOST_WRITERS) writers[i]!.shift();
          return opened.writer;
        },
        newSetId: () => `${instance}b${i}-${serial++}`,
        primaryOpen,
        post: (m) => post({ t: "branch", sink: i, m }),
      });
      return { branch, after };
    }),
  );
  return {
    branches,
    renew: (renewed: readonly LaneSink[]) => {
      for (const [i, sink] of renewed.entries()) {
        sinks[i] = sink;
        for (const w of writers[i] ?? []) w.renew(sink);
      }
    },
  };
}

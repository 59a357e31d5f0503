/** The sinks of a lane beside its primary one. */
import { systemClock } from "../adapters/system/clock.ts";
import type { Codecs } from "../core/compression/codec.ts";
import { Branch } from "../core/pipeline/branch.ts";
import { Branches } from "../core/pipeline/branches.ts";
import type { LaneBranches } from "../core/pipeline/lane.ts";
import type { FromLane } from "../core/ports/lane.ts";
import type { RawBatch } from "../core/records/raw-batch.ts";
import type { StreamKey } from "../core/records/stream.ts";
import type { LaneConfig, LaneSink } from "./lane-config.ts";
import { laneTransactions, type OpenedWriter, rawWriter } from "./lane-writers.ts";

export interface OpenedBranches extends LaneBranches {
  /** Takes over secrets that were read again. */
  renew(sinks: readonly LaneSink[]): void;
}

/** Sets of a sink that are filled and sealed at a time. */
const MOST_WRITERS = 64;

/** Null: the primary sink is the only one. */
export function laneBranches(
  { branches: configured }: LaneConfig,
  lane: number,
  instance: string,
  codecs: Codecs,
  primaryOpen: () => boolean,
  post: (m: FromLane) => void,
): OpenedBranches | null {
  if (configured.length === 0) return null;
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
  const take = (stream: number, key: StreamKey, batch: RawBatch) =>
    branches.give(stream, key, () => batch, batch.span);
  return Object.assign(branches, {
    take,
    renew: (renewed: readonly LaneSink[]) => {
      for (const [i, sink] of renewed.entries()) {
        sinks[i] = sink;
        for (const w of writers[i] ?? []) w.renew(sink);
      }
    },
  });
}

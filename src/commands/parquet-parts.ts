/** The parts of a Parquet sink on this machine's disk: two-phase files, and coverage in a folder beside them. */
import { linuxIdentity } from "../adapters/coverage/host-identity.ts";
import { coverageFolderOf, LocalVersionedStore } from "../adapters/coverage/local.ts";
import { LocalObjectStore, stagingOf } from "../adapters/object-store/local.ts";
import { rootOf } from "../adapters/parquet/template.ts";
import { systemClock } from "../adapters/system/clock.ts";
import { CoverageKeeper } from "../core/coverage/keeper.ts";
import { Committer } from "../core/delivery/committer.ts";
import { toWire } from "../core/failure/failure.ts";
import type { ResolvedConfig, SinkOf } from "./config-file.ts";
import { LEASE_MS, type SinkContext, type SinkParts } from "./sink-parts.ts";
import { VERSION } from "./version.ts";

/** Shortest time between two writes of the coverage object; a disk bears more than an object store. */
const COVERAGE_INTERVAL_MS = 20;

export function parquetParts(
  { pipeline }: ResolvedConfig,
  sink: SinkOf<"parquet">,
  { instance, observer, hook }: SinkContext,
): SinkParts {
  const root = rootOf(sink.path);
  const staging = stagingOf(root, pipeline.name, sink.name);
  const store = new LocalObjectStore({ root, staging, instance });
  const hooked = hook === null ? {} : { hook };
  const coverage = new CoverageKeeper(
    { instance, leaseMs: LEASE_MS, minIntervalMs: COVERAGE_INTERVAL_MS },
    {
      versions: new LocalVersionedStore(coverageFolderOf(root, pipeline.name, sink.name), hook ?? undefined),
      objects: store,
      clock: systemClock,
      host: linuxIdentity(),
      ...hooked,
      waiting: (owner, ms) => observer.emit({ e: "coverage.waiting", owner, ms }),
      trouble: (f) =>
        observer.emit(
          f === null ? { e: "coverage.healthy" } : { e: "coverage.troubled", failure: toWire(f) },
        ),
      settled: ({ id, targets }, outcome) =>
        observer.emit({ e: "intent.settled", id, outcome, files: targets.length }),
    },
  );
  const { path, row_group_bytes, compression, compression_level, metadata_prefix } = sink;
  return {
    coverage,
    committer: (listener) =>
      new Committer({
        sink: sink.name,
        coverage,
        objects: store,
        clock: systemClock,
        observer,
        listener,
        ...hooked,
      }),
    lane: {
      kind: "parquet",
      root,
      staging,
      rollBytes: sink.roll_bytes,
      rollIntervalMs: sink.roll_interval_ms,
      maxOpenFiles: sink.max_open_files,
      writer: {
        path,
        row_group_bytes,
        compression,
        compression_level,
        metadata_prefix,
        pipeline: pipeline.name,
        sink: sink.name,
        version: VERSION,
      },
    },
    prepare: () => store.prepare(),
    sweep: async () => {
      const removed = await store.sweep(coverage.stagedNames());
      if (removed.length > 0) observer.emit({ e: "staging.swept", removed: removed.length });
    },
  };
}

/** The parts of a Parquet sink, on this machine's disk or in a bucket: two-phase files, and coverage beside them. */
import { linuxIdentity } from "../adapters/coverage/host-identity.ts";
import { systemClock } from "../adapters/system/clock.ts";
import { CoverageKeeper } from "../core/coverage/keeper.ts";
import { LiveTable } from "../core/coverage/live-table.ts";
import { Committer } from "../core/delivery/committer.ts";
import type { Span, StreamKey } from "../core/records/stream.ts";
import type { ResolvedConfig, SinkOf } from "./config-file.ts";
import type { ParquetLaneSink } from "./lane-config.ts";
import { objectSinkStores } from "./object-stores.ts";
import { coverageTrouble, HOLD_SHARE, LEASE_MS, type SinkContext, type SinkParts } from "./sink-parts.ts";
import { columnsOfFiles } from "./table-files.ts";
import { VERSION } from "./version.ts";

/** Newest files of a table that are read where its schema is not stored. */
const FILES_READ = 16;

export function parquetParts(
  { pipeline }: Pick<ResolvedConfig, "pipeline">,
  sink: SinkOf<"parquet">,
  context: SinkContext,
): SinkParts & { readonly lane: ParquetLaneSink; readonly table: LiveTable } {
  const { instance, shared, observer, hook, secondary, leaseMs = LEASE_MS } = context;
  const stores = objectSinkStores(pipeline.name, sink, instance, hook);
  const hooked = hook === null ? {} : { hook };
  const coverage = new CoverageKeeper(
    { instance, leaseMs, minIntervalMs: stores.intervalMs, shared },
    {
      versions: stores.versions,
      objects: stores.objects,
      clock: systemClock,
      host: linuxIdentity(),
      ...hooked,
      waiting: (owner, ms) => observer.emit({ e: "coverage.waiting", owner, ms }),
      trouble: coverageTrouble(context),
      settled: ({ id, targets }, outcome) =>
        observer.emit({ e: "intent.settled", id, outcome, files: targets.length }),
    },
  );
  const { path, compression, compression_level, metadata_prefix, max_open_files } = sink;
  const most = secondary === null ? Number.POSITIVE_INFINITY : secondary.holdBytes / HOLD_SHARE;
  const row_group_bytes = Math.min(sink.row_group_bytes, most);
  const table = new LiveTable({
    versions: stores.table,
    instance,
    files: async () => await columnsOfFiles(await stores.newest(FILES_READ), sink.metadata_prefix),
  });
  const { retention_ms: retentionMs } = sink;
  const ageOf = async (stream: StreamKey, position: bigint) => {
    const holds = (s: Span) => s.stream === stream && s.from <= position && position < s.next;
    const key = (await coverage.index()).find((e) => e.spans.some(holds))?.targets[0]?.key;
    return key === undefined ? null : await stores.age(key);
  };
  return {
    coverage,
    windows: coverage,
    table,
    ...(retentionMs === undefined ? {} : { retention: { retentionMs, ageOf } }),
    committer: (listener) =>
      new Committer({
        sink: sink.name,
        coverage,
        objects: stores.objects,
        clock: systemClock,
        observer,
        listener,
        ...hooked,
      }),
    get lane() {
      return {
        kind: "parquet",
        store: stores.lane,
        rollBytes: sink.roll_bytes,
        rollIntervalMs: sink.roll_interval_ms,
        writer: {
          path,
          row_group_bytes,
          compression,
          compression_level,
          metadata_prefix,
          max_open_files,
          pipeline: pipeline.name,
          sink: sink.name,
          version: VERSION,
        },
      } as const;
    },
    schemas: stores.schemas,
    plans: stores.plans,
    prepare: () => stores.prepare(),
    renew: ({ sinks }) => {
      const renewed = sinks.find((s) => s.name === sink.name);
      return renewed?.type === "parquet" && stores.renew(renewed);
    },
    sweep: async () => {
      // What is staged may be another member's, at work right now.
      if (!coverage.isAlone) return;
      // What somebody left who was killed in the midst of a write or a proof: it holds nothing, and stops nobody.
      for (const book of [stores.schemas, stores.table, stores.dedup, stores.plans])
        await book.sweep(null).catch(() => {});
      const removed = await stores.objects.sweep(coverage.stagedNames());
      if (removed.length > 0) observer.emit({ e: "staging.swept", removed: removed.length });
    },
  };
}

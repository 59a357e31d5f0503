/** Raw, wherever it is: what has landed in it, where what of it is, and how it is read again. */
import { IndexSegments } from "../core/coverage/index-segments.ts";
import { type CoverageState, EMPTY_STATE, type IndexEntry } from "../core/coverage/state.ts";
import { parseState } from "../core/coverage/state-json.ts";
import { Failure } from "../core/failure/failure.ts";
import type { VersionedStore } from "../core/ports/versioned-store.ts";
import type { Wanted } from "../core/recovery/replay-order.ts";
import type { ReadSet } from "../core/recovery/replay-source.ts";
import type { ResolvedConfig, SinkOf } from "./config-file.ts";
import type { ReplayLaneSink } from "./lane-config.ts";
import { objectSinkStores } from "./object-stores.ts";
import { RawTable } from "./raw-table.ts";
import { rawSets } from "./recover-sets.ts";
import type { SinkParts } from "./sink-parts.ts";

export interface Raw {
  state(): Promise<CoverageState>;
  /** Sets that hold what is wanted, and maybe others; oldest first. */
  index(state: CoverageState, wanted: Wanted): Promise<readonly IndexEntry[]>;
  readonly read: ReadSet;
  /** Beside raw, where that is. */
  stores(instance: string): Pick<SinkParts, "schemas">;
  /** By which plans records were decoded, and since when; null: it is not kept beside it. */
  readonly plans: VersionedStore | null;
  /** How large sets are that land beside it. */
  readonly rolls: Pick<ReplayLaneSink, "rowGroupBytes" | "rollBytes" | "rollIntervalMs">;
}

/** Throws recovery.unsupported where raw is of another kind. */
export function rawOf(config: ResolvedConfig): Raw {
  const { sink, file: at } = config;
  if (sink.type === "parquet") return rawFiles(config, sink);
  if (sink.type === "postgres" && sink.mode === "append") return rawRows(config, sink);
  const what =
    sink.type === "postgres" ? "a table of the latest record of each key" : `a sink of type ${sink.type}`;
  throw new Failure("recovery.unsupported", `raw is in ${what}`, { at, hint: READABLE });
}

export const READABLE =
  "This version reads raw again from Parquet files, in a folder or a bucket, and from tables to which rows are added";

function rawFiles({ pipeline }: ResolvedConfig, sink: SinkOf<"parquet">): Raw {
  const { versions, plans } = objectSinkStores(pipeline.name, sink, "recover", null);
  return {
    state: async () => {
      const newest = await versions.read();
      return newest === null ? EMPTY_STATE : parseState(newest.bytes, newest.name, newest.version);
    },
    index: (state) => wholeIndex(state, versions),
    read: rawSets(sink),
    stores: (instance) => objectSinkStores(pipeline.name, sink, instance, null),
    plans,
    rolls: {
      rowGroupBytes: sink.row_group_bytes,
      rollBytes: sink.roll_bytes,
      rollIntervalMs: sink.roll_interval_ms,
    },
  };
}

/** Oldest first. */
export async function wholeIndex(
  state: CoverageState,
  versions: VersionedStore,
): Promise<readonly IndexEntry[]> {
  return await new IndexSegments(versions, "recover").all(state);
}

function rawRows(config: ResolvedConfig, sink: SinkOf<"postgres">): Raw {
  const table = new RawTable(config, sink);
  return {
    state: () => table.state(),
    index: (_, wanted) => table.sets(wanted),
    read: (set) => table.open(set),
    stores: () => ({}),
    plans: null,
    rolls: { rowGroupBytes: 0, rollBytes: sink.commit_bytes, rollIntervalMs: sink.commit_interval_ms },
  };
}

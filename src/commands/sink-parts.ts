/** What a sink brings to a pipeline: its coverage, the end of its sets, and what its lanes are told. One file a sink. */
import type { LiveTable } from "../core/coverage/live-table.ts";
import type { CommitListener, SetCommitter } from "../core/delivery/committer.ts";
import { type Failure, toWire } from "../core/failure/failure.ts";
import type { RawRetention, StreamCoverage, WindowCoverage } from "../core/ports/coverage.ts";
import type { Observer } from "../core/ports/observer.ts";
import type { VersionedStore } from "../core/ports/versioned-store.ts";
import type { ResolvedConfig } from "./config-file.ts";
import type { BatchLaneSink, LaneSink } from "./lane-config.ts";

/** Heartbeats that an owner misses before another machine may take its place. */
const LEASE_BEATS = 5;
export const HEARTBEAT_MS = 3_000;
export const LEASE_MS: number = LEASE_BEATS * HEARTBEAT_MS;

/** Members of a group enter a sink beside each other: the claims of their streams keep them apart. */
export function isShared(source: ResolvedConfig["source"]): boolean {
  return source.group !== undefined && source.group_protocol !== "none";
}

/** Passed at every named point, whoever names it. */
export type PointHook = (point: string) => void | Promise<void>;

export interface SinkContext {
  /** Part of set ids, which must be unique for ever. */
  readonly instance: string;
  /** Of `isShared`. */
  readonly shared: boolean;
  /** Worker threads, each with a writer of its own. */
  readonly lanes: number;
  /** Name of the thread that has a lane's number now; a lane that was replaced has another. */
  readonly laneLife?: (lane: number) => string;
  readonly observer: Observer;
  /** How long others may write nothing before recovery takes their place; absent: `LEASE_MS`. */
  readonly leaseMs?: number;
  readonly hook: PointHook | null;
  /** Null: it is the primary sink. */
  readonly secondary: SecondaryContext | null;
}

export interface SecondaryContext {
  /** Most bytes of memory in a lane. */
  readonly holdBytes: number;
  /** Outages of its coverage store; null: it works again. They are no trouble of the pipeline. */
  readonly trouble: (failure: Failure | null) => void;
}

/** A row group or a transaction of a secondary sink is no more of what it may hold. */
export const HOLD_SHARE = 4;

/** Who is told that the coverage store of a sink is in an outage, or out of it. */
export function coverageTrouble({ observer, secondary }: SinkContext): (failure: Failure | null) => void {
  if (secondary !== null) return secondary.trouble;
  return (f) =>
    observer.emit(f === null ? { e: "coverage.healthy" } : { e: "coverage.troubled", failure: toWire(f) });
}

export interface SinkParts {
  readonly coverage: StreamCoverage;
  /** The same, where recovery can fill it: beside live ingest. */
  readonly windows?: WindowCoverage;
  readonly committer: (listener: CommitListener) => SetCommitter;
  /** Of a table of decoded rows that is a folder of files. */
  readonly table?: LiveTable;
  /** What lanes are told that start now. */
  readonly lane: LaneSink;
  /** Where what was learned of schemas lies beside the coverage; absent: on this machine. */
  readonly schemas?: VersionedStore;
  /** Where it is written down by which plans records are decoded; absent: its records cannot be read again. */
  readonly plans?: VersionedStore;
  /** Where it is known how long its files are kept. */
  readonly retention?: RawRetention;
  /** Proves that the sink can be written, before anything is fetched. */
  prepare(): Promise<void>;
  /** Removes what earlier runs left unfinished; called once, after the first claims. */
  sweep(): Promise<void>;
  /** Takes over secrets that were read again, and so does `lane`. True if any differs. */
  renew(config: ResolvedConfig): boolean;
}

/** The same for a batch job: its lanes are told once the sink was prepared. */
export interface BatchSinkParts extends Omit<SinkParts, "lane" | "renew"> {
  lane(): BatchLaneSink;
}

/**
 * What the coverage object of a sink holds. One immutable value; `changes.ts` makes the next one from it, and
 * `state-json.ts` reads and writes it. The lists are small: what grows without end (the index of raw files)
 * moves to segments that the state only names.
 */
import type { Intent, LostRange, Tip, TopicMemory } from "../ports/coverage.ts";
import type { HostId } from "../ports/host-identity.ts";
import type { Span, StreamKey } from "../records/stream.ts";
import type { Ranges } from "./ranges.ts";

export const STATE_FORMAT = "twg.coverage";
export const STATE_VERSION = 1;

/** Tags of the last writers that are kept, to settle writes whose outcome is not known. */
export const WRITERS_KEPT = 32;

/** Larger is refused on reading and writing: far above a sane state (256 KiB), far below what hurts memory. */
export const MAX_STATE_BYTES = 8 * 1024 * 1024;

/** A process that has the store open. */
export interface Owner {
  readonly instance: string;
  readonly host: HostId;
  /** Wall time of the take-over, ms; for people only. */
  readonly since: number;
  /** Counts this owner's writes. Whoever sees it grow knows that the owner lives. */
  readonly beat: number;
}

export interface StreamState {
  readonly generation: number;
  /** Highest group epoch that claimed it; null if none ever did. */
  readonly groupEpoch: number | null;
  /** Instance that holds the generation; null after it left in order. */
  readonly owner: string | null;
  /** Where the stream was first read; null until that is recorded. The first one stays. */
  readonly origin: bigint | null;
  /** Recorded with the origin: a commit of the topic that had the name before; null: none. */
  readonly staleCommit: bigint | null;
  readonly covered: Ranges;
  readonly lost: readonly Omit<LostRange, "stream">[];
  /** Highest end of what is covered whose leader epoch is known. */
  readonly tip?: Tip;
}

export interface LeaseState {
  readonly lease: number;
  readonly owner: string;
}

/** A published object as the index knows it. */
export interface IndexedFile {
  readonly key: string;
  readonly bytes: number;
  readonly rows: number;
}

export interface IndexEntry {
  readonly id: string;
  readonly targets: readonly IndexedFile[];
  readonly spans: readonly Span[];
  readonly rows: number;
  readonly bytes: number;
}

export interface SegmentRef {
  readonly name: string;
  readonly entries: number;
  readonly files: number;
  readonly rows: number;
  readonly bytes: number;
  /** 0: spilled from the state; n: merged from segments of level n - 1. */
  readonly level: number;
}

export interface CoverageState {
  /** The version under which it is stored; a copy under another name is noticed. */
  readonly serial: number;
  readonly owners: readonly Owner[];
  readonly streams: ReadonlyMap<StreamKey, StreamState>;
  readonly leases: ReadonlyMap<string, LeaseState>;
  readonly topics: ReadonlyMap<string, TopicMemory>;
  /** By id, in the order in which they were intended. */
  readonly intents: ReadonlyMap<string, Intent>;
  /** Oldest first, newer than all segments. */
  readonly index: readonly IndexEntry[];
  readonly segments: readonly SegmentRef[];
  /** Newest last. */
  readonly writers: readonly string[];
}

export const EMPTY_STATE: CoverageState = {
  serial: 0,
  owners: [],
  streams: new Map(),
  leases: new Map(),
  topics: new Map(),
  intents: new Map(),
  index: [],
  segments: [],
  writers: [],
};

export const NEW_STREAM: StreamState = {
  generation: 0,
  groupEpoch: null,
  owner: null,
  origin: null,
  staleCommit: null,
  covered: [],
  lost: [],
};

/**
 * The coverage port: what of every stream is durable in a sink, who may write, and what is being written.
 * Section 5.4 of the design. All state changes are compare-and-swap on one small versioned object.
 */
import type { Failure } from "../failure/failure.ts";
import type { Span, StreamKey } from "../records/stream.ts";
import type { Target } from "./object-store.ts";

/**
 * Whose transactions write a stream, in a sink where that is what fences: whoever claims the stream after us takes
 * this identity over first, so nothing can be committed under it any more. Good for one life of one lane.
 */
export interface WriterIdentity {
  readonly id: string;
  readonly life: string;
  readonly producerId: bigint;
  readonly epoch: number;
}

/** The right to write a stream: a generation of a live owner, or a lease of a recovery window. */
export type Authority =
  | {
      readonly kind: "generation";
      readonly stream: StreamKey;
      readonly generation: number;
      readonly writer?: WriterIdentity;
    }
  | {
      readonly kind: "lease";
      readonly window: string;
      readonly lease: number;
      /** Of the window; absent where it is of no stream. Not stored, as the window's name tells it. */
      readonly stream?: StreamKey;
      readonly writer?: WriterIdentity;
    };

export interface Intent {
  readonly id: string;
  readonly targets: readonly Target[];
  readonly spans: readonly Span[];
  readonly authorities: readonly Authority[];
  readonly rows: number;
  readonly bytes: number;
}

export interface Range {
  readonly from: bigint;
  readonly next: bigint;
}

/** A range that will never be in the sink, with the reason. Never forgotten. */
export interface LostRange extends Range {
  readonly stream: StreamKey;
  readonly reason: "accepted_gap" | "retention" | "truncated" | "deleted";
}

export interface TopicMemory {
  readonly topicId: string;
  readonly incarnation: number;
}

export type IntendResult =
  | { readonly ok: true }
  | { readonly ok: false; readonly reason: "fenced" | "overlap" | "gone"; readonly detail: string };

export interface Claim {
  readonly stream: StreamKey;
  readonly authority: Authority;
  /** What was covered when the claim held, after settling everything that touched the stream. */
  readonly covered: readonly Range[];
  readonly lost: readonly Range[];
  /** The position from which everything is accounted for; null if it was never recorded. */
  readonly origin: bigint | null;
  /** A commit that is one of an earlier topic under the name and means nothing; null: none. */
  readonly staleCommit: bigint | null;
  /** Highest end of what is covered whose leader epoch is known. */
  readonly tip?: Tip;
}

/** The record before `position` was written in this leader epoch. */
export interface Tip {
  readonly position: bigint;
  readonly epoch: number;
}

/** Where a stream was first read: what lies above and is neither covered nor lost has yet to be read. */
export interface Origin {
  readonly stream: StreamKey;
  readonly position: bigint;
  /** What the broker held of an earlier topic under the name; null: nothing, or it counts. */
  readonly staleCommit: bigint | null;
}

/** How long raw is kept, and how old it is. */
export interface RawRetention {
  readonly retentionMs: number;
  /** Age of what holds the position, ms; null: it is not known, or gone. */
  readonly ageOf: (stream: StreamKey, position: bigint) => Promise<number | null>;
}

/** What every tier of coverage does, whatever the sink's class of delivery. */
export interface StreamCoverage {
  /** Takes the store for this process. Throws coverage.owned (environment) naming a living first owner. */
  open(): Promise<void>;
  /**
   * Raises the generation of each stream and settles whatever touches it. `groupEpoch` null: no group. `lanes`: which
   * one will write each.
   */
  claim(
    streams: readonly StreamKey[],
    groupEpoch: number | null,
    lanes?: readonly number[],
  ): Promise<readonly Claim[]>;
  /** They were given up in good order: nothing of them is written here any more, so whoever claims them fences nobody. */
  release?(streams: readonly StreamKey[]): Promise<void>;
  covered(stream: StreamKey): Promise<readonly Range[]>;
  recordLost(ranges: readonly LostRange[]): Promise<void>;
  /**
   * Called before the first record of a stream is read: a process that dies before anything is covered must not
   * begin at a later "latest", though the commit be gone by then. The first origin of a stream stays.
   */
  rememberOrigins(origins: readonly Origin[]): Promise<void>;
  topic(name: string): Promise<TopicMemory | null>;
  /**
   * Gives what holds then: what somebody else remembered meanwhile stays if it is of the same incarnation or a later one.
   * Members of a group see a topic that was made anew at the same time, and its streams must have one name.
   */
  rememberTopic(name: string, memory: TopicMemory): Promise<TopicMemory>;
  /** Raises the lease of that name: whoever had it before has it no more. */
  lease(window: string): Promise<Authority>;
  /**
   * Tells others that we live. The runner calls it on an interval. `heads`: from where on streams that we claimed are
   * our own, by what was settled so far: recovery may have what is below.
   */
  heartbeat(heads?: ReadonlyMap<StreamKey, bigint>): Promise<void>;
  /** Set when a compare-and-swap showed that another process took over. */
  readonly fenced: Failure | null;
  close(): Promise<void>;
}

/** A window that is ours, and what was covered of its stream when it became so. */
export interface LeasedWindow {
  readonly stream: StreamKey;
  readonly range: Range;
  readonly authority: Authority;
  readonly covered: readonly Range[];
}

/** Coverage that recovery enters beside live ingest: decision 0033. */
export interface WindowCoverage extends StreamCoverage {
  /**
   * At most one window within each span; those that we had end. What former holders left in them is settled. Throws
   * what the store throws: no outage is waited out.
   */
  leaseWindows(wanted: readonly Span[]): Promise<readonly LeasedWindow[]>;
  /**
   * Windows of others who live, as far as is known without waiting for anybody: what is planned goes around them. What is
   * granted does not rest on it.
   */
  othersHold(): Promise<readonly Span[]>;
  /** Nothing is written under them any more. */
  releaseWindows(): Promise<void>;
  /** Whether we have it, as far as was seen at the last heartbeat. */
  holds(window: LeasedWindow): boolean;
}

/** Coverage of a sink of two-phase objects: what is being published is written down before it is. */
export interface CoverageStore extends StreamCoverage {
  intend(intents: readonly Intent[]): Promise<readonly IntendResult[]>;
  /**
   * After publish: the intents become ranges and index entries. Idempotent. An intent that another owner settled
   * meanwhile answers ok if it was covered, "gone" if it was dropped: then all its streams rewind.
   */
  cover(ids: readonly string[]): Promise<readonly IntendResult[]>;
  /** Drops an intent whose targets were discarded. */
  settle(id: string, outcome: "abandoned"): Promise<void>;
}

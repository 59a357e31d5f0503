/**
 * The messages between the control thread and a lane. Everything here survives a structured clone; buffers are
 * transferred. A lane is the same object behind a Worker's port, in process (tests, simulation) or in a child.
 */
import type { FailureWire } from "../failure/failure.ts";
import type { FrameBundle } from "../records/frame.ts";
import type { Span, StreamId } from "../records/stream.ts";
import type { Authority } from "./coverage.ts";
import type { Target } from "./object-store.ts";

export interface LaneStream {
  readonly stream: number;
  readonly id: StreamId;
  readonly position: bigint;
  readonly attempt: number;
  /** Under which it is written: a sink that commits by itself proves it in its transaction. */
  readonly authority: Authority;
  /** Ranges above the position that are covered already: their records are read over and not written again. */
  readonly skip: readonly { readonly from: bigint; readonly next: bigint }[];
}

/** Rows that a sink refused one by one. */
export interface RefusedRows {
  /** How many, by why. They are durable among the rejects, but for those of `uncovered`. */
  readonly codes: readonly (readonly [code: string, rows: number])[];
  /** Positions of rows that could not be made durable there: they are not covered with the set. */
  readonly uncovered: readonly Span[];
  /** Why; null: there are none. */
  readonly failure: FailureWire | null;
}

/** Files closed together: durable under staging names, one intent, one unit of acknowledgement. */
export interface SealedSet {
  readonly id: string;
  readonly lane: number;
  /** Resets that the lane had seen when it sealed; a set of an older epoch is void. */
  readonly epoch: number;
  readonly targets: readonly Target[];
  readonly spans: readonly Span[];
  /** Rows and coverage are durable together already: nothing is left to intend, to publish or to cover. */
  readonly covered: boolean;
  readonly rows: number;
  readonly bytes: number;
  /** Wall time at which its oldest bytes arrived, ms, and how long closing its files took, ms. */
  readonly openedAt: number;
  readonly sealMs: number;
  /** Why it was closed. */
  readonly reason: SealReason;
  /** How many of the rows the sink had already, and did not take again; absent: none. */
  readonly there?: number;
  /** Of rows that the sink refused; absent: none. `spans` are without what is not covered. */
  readonly leftOut?: RefusedRows;
}

/** `branch`: a sink beside the primary one needs it, since nothing of it may become durable first. */
export type SealReason = "bytes" | "files" | "interval" | "drain" | "revoke" | "branch";

/** What a sink beside the primary one has to know of a stream; it gets nothing of the stream before. */
export interface BranchStream {
  readonly stream: number;
  readonly authority: Authority;
  /** Ranges that are covered in this sink already. */
  readonly skip: readonly { readonly from: bigint; readonly next: bigint }[];
}

/** To the lane's end of such a sink, which is named by its number. */
export type ToBranch =
  | { readonly t: "claims"; readonly streams: readonly BranchStream[] }
  /** A closed set may be sealed now. */
  | { readonly t: "go"; readonly id: string }
  /** A closed set can never land: what it comes after has a gap there. */
  | { readonly t: "drop"; readonly id: string }
  /** It landed, or was refused. */
  | { readonly t: "settled"; readonly id: string; readonly landed: boolean }
  /** It failed for good: nothing more is given to it. */
  | { readonly t: "off" };

/** Records of a batch that cannot be decoded, those of one code. */
export interface Undecodable {
  readonly code: string;
  readonly records: number;
  readonly topic: string;
  /** The first of them, as topic/partition@offset, and where in its value. */
  readonly first: string;
  readonly path: string;
}

export type FromBranch =
  /** No further record goes into the set; it waits for `go`. */
  | { readonly t: "closed"; readonly id: string; readonly epoch: number; readonly spans: readonly Span[] }
  | { readonly t: "sealed"; readonly set: SealedSet }
  | {
      readonly t: "refused";
      readonly id: string;
      readonly epoch: number;
      readonly reason: RefusalReason;
      readonly detail: string;
    }
  /** A set that was closed, and comes no more. */
  | { readonly t: "dropped"; readonly id: string }
  /** Positions that the primary sink got and this one did not: a gap. */
  | { readonly t: "missed"; readonly epoch: number; readonly spans: readonly Span[] }
  | { readonly t: "detached"; readonly failure: FailureWire; readonly pauseMs: number }
  | { readonly t: "attached" }
  | { readonly t: "undecodable"; readonly refused: readonly Undecodable[] }
  /** Records of a batch that were left out since an earlier one has their natural key. */
  | { readonly t: "duplicates"; readonly topic: string; readonly records: number }
  /** The sink failed and is tried again; null: it works again. */
  | { readonly t: "trouble"; readonly failure: FailureWire | null };

/** Why a set is not taken; the same words as those of an intent. */
export type RefusalReason = "fenced" | "overlap" | "gone";

export type ToLane =
  /** Adds streams, or moves known ones to a new attempt and position; what is buffered stays. */
  | { readonly t: "streams"; readonly streams: readonly LaneStream[] }
  /** These are not ours any more; nothing of them is held. */
  | { readonly t: "forget"; readonly streams: readonly number[] }
  | { readonly t: "frames"; readonly bundle: FrameBundle }
  /** Drop everything not sealed, forget all streams, and go on with these. Sealed sets not yet intended are void too. */
  | { readonly t: "reset"; readonly epoch: number; readonly streams: readonly LaneStream[] }
  /** Seal what there is; always answered by `rolled`, after any `sealed`. */
  | { readonly t: "roll"; readonly token: number; readonly reason: "drain" | "revoke" }
  /** To the lane's end of a sink beside the primary one. */
  | { readonly t: "branch"; readonly sink: number; readonly m: ToBranch }
  | { readonly t: "stop" };

export interface LaneCounts {
  readonly rows: number;
  readonly rawBytes: number;
  /** Time spent in decode and in encode+write since the last report, ms. */
  readonly decodeMs: number;
  readonly writeMs: number;
  /** Bytes held in memory by open files. */
  readonly held: number;
  /** Positions read over because they were covered already. */
  readonly skipped: bigint;
}

export type FromLane =
  | { readonly t: "ready" }
  /** The lane has read the bundle; its buffer comes back. */
  | {
      readonly t: "consumed";
      readonly buffer: ArrayBuffer;
      readonly bytes: number;
      readonly counts: LaneCounts;
    }
  | { readonly t: "sealed"; readonly set: SealedSet }
  | { readonly t: "rolled"; readonly token: number }
  /**
   * The sink did not take a set, since its streams are not ours any more or hold its positions already. The lane has
   * dropped it and forgotten its streams; it waits for a reset.
   */
  | {
      readonly t: "refused";
      readonly id: string;
      readonly epoch: number;
      readonly reason: RefusalReason;
      readonly detail: string;
    }
  /** A stream's bytes could not be read; rows before `position` are kept. The source decides: fetch again or stop. */
  | {
      readonly t: "broken";
      readonly stream: number;
      /** Of the frame; the stream may have been moved meanwhile. */
      readonly attempt: number;
      readonly position: bigint;
      readonly failure: FailureWire;
    }
  /** The sink failed. Retryable: the lane keeps its rows and tries again by itself, this only reports. */
  | { readonly t: "sink"; readonly failure: FailureWire | null }
  | { readonly t: "branch"; readonly sink: number; readonly m: FromBranch }
  /** The lane cannot go on; everything not sealed is lost. */
  | { readonly t: "dead"; readonly failure: FailureWire };

/** Control thread's end of a lane. */
export interface LanePort {
  post(message: ToLane, transfer?: ArrayBuffer[]): void;
  onMessage(handler: (message: FromLane) => void): void;
  /** Ends the host at once (terminates the Worker). */
  kill(): void;
}

/** What a sink beside the primary one is made of, for the control thread. */
import type { CommitListener, SetCommitter } from "../delivery/committer.ts";
import type { CoverageGate } from "../delivery/coverage-gate.ts";
import type { Failure } from "../failure/failure.ts";
import type { Authority, Range, StreamCoverage } from "../ports/coverage.ts";
import type { SealedSet, ToBranch } from "../ports/lane.ts";
import type { Observer } from "../ports/observer.ts";
import type { Span, StreamKey } from "../records/stream.ts";
import type { Clock } from "../time/clock.ts";

/** Number of the primary sink in what others come after. */
export const PRIMARY = -1;

export interface PlacedStream {
  readonly stream: number;
  readonly key: StreamKey;
  readonly lane: number;
  /** Where it is read from: nothing below is given to a sink. */
  readonly position: bigint;
  /** Above it what is not read: raw has it from before. */
  readonly skip: readonly Range[];
  /** Of the claim in the primary sink: who has the stream after us has a higher one. */
  readonly generation: number;
}

export interface SecondarySpec {
  readonly name: string;
  /** Numbers of the sinks that must have covered what this one shows. */
  readonly after: readonly number[];
  /** Its lanes make rows visible themselves, when they are told to go. */
  readonly commits: boolean;
  readonly coverage: StreamCoverage;
  readonly committer: (listener: CommitListener) => SetCommitter;
  /** Proves that it can be written; called again while that fails. */
  readonly prepare: () => Promise<void>;
  /**
   * What has to be durable of streams before a record from there on is given to its lanes. Resolves with those of which it is not, and
   * why; they are tried again. Rejects where it is of none.
   */
  readonly begin?: (
    streams: readonly Omit<PlacedStream, "stream" | "lane">[],
  ) => Promise<ReadonlyMap<StreamKey, Failure>>;
  readonly sweep: () => Promise<void>;
  /** Where its coverage store tells of outages that it waits out itself. */
  readonly outages: { tell: ((failure: Failure | null) => void) | null };
}

/** A stream of the run, as far as the sink has it. */
export interface Known {
  readonly stream: number;
  readonly key: StreamKey;
  readonly lane: number;
  /** Null: not claimed here (yet). */
  authority: Authority | null;
  skip: readonly { readonly from: bigint; readonly next: bigint }[];
  /** The lane was told. */
  placed: boolean;
}

/** A set that a lane has closed and that is not settled. */
export interface Held {
  readonly id: string;
  readonly lane: number;
  spans: readonly Span[];
  sealed: SealedSet | null;
  /** Submitted, or the lane was told to commit: it comes to its end by itself. */
  gone: boolean;
}

export interface SecondaryParts {
  readonly clock: Clock;
  readonly observer: Observer;
  readonly gate: CoverageGate;
  readonly post: (lane: number, m: ToBranch) => void;
  /** The sink covered or missed something: others may wait for it. */
  readonly moved: () => void;
}

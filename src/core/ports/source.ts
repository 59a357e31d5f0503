/**
 * A source with broker positions. It fetches bytes, splits them in frames by reading batch headers only, and
 * hands them to lanes. It never decides where to begin: the runner does, from commits and coverage.
 */
import type { Failure } from "../failure/failure.ts";
import type { FrameBundle } from "../records/frame.ts";
import type { StreamId } from "../records/stream.ts";

/** A partition that was found, with everything that the start rule needs. */
export interface FoundStream {
  readonly transport: "kafka";
  readonly cluster: string;
  readonly topic: string;
  readonly partition: number;
  /** Broker's id of the topic (hex or base64), null where it has none. */
  readonly topicId: string | null;
  /** Position committed to the broker for our group, null if none. */
  readonly committed: bigint | null;
  readonly earliest: bigint;
  readonly latest: bigint;
  /** Position that a start by timestamp resolved to; absent otherwise. */
  readonly startAt?: bigint;
  /** It came while the source ran: all that it holds was written since, so a start at the end would leave it out. */
  readonly appeared?: boolean;
}

export interface StreamStart {
  readonly id: StreamId;
  /** Index for frames, seeks and acknowledgements. */
  readonly stream: number;
  readonly lane: number;
  readonly position: bigint;
  readonly attempt: number;
  /** The commit that was found is one of an earlier topic under the name: nothing of it counts. */
  readonly stale?: boolean;
  /** Leader epoch of the record before `position`, where coverage knows it. */
  readonly leaderEpoch?: number;
}

export interface SourceHost {
  readonly lanes: number;
  /**
   * Applies the start rule to all found streams at once and claims them. `groupEpoch`: generation or member epoch under
   * which the group gave them to us, null: no group. Rejects with coverage.epoch_behind, and begins none, if one was
   * claimed under a later epoch.
   */
  begin(found: readonly FoundStream[], groupEpoch: number | null): Promise<readonly StreamStart[]>;
  /** Bytes that the lane can take now; 0 = do not fetch. */
  room(lane: number): number;
  /** Calls back once as soon as `room(lane)` is above zero again. */
  whenRoom(lane: number, wake: () => void): void;
  /** A pooled buffer of at least `bytes`; it comes back through the pool after the lane has read it. */
  takeBuffer(bytes: number): ArrayBuffer;
  giveBuffer(buffer: ArrayBuffer): void;
  /** Transfers the bundle to the lane. */
  deliver(lane: number, bundle: FrameBundle): void;
  /** End of the log as this reader may see it (last stable offset when reading committed), and its start. */
  watermark(stream: number, end: bigint, start: bigint): void;
  /** Source health: reachable or not, with the last failure. A retryable one is only reported. */
  healthy(): void;
  troubled(failure: Failure): void;
  /**
   * So many partitions are known and cannot be begun yet (no leader, no answer): they will be, so nothing is caught
   * up before. Told before `begin` of the others.
   */
  awaited(partitions: number): void;
  /** The stream is gone at the source (its topic was deleted): what was not fetched of it nobody can read any more. */
  gone(stream: number): Promise<void>;
  /**
   * They go to another member, and nothing of them is delivered any more. Resolves when what was delivered is durable
   * and acknowledged. Streams that stay are not held up. `why`, for people: it is told in place of "another member".
   */
  release(streams: readonly number[], why?: string): Promise<void>;
  /** They are another member's already. Resolves when nothing of them can be written here any more. */
  abandon(streams: readonly number[]): Promise<void>;
  /** Records at the source that nobody can read any more (retention, truncation) and whose loss the policy accepts. */
  lost(stream: number, from: bigint, next: bigint, reason: "retention" | "truncated"): Promise<void>;
}

export interface AckMark {
  readonly stream: number;
  /** Everything below is durable in the primary raw sink. */
  readonly next: bigint;
}

export interface Source {
  /** Runs until `stop`, or rejects with the Failure that ends the job. */
  run(host: SourceHost): Promise<void>;
  /** Goes back (or on) to a position; frames fetched before carry an older attempt. */
  seek(stream: number, position: bigint, attempt: number): void;
  /**
   * Resolves with the group epoch once the broker has confirmed our membership in an answer to something that was
   * asked after this call; null at once where there is no membership. Streams that were lost are abandoned before.
   */
  confirmation(): Promise<number | null>;
  /**
   * Commits to the broker; resolves when the broker has answered, with the marks it was told. The others are of streams
   * that are not read yet (they begin on this very turn) or any more. What a failed one carried has to be given again.
   */
  acknowledge(marks: readonly AckMark[]): Promise<readonly AckMark[]>;
  /** Leader epoch of the record before `next`, which was delivered and not acknowledged yet; null: not known. */
  leaderEpochBefore?(stream: number, next: bigint): number | null;
  /** Stops fetching; what was delivered stays delivered. `run` goes on until `close`. */
  pause(): void;
  close(): Promise<void>;
}

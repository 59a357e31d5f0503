/** A partition being read: where we are in it, and what keeps it from being fetched. */

import type { WantedPartition } from "./session/fetch-session.ts";
import type { TopicPartition } from "./source-offsets.ts";

/**
 * `fetching`: in the requests of its leader's loop (unless it is held for a moment).
 * `checking`: the leader has changed and the log may have been cut: nothing is fetched before that is known.
 * `stranded`: its position is out of range and the policy is being applied.
 * `leaving`: another member of the group gets it; what was fetched is finished.
 * `lost`: another member of the group has it by now; nothing of it is told any more.
 * `gone`: its topic was made anew; the partition of the new topic is another object.
 */
export type PartitionState = "fetching" | "checking" | "stranded" | "leaving" | "lost" | "gone";

/** Another replica than the leader to read from, for a while (KIP-392). */
interface Lease {
  readonly broker: number;
  /** Of the leader that named the replica: another leader decides anew. */
  readonly epoch: number;
  /** Monotonic time. */
  readonly until: number;
}

interface EpochStart {
  readonly from: bigint;
  readonly epoch: number;
}

export interface PartitionStart extends TopicPartition {
  readonly topicId: string;
  readonly stream: number;
  readonly lane: number;
  readonly position: bigint;
  readonly attempt: number;
  /** Leader epoch of the record before `position`, -1: unknown. */
  readonly epoch: number;
  readonly maxBytes: number;
}

export class Partition implements TopicPartition {
  readonly topic: string;
  readonly partition: number;
  /** Of the topic that the positions belong to, whatever metadata says later. */
  readonly topicId: string;
  readonly stream: number;
  readonly lane: number;
  state: PartitionState = "fetching";
  position: bigint;
  attempt: number;
  /** Raised whenever an answer under way has lost its meaning: a seek, a topic made anew. */
  version = 0;
  maxBytes: number;
  /** Leader epoch up to which the log is known not to have been cut below our position. */
  checkedEpoch = -1;
  /** Monotonic time before which it is left out of requests. */
  heldUntil = 0;
  /** Monotonic time before which no closer replica is wanted. */
  leaderUntil = 0;
  /** Errors in a row, for pauses and for giving up on damaged data. */
  failures = 0;
  end = -1n;
  start = -1n;
  #epochs: EpochStart[] = [];
  #lease: Lease | null = null;

  constructor(s: PartitionStart) {
    this.topic = s.topic;
    this.partition = s.partition;
    this.topicId = s.topicId;
    this.stream = s.stream;
    this.lane = s.lane;
    this.position = s.position;
    this.attempt = s.attempt;
    this.maxBytes = s.maxBytes;
    if (s.epoch >= 0) this.#epochs = [{ from: 0n, epoch: s.epoch }];
  }

  /** `topic/partition`, for messages. */
  get name(): string {
    return `${this.topic}/${this.partition}`;
  }

  /** Nothing of it is fetched any more. */
  get isLeft(): boolean {
    return this.state === "leaving" || this.state === "lost" || this.state === "gone";
  }

  /** Leader epoch of the last record fetched, -1: none or unknown. */
  get lastEpoch(): number {
    return this.#epochs[this.#epochs.length - 1]?.epoch ?? -1;
  }

  /**
   * True while the log may have been cut below the position by a leader of `epoch` that was not asked yet (KIP-320):
   * the records read last are of another epoch, an older one included, as where a cluster was set back.
   */
  mayBeCut(epoch: number): boolean {
    return epoch > this.checkedEpoch && this.lastEpoch >= 0 && epoch !== this.lastEpoch;
  }

  /** The leader names a closer replica. */
  readFrom(broker: number, epoch: number, until: number): void {
    this.#lease = { broker, epoch, until };
  }

  /** The closer replica failed: until then the leader is asked for the records themselves. */
  readFromLeader(until: number): void {
    this.#lease = null;
    this.leaderUntil = until;
  }

  /** Who is asked for its records now. */
  reader({ leader, epoch }: { readonly leader: number; readonly epoch: number }, now: number): number {
    const lease = this.#lease;
    // Without a leader nothing is known of who is up to date.
    if (lease === null || leader < 0 || lease.epoch !== epoch || lease.until <= now) return leader;
    return lease.broker;
  }

  /** Everything below `next` was fetched; its last batch was written in `epoch`. */
  fetched(next: bigint, epoch: number): void {
    if (epoch >= 0 && epoch !== this.lastEpoch) this.#epochs.push({ from: this.position, epoch });
    this.position = next;
  }

  /** Epoch to commit with a position; epochs that no later commit can need are forgotten. */
  epochBefore(next: bigint): number {
    while (this.#epochs.length > 1 && this.#epochs[1]!.from < next) this.#epochs.shift();
    const first = this.#epochs[0];
    return first !== undefined && first.from < next ? first.epoch : -1;
  }

  /** Epoch of the record before `next`, -1: unknown. */
  epochAt(next: bigint): number {
    return this.#epochs.findLast((e) => e.from < next)?.epoch ?? -1;
  }

  seek(position: bigint, attempt: number): void {
    // Going back, what lies below is known still; going on, over what was never read, it is not.
    this.#epochs = position > this.position ? [] : this.#epochs.filter((e) => e.from < position);
    this.position = position;
    this.attempt = attempt;
    this.version++;
    this.heldUntil = 0;
    if (!this.isLeft) this.state = "fetching";
  }

  wanted(requestEpoch: number): WantedPartition {
    return {
      topic: this.topic,
      topicId: this.topicId,
      partition: this.partition,
      leaderEpoch: requestEpoch,
      position: this.position,
      lastFetchedEpoch: this.lastEpoch,
      maxBytes: this.maxBytes,
    };
  }
}

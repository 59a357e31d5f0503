/**
 * What the two machines of group membership (classic and KIP-848) have in common: what they are fed and what they ask
 * of whoever joins them to a broker and a clock. No socket, no clock, no await inside.
 */

import type { Failure } from "../../../core/failure/failure.ts";
import type { AssignedPartition } from "../assignors/assignor.ts";
import type { TopicRacks } from "../assignors/racks.ts";
import type { ApiName, Draft, RequestOf, ResponseOf } from "../wire/protocol.ts";

export type GroupApi = "JoinGroup" | "SyncGroup" | "Heartbeat" | "LeaveGroup" | "ConsumerGroupHeartbeat";

type CallOf<A extends ApiName> = { readonly api: A; readonly body: Draft<RequestOf<A>> };
export type GroupCall = { [A in GroupApi]: CallOf<A> }[GroupApi];
export type GroupAnswer = {
  [A in GroupApi]: { readonly api: A; readonly body: ResponseOf<A>; readonly version: number };
}[GroupApi];

export interface TopicFacts {
  readonly name: string;
  /** ZERO_UUID: the brokers have none. */
  readonly id: string;
  readonly partitions: number;
  /** Of its replicas, by partition. Absent: they are not to be watched. */
  readonly racks?: readonly ReadonlySet<string>[];
}

/** Who a member is, for its commits. */
export interface Membership {
  readonly memberId: string;
  /** Generation, or member epoch. */
  readonly epoch: number;
}

export interface GroupListener {
  /** Ask the coordinator; answer by `answered` or `failed` with this id. `timeoutMs` null: as any request. */
  ask(id: number, call: GroupCall, timeoutMs: number | null): void;
  /** The coordinator is another broker by now, or cannot be reached: find it anew. */
  coordinatorLost(): void;
  /** We lead: how many partitions do these topics have, and in which racks? Answer by `counted`. */
  count(topics: readonly string[]): void;
  /** An assignment names topics that metadata does not know yet. */
  wantMetadata(): void;
  /** These are ours from now on. */
  assigned(partitions: readonly AssignedPartition[]): void;
  /** Finish what is under way for these, then call `released`. Others may not be kept waiting meanwhile. */
  revoke(partitions: readonly AssignedPartition[]): void;
  /** These are somebody else's by now: nothing more of them may be written. */
  lost(partitions: readonly AssignedPartition[]): void;
  /** The broker holds us for a member, as of a request that was asked under this id. */
  confirmed(id: number, epoch: number): void;
  /** Something that members come and go by, for people. */
  told(what: string): void;
  /** Membership is over, and trying again would not help. */
  ended(failure: Failure): void;
}

export interface GroupMachine {
  /** Time of the next `tick`, null: none is needed. */
  readonly wakeAt: number | null;
  /** Null while commits must wait: not a member, or between two generations. */
  readonly membership: Membership | null;
  start(now: number): void;
  tick(now: number): void;
  answered(id: number, answer: GroupAnswer, now: number): void;
  failed(id: number, failure: Failure, now: number): void;
  counted(partitions: ReadonlyMap<string, number>, racks: TopicRacks, now: number): void;
  released(now: number): void;
  /** `names`: what we subscribe to from now on. `facts`: what metadata has of them, and of those that are `watched`. */
  topics(names: readonly string[], facts: readonly TopicFacts[], now: number): void;
  /** Topics of other members whose partitions we have to know, since we lead. */
  readonly watched: readonly string[];
  /** The next heartbeat is due now: somebody wants to know whether we are still a member. */
  heartbeatSoon(now: number): void;
  /** What to send at the end, null: nothing. Nothing is asked afterwards. */
  leave(): GroupCall | null;
}

/**
 * What every assignor gets and gives. All of them are pure, so that any member may lead the group and come to the
 * same result, and they give what Kafka's own assignors of the same name give for the same subscriptions.
 */
import type { Subscription } from "../wire/consumer-protocol.ts";
import type { TopicRacks } from "./racks.ts";

export interface GroupMember {
  readonly memberId: string;
  readonly instanceId: string | null;
  readonly subscription: Subscription;
}

export interface AssignedPartition {
  readonly topic: string;
  readonly partition: number;
}

/** By member id; every member has an entry. */
export type GroupAssignment = ReadonlyMap<string, readonly AssignedPartition[]>;

export interface Assignor {
  /** In JoinGroup. */
  readonly name: string;
  /** A cooperative one never gives a partition to a member while another still owns it. */
  readonly cooperative: boolean;
  /**
   * `partitions`: how many each topic has; topics that nobody knows are missing and are left out. `racks`: of their
   * replicas, where the brokers tell them.
   */
  assign(
    partitions: ReadonlyMap<string, number>,
    members: readonly GroupMember[],
    racks?: TopicRacks,
  ): GroupAssignment;
  /** What the member's next subscription carries for this assignor, of the partitions that it had last. */
  userData?(owned: readonly AssignedPartition[], generation: number): Uint8Array | null;
}

export const byText = (a: string, b: string): number => (a < b ? -1 : Number(a > b));

/** The order in which Kafka's assignors take members: static ones by instance id, before the others by member id. */
export function byMember(a: GroupMember, b: GroupMember): number {
  if (a.instanceId !== null && b.instanceId !== null) return byText(a.instanceId, b.instanceId);
  if (a.instanceId !== null) return -1;
  if (b.instanceId !== null) return 1;
  return byText(a.memberId, b.memberId);
}

/** All topics that somebody subscribes to and that exist, by name. A Map knows no special names. */
export function subscribed(
  partitions: ReadonlyMap<string, number>,
  members: readonly GroupMember[],
): [topic: string, partitions: number][] {
  const topics = [...new Set(members.flatMap((m) => m.subscription.topics))].sort(byText);
  return topics.flatMap((t): [string, number][] => {
    const n = partitions.get(t) ?? 0;
    return n > 0 ? [[t, n]] : [];
  });
}

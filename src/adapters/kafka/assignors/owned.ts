/**
 * Who may keep what: of each partition the member that claims it in the highest generation. One that two have claimed
 * in the same generation, as they come in Java's order, is nobody's, since nobody can tell which of them is right.
 * Members that tell no generation count as one before the oldest.
 */
import type { AssignedPartition, GroupMember } from "./assignor.ts";
import { javaMapOrder } from "./java-order.ts";

export interface Claim {
  readonly memberId: string;
  readonly generation: number;
  readonly partitions: readonly AssignedPartition[];
}

export interface Owned {
  readonly byMember: ReadonlyMap<string, readonly AssignedPartition[]>;
  /** "topic/partition" of those that two members claim. */
  readonly disputed: ReadonlySet<string>;
}

export const keyOfPartition = (p: AssignedPartition): string => `${p.topic}/${p.partition}`;

/** `partitions`: what exists; anything else that a member claims is gone. */
export function ownedBy(
  claims: readonly Claim[],
  members: readonly GroupMember[],
  partitions: ReadonlyMap<string, number>,
): Owned {
  const subscriptions = new Map(members.map((m) => [m.memberId, m.subscription.topics]));
  const owner = new Map<string, { memberId: string; generation: number }>();
  const disputed = new Set<string>();
  const kept = new Map<string, Map<string, AssignedPartition>>(claims.map((c) => [c.memberId, new Map()]));
  const order = javaMapOrder(claims.map((c) => c.memberId)).map(
    (id) => claims.find((c) => c.memberId === id)!,
  );
  for (const { memberId, generation, partitions: claimed } of order) {
    for (const p of claimed) {
      const exists = p.partition >= 0 && p.partition < (partitions.get(p.topic) ?? 0);
      if (!exists || subscriptions.get(memberId)?.includes(p.topic) !== true) continue;
      const key = keyOfPartition(p);
      const other = owner.get(key);
      if (other !== undefined && other.memberId !== memberId) {
        if (other.generation === generation) {
          // Both keep their claim to it out of the count: it goes to whoever is due.
          disputed.add(key);
          continue;
        }
        if (other.generation > generation) continue;
        kept.get(other.memberId)?.delete(key);
      }
      owner.set(key, { memberId, generation });
      kept.get(memberId)?.set(key, p);
    }
  }
  for (const list of kept.values()) for (const key of disputed) list.delete(key);
  return { byMember: new Map([...kept].map(([id, list]) => [id, [...list.values()]])), disputed };
}

/**
 * Racks in an assignment (KIP-881): a member had better read partitions that have a replica in its own rack, as long as
 * that costs no balance. Racks are used only where they tell anything: some member's rack holds replicas, and not every
 * partition has replicas in the same racks.
 */
import type { AssignedPartition, GroupMember } from "./assignor.ts";

/** Of each topic, by partition: the racks of all its replicas, of those too that are not in sync or offline. */
export type TopicRacks = ReadonlyMap<string, readonly ReadonlySet<string>[]>;

export const NO_RACKS: TopicRacks = new Map();
const NOWHERE: ReadonlySet<string> = new Set();

/** By member id; members that tell none are missing. */
export function memberRacks(members: readonly GroupMember[]): ReadonlyMap<string, string> {
  return new Map(
    members.flatMap(({ memberId, subscription: { rackId } }): [string, string][] =>
      rackId === null || rackId === "" ? [] : [[memberId, rackId]],
    ),
  );
}

export function racksOf(racks: TopicRacks, { topic, partition }: AssignedPartition): ReadonlySet<string> {
  return racks.get(topic)?.[partition] ?? NOWHERE;
}

/** Whether racks make a difference between these partitions, for members in these racks. */
export function racksMatter(members: Iterable<string>, partitions: readonly ReadonlySet<string>[]): boolean {
  const all = new Set(partitions.flatMap((racks) => [...racks]));
  if (![...members].some((rack) => all.has(rack))) return false;
  return partitions.some((racks) => racks.size < all.size);
}

/** What a sticky assignor asks. */
export class RackMatch {
  /** By member id; empty where racks do not matter. */
  readonly members: ReadonlyMap<string, string>;
  readonly #told: ReadonlyMap<string, string>;
  readonly #racks: TopicRacks;

  constructor(members: readonly GroupMember[], all: readonly AssignedPartition[], racks: TopicRacks) {
    this.#told = memberRacks(members);
    this.#racks = racks;
    const sets = all.map((p) => racksOf(racks, p));
    this.members = racksMatter(this.#told.values(), sets) ? this.#told : new Map();
  }

  /** The member has a rack, and the partition no replica in it. */
  mismatch(memberId: string, p: AssignedPartition): boolean {
    const rack = this.members.get(memberId);
    return rack !== undefined && !racksOf(this.#racks, p).has(rack);
  }

  /** The member has a rack with a replica of the partition. */
  match(memberId: string, p: AssignedPartition): boolean {
    const rack = this.members.get(memberId);
    return rack !== undefined && racksOf(this.#racks, p).has(rack);
  }

  /** The fewer members could read it nearby, the earlier it is given. */
  byChoice(partitions: readonly AssignedPartition[]): AssignedPartition[] {
    const counts = new Map<string, number>();
    for (const rack of this.#told.values()) counts.set(rack, (counts.get(rack) ?? 0) + 1);
    const choice = (p: AssignedPartition) =>
      [...racksOf(this.#racks, p)].reduce((n, rack) => n + (counts.get(rack) ?? 0), 0);
    return partitions
      .map((p) => ({ p, choice: choice(p) }))
      .sort((a, b) => a.choice - b.choice)
      .map((e) => e.p);
  }
}

/**
 * `range`: of each topic every member takes a run of partitions, the first ones a partition more where they do not
 * divide. Topics with as many partitions and the same members are cut alike, so that equal keys meet.
 *
 * Where racks matter each member first takes, within its share, partitions that have a replica in its rack; of topics
 * that are cut alike only those partitions of which this holds in all of them.
 */
import {
  type AssignedPartition,
  type Assignor,
  byMember,
  type GroupAssignment,
  type GroupMember,
  subscribed,
} from "./assignor.ts";
import { memberRacks, NO_RACKS, racksMatter, racksOf, type TopicRacks } from "./racks.ts";

class TopicShares {
  readonly topic: string;
  readonly count: number;
  readonly takers: readonly string[];
  readonly racksMatter: boolean;
  readonly #rackOf: ReadonlyMap<string, string>;
  readonly #racks: TopicRacks;
  #open: number[];
  readonly #each: number;
  #extra: number;
  readonly #taken = new Map<string, number>();

  constructor(
    topic: string,
    count: number,
    takers: readonly string[],
    rackOf: ReadonlyMap<string, string>,
    racks: TopicRacks,
  ) {
    this.topic = topic;
    this.count = count;
    this.takers = takers;
    this.#rackOf = rackOf;
    this.#racks = racks;
    this.#open = Array.from({ length: count }, (_, p) => p);
    this.#each = Math.floor(count / takers.length);
    this.#extra = count % takers.length;
    const mine = takers.flatMap((id) => rackOf.get(id) ?? []);
    this.racksMatter = racksMatter(
      mine,
      this.#open.map((partition) => racksOf(racks, { topic, partition })),
    );
  }

  /** Topics of one key are cut alike. */
  get key(): string {
    return JSON.stringify([this.count, this.takers]);
  }

  room(id: string): number {
    return Math.max(0, this.#each + (this.#extra > 0 ? 1 : 0) - (this.#taken.get(id) ?? 0));
  }

  /** True as well for a member that tells no rack. */
  fits(id: string, partition: number): boolean {
    const rack = this.#rackOf.get(id);
    return rack === undefined || racksOf(this.#racks, { topic: this.topic, partition }).has(rack);
  }

  /** Partitions that nobody has yet, in their order, and that the member may take within its share. */
  take(id: string, may: (partition: number) => boolean): AssignedPartition[] {
    const mine = this.#open.filter(may).slice(0, this.room(id));
    if (mine.length === 0) return [];
    const taken = (this.#taken.get(id) ?? 0) + mine.length;
    this.#taken.set(id, taken);
    if (taken > this.#each) this.#extra--;
    const gone = new Set(mine);
    this.#open = this.#open.filter((p) => !gone.has(p));
    return mine.map((partition) => ({ topic: this.topic, partition }));
  }
}

type Give = (id: string, partitions: readonly AssignedPartition[]) => void;

export const range: Assignor = {
  name: "range",
  cooperative: false,
  assign(partitions, members, racks = NO_RACKS): GroupAssignment {
    const out = new Map<string, AssignedPartition[]>(members.map((m) => [m.memberId, []]));
    const give: Give = (id, list) => void out.get(id)?.push(...list);
    const topics = sharesOf(partitions, members, racks);
    if (topics.some((t) => t.racksMatter)) {
      for (const alike of Map.groupBy(topics, (t) => t.key).values()) {
        if (alike.length > 1) takeTogether(alike, give);
        else if (alike[0]!.racksMatter) takeNearby(alike[0]!, give);
      }
    }
    for (const t of topics)
      for (const id of t.takers)
        give(
          id,
          t.take(id, () => true),
        );
    return out;
  },
};

function sharesOf(
  partitions: ReadonlyMap<string, number>,
  members: readonly GroupMember[],
  racks: TopicRacks,
): TopicShares[] {
  const sorted = [...members].sort(byMember);
  const rackOf = memberRacks(members);
  return subscribed(partitions, members).map(([topic, count]) => {
    const takers = sorted.filter((m) => m.subscription.topics.includes(topic)).map((m) => m.memberId);
    return new TopicShares(topic, count, takers, rackOf, racks);
  });
}

function takeNearby(t: TopicShares, give: Give): void {
  for (const id of t.takers)
    give(
      id,
      t.take(id, (p) => t.fits(id, p)),
    );
}

function takeTogether(topics: readonly TopicShares[], give: Give): void {
  const { takers, count } = topics[0]!;
  for (let partition = 0; partition < count; partition++) {
    const id = takers.find((m) => topics.every((t) => t.room(m) > 0 && t.fits(m, partition)));
    if (id === undefined) continue;
    for (const t of topics)
      give(
        id,
        t.take(id, (p) => p === partition),
      );
  }
}

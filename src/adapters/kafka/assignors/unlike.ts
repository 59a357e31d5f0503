/**
 * Sticky shares of members that do not subscribe to the same topics. Everybody keeps what it has, what is open goes to
 * whoever has least, and then partitions move: first as long as that makes the shares more even, then as long as more
 * of them have a replica in their member's rack and the shares stay as even.
 *
 * Every move lowers the sum of the squared shares, or leaves it and lowers the number of partitions far from their
 * member. So it ends, and where nothing is open and nothing better nothing moves: a cooperative group settles.
 */
import { type AssignedPartition, byText, type GroupAssignment, type GroupMember } from "./assignor.ts";
import { keyOfPartition } from "./owned.ts";
import type { RackMatch } from "./racks.ts";

class Shares {
  readonly out: Map<string, AssignedPartition[]>;
  readonly #takers = new Map<string, readonly string[]>();
  readonly #nearby: RackMatch;

  constructor(members: readonly GroupMember[], topics: ReadonlySet<string>, nearby: RackMatch) {
    this.out = new Map(members.map((m) => [m.memberId, []]));
    this.#nearby = nearby;
    for (const topic of topics) {
      const ids = members.filter((m) => m.subscription.topics.includes(topic)).map((m) => m.memberId);
      this.#takers.set(topic, ids.sort(byText));
    }
  }

  takers({ topic }: AssignedPartition): readonly string[] {
    return this.#takers.get(topic) ?? [];
  }

  size(id: string): number {
    return this.out.get(id)?.length ?? 0;
  }

  isFar(id: string, p: AssignedPartition): boolean {
    return this.#nearby.mismatch(id, p);
  }

  /** Who has least of those that may have it; of two with as little the nearer one. */
  best(p: AssignedPartition): string | undefined {
    const worse = (a: string, b: string) =>
      this.size(a) - this.size(b) || Number(this.isFar(a, p)) - Number(this.isFar(b, p));
    return this.takers(p).reduce<string | undefined>(
      (a, b) => (a === undefined || worse(b, a) < 0 ? b : a),
      undefined,
    );
  }

  move(p: AssignedPartition, from: string, to: string): void {
    const list = this.out.get(from)!;
    list.splice(list.indexOf(p), 1);
    this.out.get(to)!.push(p);
  }

  heaviest(): readonly [id: string, partitions: readonly AssignedPartition[]][] {
    return [...this.out].sort((a, b) => b[1].length - a[1].length || byText(a[0], b[0]));
  }
}

export function assignUnlike(
  members: readonly GroupMember[],
  all: readonly AssignedPartition[],
  owned: ReadonlyMap<string, readonly AssignedPartition[]>,
  nearby: RackMatch,
): GroupAssignment {
  const s = new Shares(members, new Set(all.map((p) => p.topic)), nearby);
  const taken = new Set<string>();
  for (const [id, list] of owned) {
    s.out.get(id)?.push(...list);
    for (const p of list) taken.add(keyOfPartition(p));
  }
  const open = all.filter((p) => !taken.has(keyOfPartition(p)));
  open.sort((a, b) => s.takers(a).length - s.takers(b).length);
  for (const p of open) s.out.get(s.best(p) ?? "")?.push(p);
  do while (even(s) || evenByChain(s));
  while (nearer(s));
  return s.out;
}

/** Moves one partition from a member to one that has at least two fewer. */
function even(s: Shares): boolean {
  for (const [id, mine] of s.heaviest()) {
    for (let i = mine.length - 1; i >= 0; i--) {
      const p = mine[i]!;
      const to = s.best(p);
      if (to === undefined || mine.length <= s.size(to) + 1) continue;
      s.move(p, id, to);
      return true;
    }
  }
  return false;
}

/** Where no single move helps: one partition each along a chain of members, to one that has at least two fewer. */
function evenByChain(s: Shares): boolean {
  for (const [start, mine] of s.heaviest()) {
    const links = new Map<string, { readonly from: string; readonly p: AssignedPartition }>();
    const reached = [start];
    for (const from of reached) {
      for (const p of s.out.get(from)!) {
        for (const to of s.takers(p)) {
          if (to === start || links.has(to)) continue;
          links.set(to, { from, p });
          reached.push(to);
        }
      }
    }
    const end = reached.find((id) => s.size(id) <= mine.length - 2);
    if (end === undefined) continue;
    for (let to = end; to !== start; to = links.get(to)!.from)
      s.move(links.get(to)!.p, links.get(to)!.from, to);
    return true;
  }
  return false;
}

/** Each partition that is far from its member goes to one near it that has fewer, or is exchanged. True: some were. */
function nearer(s: Shares): boolean {
  let moved = false;
  for (const [id, mine] of s.out) {
    for (const p of mine.filter((q) => s.isFar(id, q))) {
      const near = s.takers(p).filter((to) => to !== id && !s.isFar(to, p));
      const fewer = near.find((to) => s.size(to) < s.size(id));
      if (fewer !== undefined) {
        s.move(p, id, fewer);
        moved = true;
      } else if (near.some((to) => exchange(s, p, id, to))) moved = true;
    }
  }
  return moved;
}

/** For one that `id` may have and that is no farther from it than from `to`. */
function exchange(s: Shares, p: AssignedPartition, id: string, to: string): boolean {
  const back = s.out.get(to)!.find((q) => s.takers(q).includes(id) && (!s.isFar(id, q) || s.isFar(to, q)));
  if (back === undefined) return false;
  s.move(p, id, to);
  s.move(back, to, id);
  return true;
}

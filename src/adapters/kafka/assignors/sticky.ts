/**
 * `sticky` and `cooperative-sticky`: even, and as few partitions as possible change hands.
 *
 * Where all members subscribe to the same topics this is, member for member, what Kafka's own assignors give. Where
 * they do not, Kafka's search for a balance is bound to the order of its hash maps; ours is even as well and keeps
 * as much, and may place single partitions elsewhere. Only the leader's result counts, so that does no harm.
 */
import { ByteReader } from "../../../core/bytes/reader.ts";
import { ByteWriter } from "../../../core/bytes/writer.ts";
import { asFailure } from "../../../core/failure/failure.ts";
import { compileMessage } from "../wire/codec.ts";
import { field, list, type Message, structs } from "../wire/spec.ts";
import {
  type AssignedPartition,
  type Assignor,
  byText,
  type GroupAssignment,
  type GroupMember,
  subscribed,
} from "./assignor.ts";
import { javaMapOrder } from "./java-order.ts";
import { type Claim, keyOfPartition, type Owned, ownedBy } from "./owned.ts";

/** What the eager one keeps of its last assignment, since it owns nothing by the time it joins again. */
const stickyData: Message = {
  versions: [0, 1],
  flexible: null,
  fields: [
    structs("assignedPartitions", 0, [field("topic", "string", 0), list("partitions", "int32", 0)]),
    field("generation", "int32", 1, { preset: -1, mayBeCut: true }),
  ],
};

interface StickyData {
  readonly assignedPartitions: readonly { readonly topic: string; readonly partitions: readonly number[] }[];
  readonly generation: number;
}

const flat = (topics: StickyData["assignedPartitions"]): AssignedPartition[] =>
  topics.flatMap(({ topic, partitions }) => partitions.map((partition) => ({ topic, partition })));

/** By topic, in the order of their first partition. */
export function byTopic(
  owned: readonly AssignedPartition[],
): { readonly topic: string; readonly partitions: number[] }[] {
  const topics = new Map<string, number[]>();
  for (const { topic, partition } of owned) topics.set(topic, [...(topics.get(topic) ?? []), partition]);
  return [...topics].map(([topic, partitions]) => ({ topic, partitions }));
}

/** User data of a member is its own affair: what can't be read claims nothing. */
function readStickyData(bytes: Uint8Array | null): StickyData {
  const nothing = { assignedPartitions: [], generation: -1 };
  if (bytes === null || bytes.length === 0) return nothing;
  try {
    return compileMessage(stickyData, 1).decode(new ByteReader(bytes)) as unknown as StickyData;
  } catch (e) {
    if (asFailure(e).code === "internal.bug") throw e;
    return nothing;
  }
}

export const sticky: Assignor = {
  name: "sticky",
  cooperative: false,
  assign(partitions, members) {
    const claims = members.map(({ memberId, subscription: { userData } }): Claim => {
      const data = readStickyData(userData);
      return { memberId, generation: data.generation, partitions: flat(data.assignedPartitions) };
    });
    return assignSticky(partitions, members, ownedBy(claims, members, partitions));
  },
  userData(owned, generation) {
    if (owned.length === 0 && generation < 0) return null;
    const codec = compileMessage(stickyData, 1);
    const body = { assignedPartitions: byTopic(owned), generation };
    const w = new ByteWriter(codec.maxBytes(body));
    codec.encode(w, body);
    return w.view();
  },
};

export const cooperativeSticky: Assignor = {
  name: "cooperative-sticky",
  cooperative: true,
  assign(partitions, members) {
    const claims = members.map(({ memberId, subscription: s }): Claim => {
      // Clients before KIP-792 tell the generation in the user data, as one int32.
      const told = s.generationId >= 0 ? s.generationId : generationOf(s.userData);
      return { memberId, generation: told, partitions: flat(s.ownedPartitions) };
    });
    const owned = ownedBy(claims, members, partitions);
    return withoutTransfers(assignSticky(partitions, members, owned), owned);
  },
  userData(_owned, generation) {
    return new ByteWriter(4).i32(generation).view();
  },
};

function generationOf(userData: Uint8Array | null): number {
  return userData === null || userData.length < 4 ? -1 : new ByteReader(userData).i32();
}

/**
 * What somebody else still owns is left out this time: its owner gives it up, and the group assigns again. So is what
 * two claim in the same generation. A claim of an older one counts for nothing: that member has lost it already.
 */
function withoutTransfers(target: GroupAssignment, { byMember, disputed }: Owned): GroupAssignment {
  const owner = new Map<string, string>();
  for (const [id, list] of byMember) for (const p of list) owner.set(keyOfPartition(p), id);
  const free = (id: string, p: AssignedPartition) => {
    const key = keyOfPartition(p);
    return !disputed.has(key) && (owner.get(key) ?? id) === id;
  };
  return new Map([...target].map(([id, list]) => [id, list.filter((p) => free(id, p))]));
}

function assignSticky(
  partitions: ReadonlyMap<string, number>,
  members: readonly GroupMember[],
  owned: Owned,
): GroupAssignment {
  const topics = subscribed(partitions, members);
  const all = topics.flatMap(([topic, n]) =>
    Array.from({ length: n }, (_, partition) => ({ topic, partition })),
  );
  const first = new Set(members[0]?.subscription.topics);
  const alike = members.every((m) => {
    const mine = new Set(m.subscription.topics);
    return mine.size === first.size && [...mine].every((t) => first.has(t));
  });
  const ids = javaMapOrder(members.map((m) => m.memberId));
  return alike ? assignAlike(ids, all, owned) : assignUnlike(members, all, owned);
}

/** Members short of their share, in the order of their ids, are filled in turn. */
function assignAlike(
  ids: readonly string[],
  all: readonly AssignedPartition[],
  { byMember }: Owned,
): GroupAssignment {
  const least = Math.floor(all.length / ids.length);
  const most = Math.ceil(all.length / ids.length);
  const extras = all.length % ids.length;
  const out = new Map<string, AssignedPartition[]>();
  const short: string[] = [];
  const even: string[] = [];
  let full = 0;
  for (const id of ids) {
    const mine = [...(byMember.get(id) ?? [])].sort(
      (a, b) => a.partition - b.partition || byText(a.topic, b.topic),
    );
    const isFull = mine.length >= most && full < extras;
    out.set(id, mine.slice(0, isFull ? most : least));
    if (mine.length < least) {
      short.push(id);
    } else if (isFull) full++;
    else even.push(id);
  }
  const taken = new Set([...out.values()].flat().map(keyOfPartition));
  fill(
    out,
    all.filter((p) => !taken.has(keyOfPartition(p))),
    short.sort(byText),
    even.sort(byText),
    least,
    most,
  );
  return out;
}

/** First everybody up to the least share, then those with exactly that one partition more each. */
function fill(
  out: Map<string, AssignedPartition[]>,
  open: readonly AssignedPartition[],
  short: string[],
  even: string[],
  least: number,
  most: number,
): void {
  let turn = 0;
  for (const p of open) {
    if (turn >= short.length) turn = 0;
    const list = short.length > 0 ? short : even;
    if (list === even) turn = 0;
    const id = list[turn];
    const mine = id === undefined ? undefined : out.get(id);
    if (id === undefined || mine === undefined) return;
    mine.push(p);
    if (list === short && mine.length === least) {
      short.splice(turn, 1);
      even.push(id);
    } else if (mine.length >= most) list.splice(turn, 1);
    else turn++;
  }
}

/** Who subscribes to fewer topics is served first; then partitions move while that makes the shares more even. */
function assignUnlike(
  members: readonly GroupMember[],
  all: readonly AssignedPartition[],
  { byMember }: Owned,
): GroupAssignment {
  const takers = new Map<string, string[]>();
  for (const { topic } of all) {
    if (takers.has(topic)) continue;
    const ids = members.filter((m) => m.subscription.topics.includes(topic)).map((m) => m.memberId);
    takers.set(topic, ids.sort(byText));
  }
  const out = new Map<string, AssignedPartition[]>(members.map((m) => [m.memberId, []]));
  const size = (id: string) => out.get(id)?.length ?? 0;
  const leastOf = (ids: readonly string[]) => ids.reduce((a, b) => (size(b) < size(a) ? b : a));
  const taken = new Set<string>();
  for (const [id, list] of byMember) {
    out.get(id)?.push(...list);
    for (const p of list) taken.add(keyOfPartition(p));
  }
  const open = all.filter((p) => !taken.has(keyOfPartition(p)));
  open.sort((a, b) => (takers.get(a.topic)?.length ?? 0) - (takers.get(b.topic)?.length ?? 0));
  for (const p of open) out.get(leastOf(takers.get(p.topic) ?? []))?.push(p);
  while (improve(out, takers, leastOf));
  return out;
}

/** Moves one partition from a member to one that has at least two fewer. Each move lowers the sum of squares: it ends. */
function improve(
  out: Map<string, AssignedPartition[]>,
  takers: ReadonlyMap<string, readonly string[]>,
  leastOf: (ids: readonly string[]) => string,
): boolean {
  const heavy = [...out].sort((a, b) => b[1].length - a[1].length || byText(a[0], b[0]));
  for (const [, mine] of heavy) {
    for (let i = mine.length - 1; i >= 0; i--) {
      const p = mine[i]!;
      const to = out.get(leastOf(takers.get(p.topic) ?? []));
      if (to === undefined || mine.length <= to.length + 1) continue;
      mine.splice(i, 1);
      to.push(p);
      return true;
    }
  }
  return false;
}

/**
 * `sticky` and `cooperative-sticky`: even, and as few partitions as possible change hands.
 *
 * Where all members subscribe to the same topics this is, member for member, what Kafka's own assignors give. Where
 * they do not, Kafka's search for a balance is bound to the order of its hash maps; ours is even as well and keeps
 * as much, and may place single partitions elsewhere. Only the leader's result counts, so that does no harm.
 *
 * Where racks matter a member keeps only what has a replica in its rack; what is open goes first to members that have
 * one, and the rest to whoever is short.
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
import { NO_RACKS, RackMatch, type TopicRacks } from "./racks.ts";
import { assignUnlike } from "./unlike.ts";

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
  assign(partitions, members, racks = NO_RACKS) {
    const claims = members.map(({ memberId, subscription: { userData } }): Claim => {
      const data = readStickyData(userData);
      return { memberId, generation: data.generation, partitions: flat(data.assignedPartitions) };
    });
    return assignSticky(partitions, members, ownedBy(claims, members, partitions), racks);
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
  assign(partitions, members, racks = NO_RACKS) {
    const claims = members.map(({ memberId, subscription: s }): Claim => {
      // Clients before KIP-792 tell the generation in the user data, as one int32.
      const told = s.generationId >= 0 ? s.generationId : generationOf(s.userData);
      return { memberId, generation: told, partitions: flat(s.ownedPartitions) };
    });
    const owned = ownedBy(claims, members, partitions);
    return withoutTransfers(assignSticky(partitions, members, owned, racks), owned);
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
  racks: TopicRacks,
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
  const nearby = new RackMatch(members, all, racks);
  return alike ? assignAlike(ids, all, owned, nearby) : assignUnlike(members, all, owned.byMember, nearby);
}

/** The shares of members that subscribe alike, while they are filled. */
interface Filling {
  readonly out: Map<string, AssignedPartition[]>;
  /** Below the least share, by id. */
  readonly short: string[];
  /** At the least share, by id, as long as some of them get one partition more. */
  readonly even: string[];
  readonly least: number;
  readonly most: number;
  /** How many members get a partition more, and how many have it. */
  readonly extras: number;
  full: number;
}

/** Members short of their share, in the order of their ids, are filled in turn. */
function assignAlike(
  ids: readonly string[],
  all: readonly AssignedPartition[],
  { byMember }: Owned,
  nearby: RackMatch,
): GroupAssignment {
  const f: Filling = {
    out: new Map(),
    short: [],
    even: [],
    least: Math.floor(all.length / ids.length),
    most: Math.ceil(all.length / ids.length),
    extras: all.length % ids.length,
    full: 0,
  };
  for (const id of ids) {
    const mine = (byMember.get(id) ?? [])
      .filter((p) => !nearby.mismatch(id, p))
      .sort((a, b) => a.partition - b.partition || byText(a.topic, b.topic));
    const isFull = mine.length >= f.most && f.full < f.extras;
    f.out.set(id, mine.slice(0, isFull ? f.most : f.least));
    if (mine.length < f.least) f.short.push(id);
    else if (isFull) f.full++;
    else f.even.push(id);
  }
  if (f.full === f.extras) f.even.length = 0;
  f.short.sort(byText);
  f.even.sort(byText);
  const taken = new Set([...f.out.values()].flat().map(keyOfPartition));
  const open = nearby.byChoice(all.filter((p) => !taken.has(keyOfPartition(p))));
  fill(f, fillNearby(f, open, nearby));
  return f.out;
}

/** To members with a replica in their rack, within their shares. Returns what is left. */
function fillNearby(f: Filling, open: readonly AssignedPartition[], nearby: RackMatch): AssignedPartition[] {
  if (nearby.members.size === 0) return [...open];
  const left: AssignedPartition[] = [];
  let turn = 0;
  for (const p of open) {
    const n = f.short.length;
    const step = f.short.findIndex((_, i) => nearby.match(f.short[(turn + i) % n]!, p));
    if (step >= 0) {
      const at = (turn + step) % n;
      turn = giveShort(f, at, p) ? at : at + 1;
      turn = f.short.length === 0 ? 0 : turn % f.short.length;
      continue;
    }
    const at = f.even.findIndex((id) => nearby.match(id, p));
    if (at < 0) left.push(p);
    else giveEven(f, at, p);
  }
  return left;
}

/** True: the member has the least share by now, and is not short any more. */
function giveShort(f: Filling, at: number, p: AssignedPartition): boolean {
  const id = f.short[at]!;
  const mine = f.out.get(id)!;
  mine.push(p);
  if (mine.length < f.least) return false;
  f.short.splice(at, 1);
  if (f.full < f.extras) f.even.push(id);
  return true;
}

function giveEven(f: Filling, at: number, p: AssignedPartition): void {
  f.out.get(f.even[at]!)!.push(p);
  f.even.splice(at, 1);
  if (++f.full === f.extras) f.even.length = 0;
}

/** First everybody up to the least share in turn, then those with exactly that one partition more each. */
function fill(f: Filling, open: readonly AssignedPartition[]): void {
  let turn = 0;
  for (const p of open) {
    if (f.short.length > 0) {
      if (turn >= f.short.length) turn = 0;
      if (!giveShort(f, turn, p)) turn++;
    } else if (f.even.length > 0) giveEven(f, 0, p);
  }
}

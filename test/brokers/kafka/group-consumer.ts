/**
 * The coordinator's side of a KIP-848 group: it assigns by itself and brings each member there in steps. A member
 * first gives up what it may not keep (and says so by naming what it owns), then its epoch moves to that of the
 * target, and it gets what nobody else holds any more.
 */
import { ERROR } from "../../../src/adapters/kafka/wire/errors.ts";
import type {
  ConsumerGroupHeartbeatRequest,
  ConsumerGroupHeartbeatResponse,
  TopicIdPartitions,
} from "../../../src/adapters/kafka/wire/messages/consumer-group-heartbeat.ts";
import type { Draft } from "../../../src/adapters/kafka/wire/protocol.ts";
import type { Clock, Timer } from "../../../src/core/time/clock.ts";

const INVALID_REQUEST = 42;

interface Member {
  readonly id: string;
  readonly instanceId: string | null;
  topics: readonly string[];
  rebalanceMs: number;
  epoch: number;
  previousEpoch: number;
  /** "topic id/partition" */
  assigned: Set<string>;
  revoking: Set<string>;
  target: Set<string>;
  /** The assignment that it was told last. */
  told: string | null;
  session: Timer | null;
  revocation: Timer | null;
}

type Answer = Draft<ConsumerGroupHeartbeatResponse>;

export class ConsumerGroup {
  readonly #clock: Clock;
  readonly #topic: (name: string) => { readonly id: string; readonly partitions: number } | null;
  readonly #members = new Map<string, Member>();
  epoch = 0;
  sessionMs = 6_000;
  intervalMs = 500;
  #shape = "";

  constructor(clock: Clock, topic: (name: string) => { id: string; partitions: number } | null) {
    this.#clock = clock;
    this.#topic = topic;
  }

  get size(): number {
    return this.#members.size;
  }

  /** What each member may read now, as "topic id/partition". */
  get assignments(): ReadonlyMap<string, ReadonlySet<string>> {
    return new Map([...this.#members.values()].map((m) => [m.id, m.assigned]));
  }

  heartbeat(r: ConsumerGroupHeartbeatRequest): Answer {
    if (r.memberEpoch < 0) return this.#leave(r);
    // As real brokers do: a join says what it wants to read.
    if (r.memberEpoch === 0 && (r.subscribedTopicNames ?? []).length === 0)
      return { errorCode: INVALID_REQUEST };
    const member = r.memberEpoch === 0 ? this.#enter(r) : this.#members.get(r.memberId);
    if (member === undefined) return { errorCode: ERROR.UNKNOWN_MEMBER_ID };
    if (typeof member === "number") return { errorCode: member };
    const owned = r.topicPartitions === null ? null : flat(r.topicPartitions);
    if (r.memberEpoch !== 0 && !current(member, r.memberEpoch, owned)) {
      return { errorCode: ERROR.FENCED_MEMBER_EPOCH };
    }
    if (r.subscribedTopicNames !== null) member.topics = [...r.subscribedTopicNames].sort();
    if (r.rebalanceTimeoutMs >= 0) member.rebalanceMs = r.rebalanceTimeoutMs;
    this.#plan();
    this.#reconcile(member, owned);
    this.#watch(member);
    const text = [...member.assigned].sort().join();
    const news = member.told !== text || r.memberEpoch === 0 || owned !== null;
    member.told = text;
    return {
      errorCode: 0,
      memberId: member.id,
      memberEpoch: member.epoch,
      heartbeatIntervalMs: this.intervalMs,
      assignment: news ? { topicPartitions: nested(member.assigned) } : null,
    };
  }

  #enter(r: ConsumerGroupHeartbeatRequest): Member | number {
    const before =
      r.instanceId === null ? null : [...this.#members.values()].find((m) => m.instanceId === r.instanceId);
    if (before && before.id !== r.memberId) {
      if (before.epoch !== -2) return ERROR.UNRELEASED_INSTANCE_ID;
      this.#members.delete(before.id);
    }
    const known = this.#members.get(r.memberId);
    if (known !== undefined) return known;
    const member: Member = {
      id: r.memberId,
      instanceId: r.instanceId,
      topics: [],
      rebalanceMs: r.rebalanceTimeoutMs,
      epoch: 0,
      previousEpoch: 0,
      assigned: before ? before.assigned : new Set(),
      revoking: new Set(),
      target: before ? before.target : new Set(),
      told: null,
      session: null,
      revocation: null,
    };
    this.#members.set(r.memberId, member);
    return member;
  }

  #leave(r: ConsumerGroupHeartbeatRequest): Answer {
    const member = this.#members.get(r.memberId);
    if (member === undefined) return { errorCode: ERROR.UNKNOWN_MEMBER_ID };
    if (r.memberEpoch === -2) member.epoch = -2;
    else this.#remove(member);
    return { errorCode: 0, memberId: r.memberId, memberEpoch: r.memberEpoch };
  }

  #remove(m: Member): void {
    m.session?.cancel();
    m.revocation?.cancel();
    this.#members.delete(m.id);
    // Also where it comes back under the same id before anybody asks again.
    this.#shape = "";
  }

  commit(memberId: string, epoch: number): number {
    const m = this.#members.get(memberId);
    if (m === undefined) return ERROR.UNKNOWN_MEMBER_ID;
    return epoch === m.epoch ? ERROR.NONE : ERROR.STALE_MEMBER_EPOCH;
  }

  #watch(m: Member): void {
    m.session?.cancel();
    m.session = this.#clock.after(this.sessionMs, () => this.#remove(m));
  }

  /** A new target whenever members, subscriptions or topics have changed: even, and as much as possible stays. */
  #plan(): void {
    const members = [...this.#members.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
    const topics = [...new Set(members.flatMap((m) => m.topics))].sort();
    const found = topics.flatMap((name) => {
      const t = this.#topic(name);
      return t === null ? [] : [{ name, ...t }];
    });
    const shape = JSON.stringify([members.map((m) => [m.id, m.topics]), found]);
    if (shape === this.#shape) return;
    this.#shape = shape;
    this.epoch++;
    const before = new Map(members.flatMap((m) => [...m.target].map((p) => [p, m] as const)));
    for (const m of members) m.target = new Set();
    const all = found.flatMap((t) =>
      Array.from({ length: t.partitions }, (_, i) => ({ t, p: `${t.id}/${i}` })),
    );
    const most = Math.ceil(all.length / Math.max(members.length, 1));
    const open = all.filter(({ t, p }) => {
      const owner = before.get(p);
      const stays = owner?.topics.includes(t.name) === true && owner.target.size < most;
      if (stays) owner.target.add(p);
      return !stays;
    });
    for (const { t, p } of open) {
      const takers = members.filter((m) => m.topics.includes(t.name));
      const least = takers.sort((a, b) => a.target.size - b.target.size)[0];
      least?.target.add(p);
    }
  }

  #reconcile(m: Member, owned: ReadonlySet<string> | null): void {
    if (m.revoking.size > 0) {
      if (owned === null || [...m.revoking].some((p) => owned.has(p))) return;
      m.revoking.clear();
      m.revocation?.cancel();
    }
    const revoke = [...m.assigned].filter((p) => !m.target.has(p));
    if (revoke.length > 0 && m.epoch !== 0) {
      m.revoking = new Set(revoke);
      m.assigned = new Set([...m.assigned].filter((p) => m.target.has(p)));
      m.revocation = this.#clock.after(m.rebalanceMs, () => this.#remove(m));
      return;
    }
    m.assigned = new Set([...m.assigned].filter((p) => m.target.has(p)));
    const held = new Set(
      [...this.#members.values()].filter((o) => o !== m).flatMap((o) => [...o.assigned, ...o.revoking]),
    );
    for (const p of m.target) if (!held.has(p)) m.assigned.add(p);
    if (m.epoch !== this.epoch) m.previousEpoch = m.epoch;
    m.epoch = this.epoch;
  }
}

/** A member that lost the answer that raised its epoch may come with the one before, if it owns no more than it may. */
function current(m: Member, epoch: number, owned: ReadonlySet<string> | null): boolean {
  if (epoch === m.epoch) return true;
  return epoch === m.previousEpoch && owned !== null && [...owned].every((p) => m.assigned.has(p));
}

function flat(list: readonly TopicIdPartitions[]): Set<string> {
  return new Set(list.flatMap((t) => t.partitions.map((p) => `${t.topicId}/${p}`)));
}

function nested(partitions: ReadonlySet<string>): TopicIdPartitions[] {
  const topics = new Map<string, number[]>();
  for (const text of [...partitions].sort()) {
    const at = text.lastIndexOf("/");
    const id = text.slice(0, at);
    topics.set(id, [...(topics.get(id) ?? []), Number(text.slice(at + 1))]);
  }
  return [...topics].map(([topicId, list]) => ({ topicId, partitions: list }));
}

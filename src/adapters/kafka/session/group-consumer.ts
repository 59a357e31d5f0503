/**
 * A member of a KIP-848 group as a machine over answers and time. The broker assigns; the member heartbeats, gives
 * up what is not in the assignment any more, and says what it owns as soon as that has changed.
 *
 *   idle --start--> joining (epoch 0) --> member --fenced, or unknown--> joining
 *
 * A heartbeat carries everything after a join and after any failure, and else only what has changed: a field that is
 * left out means "as before". One heartbeat is under way at a time, since two of one epoch fence a member.
 */
import type { Failure } from "../../../core/failure/failure.ts";
import type { AssignedPartition } from "../assignors/assignor.ts";
import { byText } from "../assignors/assignor.ts";
import type {
  ConsumerGroupHeartbeatResponse,
  TopicIdPartitions,
} from "../wire/messages/consumer-group-heartbeat.ts";
import type { Pauses } from "./group-classic.ts";
import { fencedInstance, groupRefused, groupVerdict } from "./group-errors.ts";
import type {
  GroupAnswer,
  GroupCall,
  GroupListener,
  GroupMachine,
  Membership,
  TopicFacts,
} from "./group-machine.ts";

export interface ConsumerOptions {
  readonly group: string;
  /** A random UUID of this process. */
  readonly memberId: string;
  readonly instanceId: string | null;
  /** Those of the first join, unless others are told before. */
  readonly topics: readonly string[];
  readonly rackId: string | null;
  readonly serverAssignor: string | null;
  readonly rebalanceTimeoutMs: number;
  readonly pauses: Pauses;
}

interface Held extends AssignedPartition {
  readonly topicId: string;
}

const JOINS = 0;
const LEAVES = -1;
/** Of a static member: its partitions wait for it until the session ends. */
const LEAVES_FOR_A_WHILE = -2;

export class ConsumerGroupMember implements GroupMachine {
  readonly #o: ConsumerOptions;
  readonly #l: GroupListener;
  #phase: "idle" | "joining" | "member" | "ended" = "idle";
  #asks = 0;
  #ask: number | null = null;
  #at: number | null = null;
  #epoch = JOINS;
  /** The next heartbeat says everything. */
  #whole = true;
  /** What we own has changed since the broker was told. */
  #news = false;
  /** "topic id/partition" */
  #owned = new Map<string, Held>();
  #revoking = new Map<string, Held>();
  #target: readonly TopicIdPartitions[] = [];
  #names: ReadonlyMap<string, string> = new Map();
  #topics: readonly string[];
  /** What we subscribe to has changed since the broker was told. */
  #resubscribed = false;

  constructor(options: ConsumerOptions, listener: GroupListener) {
    this.#o = options;
    this.#topics = options.topics;
    this.#l = listener;
  }

  get wakeAt(): number | null {
    return this.#ask === null && this.#phase !== "ended" ? this.#at : null;
  }

  get membership(): Membership | null {
    return this.#phase === "member" ? { memberId: this.#o.memberId, epoch: this.#epoch } : null;
  }

  start(now: number): void {
    if (this.#phase !== "idle") return;
    this.#phase = "joining";
    this.#at = now;
    this.tick(now);
  }

  tick(now: number): void {
    if (this.#phase === "ended" || this.#ask !== null || this.#at === null || now < this.#at) return;
    // A join without topics is refused: it waits for one.
    if (this.#epoch === JOINS && this.#topics.length === 0) {
      this.#at = null;
      return;
    }
    const whole = this.#whole;
    const owned = whole || this.#news ? this.#nested() : null;
    this.#news = false;
    const { group, memberId, instanceId, rackId, rebalanceTimeoutMs, serverAssignor } = this.#o;
    const subscribedTopicNames = [...this.#topics].sort(byText);
    const isSubscription = whole || this.#resubscribed;
    this.#resubscribed = false;
    this.#ask = ++this.#asks;
    const call: GroupCall = {
      api: "ConsumerGroupHeartbeat",
      body: {
        groupId: group,
        memberId,
        memberEpoch: this.#epoch,
        instanceId,
        topicPartitions: owned,
        ...(whole ? { rackId, rebalanceTimeoutMs, serverAssignor } : {}),
        ...(isSubscription ? { subscribedTopicNames } : {}),
      },
    };
    this.#l.ask(this.#ask, call, null);
  }

  #nested(): TopicIdPartitions[] {
    const topics = new Map<string, number[]>();
    for (const { topicId, partition } of [...this.#owned.values(), ...this.#revoking.values()]) {
      topics.set(topicId, [...(topics.get(topicId) ?? []), partition]);
    }
    return [...topics].map(([topicId, partitions]) => ({ topicId, partitions }));
  }

  heartbeatSoon(now: number): void {
    this.#at = now;
  }

  counted(): void {}

  /** The brokers watch the topics of all members. */
  get watched(): readonly string[] {
    return [];
  }

  topics(names: readonly string[], facts: readonly TopicFacts[], now: number): void {
    const before = new Set(this.#topics);
    this.#topics = names;
    if ((names.length !== before.size || names.some((t) => !before.has(t))) && this.#phase !== "idle") {
      this.#resubscribed = true;
      this.#at = now;
    }
    this.#names = new Map(facts.map((t) => [t.id, t.name]));
    if (this.#phase === "member") this.#reconcile(now);
  }

  leave(): GroupCall | null {
    const isMember = this.#phase === "member" || this.#phase === "joining";
    this.#phase = "ended";
    if (!isMember) return null;
    const { group, memberId, instanceId } = this.#o;
    const memberEpoch = instanceId === null ? LEAVES : LEAVES_FOR_A_WHILE;
    return {
      api: "ConsumerGroupHeartbeat",
      body: { groupId: group, memberId, instanceId, memberEpoch, topicPartitions: this.#nested() },
    };
  }

  answered(id: number, answer: GroupAnswer, now: number): void {
    if (answer.api !== "ConsumerGroupHeartbeat" || id !== this.#ask || this.#phase === "ended") return;
    this.#ask = null;
    const { body } = answer;
    const verdict = groupVerdict(body.errorCode);
    if (verdict === "ok") return this.#onHeartbeat(id, body, now);
    this.#whole = true;
    this.#refused(verdict, body, now);
  }

  failed(id: number, failure: Failure, now: number): void {
    if (id !== this.#ask || this.#phase === "ended") return;
    this.#ask = null;
    if (!failure.retry) return this.#end(failure);
    // Whether the broker has seen it is unknown: the next one says everything.
    this.#whole = true;
    this.#l.coordinatorLost();
    this.#at = now + this.#o.pauses.next();
  }

  #onHeartbeat(id: number, r: ConsumerGroupHeartbeatResponse, now: number): void {
    this.#o.pauses.reset();
    if (this.#phase === "joining") {
      this.#l.told(`member ${this.#o.memberId} of epoch ${r.memberEpoch}`);
      this.#phase = "member";
    }
    this.#epoch = r.memberEpoch;
    this.#whole = false;
    this.#at = this.#resubscribed ? now : now + Math.max(1, r.heartbeatIntervalMs);
    if (r.assignment !== null) this.#target = r.assignment.topicPartitions;
    this.#l.confirmed(id, this.#epoch);
    this.#reconcile(now);
  }

  /** One step towards the target: first everything that has to go, then what is new. */
  #reconcile(now: number): void {
    if (this.#revoking.size > 0) return;
    const target = new Map<string, Held>();
    let unknown = false;
    for (const { topicId, partitions } of this.#target) {
      const topic = this.#names.get(topicId);
      if (topic === undefined) unknown = true;
      else
        for (const partition of partitions)
          target.set(`${topicId}/${partition}`, { topic, topicId, partition });
    }
    // Held back until metadata knows the topic; what is known goes on.
    if (unknown) this.#l.wantMetadata();
    const wanted = new Set(this.#target.flatMap((t) => t.partitions.map((p) => `${t.topicId}/${p}`)));
    const revoked = [...this.#owned].filter(([key]) => !wanted.has(key));
    if (revoked.length > 0) {
      this.#revoking = new Map(revoked);
      for (const [key] of revoked) this.#owned.delete(key);
      this.#l.told(`epoch ${this.#epoch}: ${revoked.length} partitions to give up`);
      this.#l.revoke(revoked.map(([, p]) => p));
      return;
    }
    const added = [...target].filter(([key]) => !this.#owned.has(key));
    if (added.length === 0) return;
    for (const [key, p] of added) this.#owned.set(key, p);
    this.#l.told(`epoch ${this.#epoch}: ${added.length} partitions more, ${this.#owned.size} in all`);
    this.#l.assigned(added.map(([, p]) => p));
    this.#say(now);
  }

  /** The broker waits for this before it moves us, or others, on. */
  #say(now: number): void {
    this.#news = true;
    this.#at = now;
  }

  released(now: number): void {
    if (this.#revoking.size === 0) return;
    this.#revoking.clear();
    this.#say(now);
    this.#reconcile(now);
  }

  #refused(verdict: ReturnType<typeof groupVerdict>, r: ConsumerGroupHeartbeatResponse, now: number): void {
    const failure = groupRefused(this.#o.group, r.errorCode, r.errorMessage);
    switch (verdict) {
      case "unknown":
        this.#lose(failure.message);
        this.#at = now;
        return;
      case "fenced":
        this.#lose(failure.message);
        return this.#end(fencedInstance(this.#o.group, this.#o.instanceId ?? ""));
      case "again":
        this.#l.told(failure.message);
        break;
      case "coordinator":
        this.#l.coordinatorLost();
        break;
      default:
        return this.#end(failure);
    }
    this.#at = now + this.#o.pauses.next();
  }

  #lose(why: string): void {
    const gone = [...this.#owned.values(), ...this.#revoking.values()];
    this.#owned.clear();
    this.#revoking.clear();
    this.#target = [];
    this.#epoch = JOINS;
    this.#phase = "joining";
    this.#l.told(`${gone.length} partitions are lost: ${why}`);
    if (gone.length > 0) this.#l.lost(gone);
  }

  #end(failure: Failure): void {
    this.#phase = "ended";
    this.#l.ended(failure);
  }
}

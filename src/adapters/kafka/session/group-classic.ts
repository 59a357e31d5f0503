/**
 * A member of a classic group as a machine over answers and time.
 *
 *   idle --start--> joining --> (leader: counting) --> syncing --> stable
 *                      ^                                             |
 *                      +---- released <---- releasing <-- rebalance, or something to give up
 *
 * Eager: everything is given up before a join. Cooperative: everything is kept and read on; after the sync what
 * is another's by now is given up, and the group is asked to form once more. Heartbeats go on while something is
 * given up, so that a slow publish does not end the session.
 *
 * What is owned, and the generation in which it was given, only change by a sync or a loss: a round that fails
 * halfway joins again with both as they were (KAFKA-14016).
 */
import { asFailure, Failure } from "../../../core/failure/failure.ts";
import { type AssignedPartition, type Assignor, byText, type GroupMember } from "../assignors/assignor.ts";
import { keyOfPartition } from "../assignors/owned.ts";
import type { TopicRacks } from "../assignors/racks.ts";
import { byTopic } from "../assignors/sticky.ts";
import {
  decodeAssignment,
  decodeSubscription,
  encodeAssignment,
  encodeSubscription,
} from "../wire/consumer-protocol.ts";
import type { HeartbeatResponse } from "../wire/messages/heartbeat.ts";
import type { JoinGroupResponse } from "../wire/messages/join-group.ts";
import type { SyncGroupResponse } from "../wire/messages/sync-group.ts";
import { fencedInstance, groupRefused, groupVerdict } from "./group-errors.ts";
import type {
  GroupAnswer,
  GroupCall,
  GroupListener,
  GroupMachine,
  Membership,
  TopicFacts,
} from "./group-machine.ts";
import { GroupTopics } from "./group-topics.ts";

export interface Pauses {
  next(): number;
  reset(): void;
}

export interface ClassicOptions {
  readonly group: string;
  readonly instanceId: string | null;
  /** Those of the first join, unless others are told before. */
  readonly topics: readonly string[];
  /** In the order of preference; all cooperative, or none is used as one. */
  readonly assignors: readonly Assignor[];
  readonly rackId: string | null;
  readonly sessionTimeoutMs: number;
  readonly heartbeatIntervalMs: number;
  readonly rebalanceTimeoutMs: number;
  readonly pauses: Pauses;
}

type State =
  | { readonly at: "idle" }
  /** Joins at `until`. */
  | { readonly at: "pausing"; readonly until: number }
  | { readonly at: "joining"; readonly ask: number }
  /** The assignment is ours to make, and partitions are being counted. */
  | { readonly at: "counting"; readonly joined: JoinGroupResponse }
  | { readonly at: "syncing"; readonly ask: number; readonly protocol: string }
  | { readonly at: "stable" }
  /** Something is given up; then we join again. */
  | { readonly at: "releasing"; readonly giving: readonly AssignedPartition[] }
  | { readonly at: "ended" };

/** A join is answered when the last member has come, or the rebalance time-out is over; and a little later. */
const JOIN_SLACK_MS = 5_000;

export class ClassicGroupMember implements GroupMachine {
  readonly #o: ClassicOptions;
  readonly #l: GroupListener;
  readonly #cooperative: boolean;
  #state: State = { at: "idle" };
  #asks = 0;
  #memberId = "";
  #generation = -1;
  #owned = new Map<string, AssignedPartition>();
  /** Of the sync that gave us what we own, -1: we own nothing. */
  #ownedIn = -1;
  #heartbeatAt: number | null = null;
  #heartbeat: number | null = null;
  /** Why the next join happens, for the broker's log. */
  #reason = "the member starts";
  readonly #topics: GroupTopics;

  constructor(options: ClassicOptions, listener: GroupListener) {
    this.#o = options;
    this.#l = listener;
    this.#topics = new GroupTopics(options.topics);
    this.#cooperative = options.assignors.every((a) => a.cooperative);
  }

  get wakeAt(): number | null {
    const until = this.#state.at === "pausing" ? this.#state.until : null;
    const beat = this.#beats && this.#heartbeat === null ? this.#heartbeatAt : null;
    return until ?? beat;
  }

  get #beats(): boolean {
    return (this.#state.at === "stable" || this.#state.at === "releasing") && this.#generation >= 0;
  }

  get membership(): Membership | null {
    return this.#beats ? { memberId: this.#memberId, epoch: this.#generation } : null;
  }

  start(now: number): void {
    if (this.#state.at === "idle") this.#join(now);
  }

  tick(now: number): void {
    if (this.#state.at === "pausing" && now >= this.#state.until) return this.#join(now);
    if (this.#beats && this.#heartbeat === null && this.#heartbeatAt !== null && now >= this.#heartbeatAt) {
      this.#heartbeat = this.#ask("Heartbeat", {
        groupId: this.#o.group,
        generationId: this.#generation,
        memberId: this.#memberId,
        groupInstanceId: this.#o.instanceId,
      });
    }
  }

  heartbeatSoon(now: number): void {
    if (this.#beats) this.#heartbeatAt = now;
  }

  leave(): GroupCall | null {
    const member = this.#memberId;
    this.#state = { at: "ended" };
    // A static member keeps its place for the session: it may be back before that ends.
    if (member === "" || this.#o.instanceId !== null) return null;
    const reason = "the member ends";
    const members = [{ memberId: member, groupInstanceId: null, reason }];
    return { api: "LeaveGroup", body: { groupId: this.#o.group, memberId: member, members } };
  }

  topics(names: readonly string[], facts: readonly TopicFacts[], now: number): void {
    this.#topics.know(names, facts);
    this.#compare(now);
  }

  get watched(): readonly string[] {
    return this.#topics.watched;
  }

  #compare(now: number): void {
    if (this.#state.at !== "stable") return;
    const change = this.#topics.change();
    if (change !== null) this.#rejoin(change, now);
  }

  answered(id: number, answer: GroupAnswer, now: number): void {
    if (this.#state.at === "ended") return;
    if (answer.api === "Heartbeat") return this.#onHeartbeat(id, answer.body, now);
    const state = this.#state;
    if (answer.api === "JoinGroup" && state.at === "joining" && state.ask === id)
      this.#onJoined(answer.body, answer.version, now);
    if (answer.api === "SyncGroup" && state.at === "syncing" && state.ask === id)
      this.#onSynced(id, answer.body, state.protocol, now);
  }

  failed(id: number, failure: Failure, now: number): void {
    const s = this.#state;
    if (s.at === "ended") return;
    if (!failure.retry) return this.#end(failure);
    if (id === this.#heartbeat) {
      this.#heartbeat = null;
      this.#heartbeatAt = now + Math.min(this.#o.pauses.next(), this.#o.heartbeatIntervalMs);
      this.#l.coordinatorLost();
    } else if ((s.at === "joining" || s.at === "syncing") && s.ask === id) {
      this.#l.coordinatorLost();
      this.#pause(now);
    }
  }

  // ---- join

  #join(now: number): void {
    if (!this.#cooperative && this.#owned.size > 0) return this.#release([...this.#owned.values()], now);
    const { group, instanceId, sessionTimeoutMs, rebalanceTimeoutMs, assignors } = this.#o;
    this.#heartbeat = null;
    const topics = [...this.#topics.subscribe()].sort(byText);
    const ask = this.#ask(
      "JoinGroup",
      {
        groupId: group,
        sessionTimeoutMs,
        rebalanceTimeoutMs,
        memberId: this.#memberId,
        groupInstanceId: instanceId,
        protocolType: "consumer",
        protocols: assignors.map((a) => ({ name: a.name, metadata: this.#subscription(a, topics) })),
        reason: this.#reason.slice(0, 255),
      },
      rebalanceTimeoutMs + JOIN_SLACK_MS,
    );
    this.#state = { at: "joining", ask };
  }

  /** What an eager member had last: it owns nothing by the time it joins. */
  #last: readonly AssignedPartition[] = [];

  #subscription(a: Assignor, topics: readonly string[]): Uint8Array {
    const owned = [...this.#owned.values()];
    return encodeSubscription({
      topics,
      userData: a.userData?.(this.#cooperative ? owned : this.#last, this.#ownedIn) ?? null,
      ownedPartitions: byTopic(owned),
      generationId: this.#ownedIn,
      rackId: this.#o.rackId,
    });
  }

  #onJoined(r: JoinGroupResponse, version: number, now: number): void {
    const verdict = groupVerdict(r.errorCode);
    if (verdict !== "ok") {
      if (verdict === "member_id") {
        this.#memberId = r.memberId;
        return this.#join(now);
      }
      return this.#refused(verdict, r.errorCode, now);
    }
    this.#memberId = r.memberId;
    this.#generation = r.generationId;
    this.#topics.follow();
    if (r.leader !== r.memberId) return this.#sync(r, []);
    const topics = new Set(r.members.flatMap((m) => this.#read(m.metadata)?.topics ?? []));
    if (version >= 9 && r.skipAssignment) {
      this.#topics.leadAgain([...topics]);
      return this.#sync(r, []);
    }
    this.#state = { at: "counting", joined: r };
    this.#l.count([...topics].sort(byText));
  }

  #read(metadata: Uint8Array): GroupMember["subscription"] | null {
    try {
      return decodeSubscription(metadata);
    } catch (e) {
      const failure = asFailure(e);
      if (!failure.code.startsWith("bytes.")) throw failure;
      return null;
    }
  }

  counted(partitions: ReadonlyMap<string, number>, racks: TopicRacks, _now: number): void {
    if (this.#state.at !== "counting") return;
    const { joined } = this.#state;
    const assignor = this.#o.assignors.find((a) => a.name === joined.protocolName);
    if (assignor === undefined) {
      return this.#end(groupRefused(this.#o.group, 23, `the group chose ${joined.protocolName}`));
    }
    // Of a member whose subscription can't be read nothing is known: it gets nothing.
    const nothing = { topics: [], userData: null, ownedPartitions: [], generationId: -1, rackId: null };
    const members = joined.members.map((m) => ({
      memberId: m.memberId,
      instanceId: m.groupInstanceId,
      subscription: this.#read(m.metadata) ?? nothing,
    }));
    this.#topics.lead(partitions, racks);
    const assignment = assignor.assign(partitions, members, racks);
    const text = [...assignment].map(([id, list]) => `${id}: ${list.length}`).join(", ");
    this.#l.told(`generation ${joined.generationId} assigned by us (${joined.protocolName}): ${text}`);
    this.#sync(
      joined,
      [...assignment].map(([memberId, list]) => ({
        memberId,
        assignment: encodeAssignment(byTopic(list)),
      })),
    );
  }

  // ---- sync

  #sync(
    r: JoinGroupResponse,
    assignments: readonly { readonly memberId: string; readonly assignment: Uint8Array }[],
  ): void {
    const ask = this.#ask(
      "SyncGroup",
      {
        groupId: this.#o.group,
        generationId: r.generationId,
        memberId: this.#memberId,
        groupInstanceId: this.#o.instanceId,
        protocolType: "consumer",
        protocolName: r.protocolName,
        assignments,
      },
      this.#o.rebalanceTimeoutMs + JOIN_SLACK_MS,
    );
    this.#state = { at: "syncing", ask, protocol: r.protocolName ?? "" };
  }

  #onSynced(id: number, r: SyncGroupResponse, protocol: string, now: number): void {
    const verdict = groupVerdict(r.errorCode);
    if (verdict !== "ok") return this.#refused(verdict, r.errorCode, now);
    let given: Map<string, AssignedPartition>;
    try {
      given = this.#given(r.assignment);
    } catch (e) {
      this.#l.told(`the assignment of generation ${this.#generation} can't be used: ${asFailure(e).message}`);
      return this.#pause(now);
    }
    const before = this.#owned;
    const added = [...given].filter(([key]) => !before.has(key)).map(([, p]) => p);
    const revoked = [...before].filter(([key]) => !given.has(key)).map(([, p]) => p);
    this.#owned = new Map([...before].filter(([key]) => given.has(key)));
    for (const p of added) this.#owned.set(keyOfPartition(p), p);
    this.#last = [...given.values()];
    this.#ownedIn = this.#generation;
    this.#heartbeatAt = now + this.#o.heartbeatIntervalMs;
    this.#o.pauses.reset();
    this.#state = { at: "stable" };
    const { size } = this.#owned;
    this.#l.told(
      `member ${this.#memberId} of generation ${this.#generation} (${protocol}): ${size} partitions, ${added.length} new, ${revoked.length} to give up`,
    );
    this.#l.confirmed(id, this.#generation);
    if (revoked.length > 0) {
      this.#reason = "what others got was given up";
      this.#release(revoked, now);
    }
    if (added.length > 0) this.#l.assigned(added);
    this.#compare(now);
  }

  #given(bytes: Uint8Array): Map<string, AssignedPartition> {
    const given = new Map<string, AssignedPartition>();
    for (const { topic, partitions } of decodeAssignment(bytes).assignedPartitions) {
      if (!this.#topics.isSubscribed(topic)) throw new Failure("bytes.invalid", `it has topic ${topic}`);
      for (const partition of partitions) given.set(`${topic}/${partition}`, { topic, partition });
    }
    return given;
  }

  // ---- stable

  #onHeartbeat(id: number, r: HeartbeatResponse, now: number): void {
    // Asked in an earlier generation: says nothing of this one (KAFKA-9823).
    if (id !== this.#heartbeat) return;
    this.#heartbeat = null;
    this.#heartbeatAt = now + this.#o.heartbeatIntervalMs;
    const verdict = groupVerdict(r.errorCode);
    if (verdict === "ok" || verdict === "rebalance") {
      this.#o.pauses.reset();
      this.#l.confirmed(id, this.#generation);
      if (verdict === "rebalance") this.#rejoin("the group forms anew", now);
      return;
    }
    if (verdict === "again" || verdict === "coordinator") {
      if (verdict === "coordinator") this.#l.coordinatorLost();
      this.#heartbeatAt = now + Math.min(this.#o.pauses.next(), this.#o.heartbeatIntervalMs);
      return;
    }
    this.#refused(verdict, r.errorCode, now);
  }

  /** While something is being given up the join waits for that. */
  #rejoin(why: string, now: number): void {
    if (this.#state.at !== "stable") return;
    this.#reason = why;
    this.#join(now);
  }

  #release(giving: readonly AssignedPartition[], now: number): void {
    for (const p of giving) this.#owned.delete(keyOfPartition(p));
    this.#state = { at: "releasing", giving };
    if (this.#heartbeat === null) this.#heartbeatAt ??= now;
    this.#l.revoke(giving);
  }

  released(now: number): void {
    if (this.#state.at === "releasing") this.#join(now);
  }

  // ---- what goes wrong

  #refused(verdict: ReturnType<typeof groupVerdict>, errorCode: number, now: number): void {
    const why = groupRefused(this.#o.group, errorCode, null).message;
    switch (verdict) {
      case "fenced":
        this.#lose(why);
        return this.#end(fencedInstance(this.#o.group, this.#o.instanceId ?? ""));
      case "fatal":
        return this.#end(groupRefused(this.#o.group, errorCode, null));
      case "unknown":
        this.#memberId = "";
        this.#lose(why);
        return this.#join(now);
      case "generation":
        this.#lose(why);
        return this.#join(now);
      case "coordinator":
        this.#l.coordinatorLost();
        return this.#pause(now);
      case "rebalance":
        this.#reason = "the group formed anew before this round ended";
        return this.#join(now);
      default:
        return this.#pause(now);
    }
  }

  #lose(why: string): void {
    const giving = this.#state.at === "releasing" ? this.#state.giving : [];
    const gone = [...this.#owned.values(), ...giving];
    this.#owned.clear();
    this.#ownedIn = -1;
    this.#generation = -1;
    this.#topics.follow();
    this.#reason = why;
    this.#l.told(`${gone.length} partitions are lost: ${why}`);
    if (gone.length > 0) this.#l.lost(gone);
  }

  #pause(now: number): void {
    this.#state = { at: "pausing", until: now + this.#o.pauses.next() };
  }

  #end(failure: Failure): void {
    this.#state = { at: "ended" };
    this.#l.ended(failure);
  }

  #ask<A extends GroupCall["api"]>(
    api: A,
    body: Extract<GroupCall, { api: A }>["body"],
    timeoutMs: number | null = null,
  ): number {
    const id = ++this.#asks;
    this.#l.ask(id, { api, body } as GroupCall, timeoutMs);
    return id;
  }
}

/**
 * Membership of a consumer group: the machine of the protocol joined to the coordinator and the clock.
 *
 * What is given up (revoked, or lost) and what is new may be the same partition one after the other, so a partition
 * begins only when its last owner here, us, is done with it.
 */
import { asFailure, Failure } from "../../core/failure/failure.ts";
import { sleep, type Timer } from "../../core/time/clock.ts";
import type { AssignedPartition, Assignor } from "./assignors/assignor.ts";
import { keyOfPartition } from "./assignors/owned.ts";
import type { TopicRacks } from "./assignors/racks.ts";
import type { ClientParts, KafkaClient } from "./client.ts";
import { CONTROL } from "./client.ts";
import { cancelled } from "./client-link.ts";
import { Backoff, isWorthAnotherTry } from "./client-retry.ts";
import { ClassicGroupMember } from "./session/group-classic.ts";
import { ConsumerGroupMember } from "./session/group-consumer.ts";
import type {
  GroupAnswer,
  GroupCall,
  GroupListener,
  GroupMachine,
  Membership,
  TopicFacts,
} from "./session/group-machine.ts";
import { ERROR } from "./wire/errors.ts";

export interface MembershipOptions {
  readonly group: string;
  readonly protocol: "classic" | "consumer";
  readonly assignors: readonly Assignor[];
  readonly serverAssignor: string | null;
  readonly instanceId: string | null;
  readonly rackId: string | null;
  readonly sessionTimeoutMs: number;
  readonly heartbeatIntervalMs: number;
  readonly rebalanceTimeoutMs: number;
}

/** Whoever reads the partitions. */
export interface PartitionOwner {
  assigned(): void;
  /** Resolves when what was read of them is durable and acknowledged, and nothing of them is read any more. */
  revoked(partitions: readonly AssignedPartition[]): Promise<void>;
  /** Resolves when nothing of them can be written any more. */
  lost(partitions: readonly AssignedPartition[]): Promise<void>;
  wantMetadata(): void;
  told(what: string): void;
  ended(failure: Failure): void;
  troubled(failure: Failure | null): void;
}

export interface MembershipParts extends ClientParts {
  readonly client: KafkaClient;
}

const PURPOSE = "group";
/** Left of the rebalance time-out for what follows a revocation: a commit, and the join itself. */
const REVOKE_SHARE = 0.8;
/** Longest wait for the coordinator at the end. */
const LEAVE_MS = 2_000;

interface Waiter {
  readonly after: number;
  resolve(epoch: number): void;
  reject(failure: Failure): void;
}

export class GroupMembership implements GroupListener {
  readonly #o: MembershipOptions;
  readonly #p: MembershipParts;
  readonly #owner: PartitionOwner;
  #machine: GroupMachine;
  #timer: Timer | null = null;
  #lastAsk = 0;
  #closed = false;
  #over: Failure | null = null;
  #joined = false;
  #topics: { readonly names: readonly string[]; readonly facts: readonly TopicFacts[] } = {
    names: [],
    facts: [],
  };
  #revocations = 0;
  readonly #ours = new Set<string>();
  readonly #giving = new Map<string, Promise<void>>();
  #waiters: Waiter[] = [];
  #members: (() => void)[] = [];

  constructor(options: MembershipOptions, parts: MembershipParts, owner: PartitionOwner) {
    this.#o = options;
    this.#p = parts;
    this.#owner = owner;
    this.#machine = options.protocol === "classic" ? this.#classic() : this.#consumer();
  }

  #classic(): GroupMachine {
    return new ClassicGroupMember(
      { ...this.#o, topics: this.#topics.names, pauses: new Backoff(this.#p.chance) },
      this,
    );
  }

  #consumer(): GroupMachine {
    const memberId = uuid(() => this.#p.chance.next());
    const topics = this.#topics.names;
    return new ConsumerGroupMember(
      { ...this.#o, topics, memberId, pauses: new Backoff(this.#p.chance) },
      this,
    );
  }

  start(): void {
    this.#feed((now) => this.#machine.start(now));
  }

  /** True while the partition is ours and nothing of an earlier time has to end first. */
  mayBegin(p: AssignedPartition): boolean {
    const key = keyOfPartition(p);
    return this.#ours.has(key) && !this.#giving.has(key);
  }

  owns(p: AssignedPartition): boolean {
    return this.#ours.has(keyOfPartition(p));
  }

  /** False before the first assignment. */
  get joined(): boolean {
    return this.#joined;
  }

  get epoch(): number | null {
    return this.#machine.membership?.epoch ?? null;
  }

  /** `names`: those that we subscribe to. `facts`: of them, and of those that are `watched`. */
  topics(names: readonly string[], facts: readonly TopicFacts[]): void {
    this.#topics = { names, facts };
    this.#feed((now) => this.#machine.topics(names, facts, now));
  }

  /** Topics of other members that we watch, since we lead. */
  get watched(): readonly string[] {
    return this.#machine.watched;
  }

  /** Who we are, for a commit: waits while the group forms anew. */
  async member(signal: AbortSignal): Promise<Membership & { readonly instanceId: string | null }> {
    for (;;) {
      if (signal.aborted) throw cancelled("the wait for membership");
      if (this.#over !== null) throw this.#over;
      const found = this.#machine.membership;
      if (found !== null) return { ...found, instanceId: this.#o.instanceId };
      await new Promise<void>((resolve) => {
        this.#members.push(resolve);
        signal.addEventListener("abort", () => resolve(), { once: true });
      });
    }
  }

  /** Resolves with the epoch once the broker has confirmed us in an answer to something asked after this call. */
  confirmation(): Promise<number> {
    if (this.#over !== null) return Promise.reject(this.#over);
    return new Promise((resolve, reject) => {
      this.#waiters.push({ after: this.#lastAsk, resolve, reject });
      this.#feed((now) => this.#machine.heartbeatSoon(now));
    });
  }

  /** Leaves the group, so that others need not wait for the session to end. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#timer?.cancel();
    this.#stop(cancelled("the membership"));
    const call = this.#machine.leave();
    if (call === null || this.#over?.code === "kafka.instance_fenced") return;
    const end = new AbortController();
    const timer = this.#p.clock.after(LEAVE_MS, () => end.abort());
    // Not behind a join that hangs: a broker takes one request of a connection at a time.
    await this.#send(call, CONTROL, null, end.signal).catch(() => {});
    timer.cancel();
  }

  // ---- GroupListener

  ask(id: number, call: GroupCall, timeoutMs: number | null): void {
    this.#lastAsk = id;
    this.#send(call, PURPOSE, timeoutMs, this.#p.client.life).then(
      (answer) => this.#answered(id, answer),
      (e) => this.#failed(id, call, asFailure(e)),
    );
  }

  #answered(id: number, answer: GroupAnswer): void {
    if (this.#closed) return;
    this.#owner.troubled(null);
    const refused =
      answer.api === "ConsumerGroupHeartbeat" && answer.body.errorCode === ERROR.UNSUPPORTED_VERSION;
    if (refused && !this.#joined) {
      return this.#fallBack(
        new Failure("kafka.unsupported_version", answer.body.errorMessage ?? "group.version is 0"),
      );
    }
    this.#feed((now) => this.#machine.answered(id, answer, now));
  }

  #failed(id: number, call: GroupCall, failure: Failure): void {
    if (this.#closed || failure.code === "internal.cancelled") return;
    const unsupported = failure.code === "kafka.unsupported_version";
    if (unsupported && call.api === "ConsumerGroupHeartbeat" && !this.#joined) return this.#fallBack(failure);
    const passes = isWorthAnotherTry(failure, "running") && !unsupported;
    if (passes) this.#owner.troubled(failure);
    const judged =
      failure.retry === passes ? failure : new Failure(failure.code, failure.message, { retry: passes });
    this.#feed((now) => this.#machine.failed(id, judged, now));
  }

  /** Brokers before Kafka 4.0, and those whose group.version is 0, know classic groups only. */
  #fallBack(failure: Failure): void {
    this.told(`the brokers have no KIP-848 groups, so this is a classic one: ${failure.message}`);
    this.#machine = this.#classic();
    this.#feed((now) => {
      this.#machine.topics(this.#topics.names, this.#topics.facts, now);
      this.#machine.start(now);
    });
  }

  async #send(
    call: GroupCall,
    purpose: string,
    timeoutMs: number | null,
    signal: AbortSignal,
  ): Promise<GroupAnswer> {
    const { client } = this.#p;
    const link = await client.link(await client.coordinator(this.#o.group, signal), purpose, signal);
    const version = link.version(call.api);
    if (call.api === "JoinGroup" && version < 5 && this.#o.instanceId !== null) {
      throw new Failure("kafka.unsupported_version", `${link.at} has no static membership (JoinGroup v5)`, {
        at: "source.group_instance_id",
        hint: "It needs Kafka 2.3. Leave group_instance_id out",
      });
    }
    const timeout = timeoutMs === null ? {} : { timeoutMs };
    const { body } = await link.request(call.api, version, call.body, { signal, ...timeout });
    return { api: call.api, body, version } as GroupAnswer;
  }

  coordinatorLost(): void {
    this.#p.client.forgetCoordinator(this.#o.group);
  }

  count(topics: readonly string[]): void {
    this.#count(topics).then(
      ({ counts, racks }) => this.#feed((now) => this.#machine.counted(counts, racks, now)),
      (e) => {
        const failure = asFailure(e);
        if (failure.code !== "internal.cancelled") this.ended(failure);
      },
    );
  }

  /** Of all members' topics, which may be others than ours. */
  async #count(
    topics: readonly string[],
  ): Promise<{ readonly counts: ReadonlyMap<string, number>; readonly racks: TopicRacks }> {
    const { client, clock, chance } = this.#p;
    const backoff = new Backoff(chance);
    for (;;) {
      try {
        await client.refresh(topics, client.life);
        const { metadata } = client;
        const counts = new Map(topics.map((t) => [t, metadata.topics.get(t)?.partitions.size ?? 0]));
        return { counts, racks: new Map(topics.map((t) => [t, metadata.racksOf(t)])) };
      } catch (e) {
        const failure = asFailure(e);
        if (!isWorthAnotherTry(failure, "running")) throw failure;
        this.#owner.troubled(failure);
        await sleep(clock, backoff.next(), client.life);
      }
    }
  }

  wantMetadata(): void {
    this.#owner.wantMetadata();
  }

  assigned(partitions: readonly AssignedPartition[]): void {
    for (const p of partitions) this.#ours.add(keyOfPartition(p));
    this.#owner.assigned();
  }

  revoke(partitions: readonly AssignedPartition[]): void {
    const round = ++this.#revocations;
    const isStanding = () => round === this.#revocations;
    const before = Promise.all(partitions.map((p) => this.#giving.get(keyOfPartition(p))));
    const given = before.then(() => this.#revokeInTime(partitions, isStanding));
    const done = this.#give(partitions, given);
    void done.then(() => {
      if (isStanding()) this.#feed((now) => this.#machine.released(now));
    });
  }

  /** Beyond its time the broker takes the partitions away anyhow: then they are given up as lost ones are. */
  async #revokeInTime(partitions: readonly AssignedPartition[], isStanding: () => boolean): Promise<void> {
    const late = new AbortController();
    const ms = this.#o.rebalanceTimeoutMs * REVOKE_SHARE;
    const timeOut = sleep(this.#p.clock, ms, late.signal).then(
      () => "late" as const,
      () => "in time" as const,
    );
    const end = await Promise.race([this.#owner.revoked(partitions).then(() => "in time" as const), timeOut]);
    late.abort();
    if (end === "in time" || !isStanding()) return;
    this.told(`${partitions.length} partitions could not be finished within ${ms} ms: they are abandoned`);
    await this.#owner.lost(partitions);
  }

  /**
   * At once, whatever else is being given up: a new membership may stand before that is finished, and under it what
   * was read in the old one could be committed over the new owner's position.
   */
  lost(partitions: readonly AssignedPartition[]): void {
    this.#revocations++;
    const dropped = this.#owner.lost(partitions);
    for (const p of partitions) {
      const before = this.#giving.get(keyOfPartition(p));
      void this.#give([p], Promise.all([before, dropped]));
    }
  }

  /** None of them begins again before `given` is over. */
  #give(partitions: readonly AssignedPartition[], given: Promise<unknown>): Promise<void> {
    const keys = partitions.map(keyOfPartition);
    for (const key of keys) this.#ours.delete(key);
    const done: Promise<void> = given
      .then(() => {})
      .catch((e) => {
        if (!this.#closed) this.ended(asFailure(e));
      })
      .finally(() => {
        for (const key of keys) if (this.#giving.get(key) === done) this.#giving.delete(key);
        this.#owner.assigned();
      });
    for (const key of keys) this.#giving.set(key, done);
    return done;
  }

  confirmed(id: number, epoch: number): void {
    this.#joined = true;
    const due = this.#waiters.filter((w) => w.after < id);
    this.#waiters = this.#waiters.filter((w) => w.after >= id);
    for (const w of due) w.resolve(epoch);
  }

  told(what: string): void {
    this.#owner.told(what);
  }

  ended(failure: Failure): void {
    this.#stop(failure);
    this.#owner.ended(failure);
  }

  #stop(failure: Failure): void {
    this.#over ??= failure;
    for (const w of this.#waiters.splice(0)) w.reject(failure);
    for (const wake of this.#members.splice(0)) wake();
  }

  // ---- time

  #feed(step: (now: number) => void): void {
    if (this.#closed) return;
    const before = this.#machine.membership;
    step(this.#p.clock.monotonic());
    if (this.#machine.membership !== null) {
      for (const wake of this.#members.splice(0)) wake();
      // What was assigned before, and waited for a membership to begin under.
      if (before === null) this.#owner.assigned();
    }
    this.#arm();
  }

  #arm(): void {
    this.#timer?.cancel();
    this.#timer = null;
    const at = this.#machine.wakeAt;
    if (at === null || this.#closed) return;
    const ms = Math.max(0, at - this.#p.clock.monotonic());
    this.#timer = this.#p.clock.after(ms, () => {
      this.#timer = null;
      this.#feed((now) => this.#machine.tick(now));
    });
  }
}

/** Random, version 4, in the brokers' own text form: URL-safe base64. */
function uuid(chance: () => number): string {
  const bytes = Uint8Array.from({ length: 16 }, () => Math.floor(chance() * 256));
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  return Buffer.from(bytes).toString("base64url");
}

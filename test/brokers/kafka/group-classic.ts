/**
 * The coordinator's side of a classic group, as brokers keep it:
 *
 *   empty --join--> preparing --all joined, or the rebalance time-out--> completing --leader's sync--> stable
 *     ^                 ^----------------- a join, a leave, a session that ends -----------------------'
 *
 * Members that are waited for (a join or sync under way) do not expire. A member that does not rejoin within the
 * rebalance time-out is removed.
 */
import { ERROR } from "../../../src/adapters/kafka/wire/errors.ts";
import type {
  JoinGroupRequest,
  JoinGroupResponse,
} from "../../../src/adapters/kafka/wire/messages/join-group.ts";
import type {
  SyncGroupRequest,
  SyncGroupResponse,
} from "../../../src/adapters/kafka/wire/messages/sync-group.ts";
import type { Draft } from "../../../src/adapters/kafka/wire/protocol.ts";
import type { Clock, Timer } from "../../../src/core/time/clock.ts";

type JoinReply = (r: Draft<JoinGroupResponse>) => void;
type SyncReply = (r: Draft<SyncGroupResponse>) => void;
type Protocols = JoinGroupRequest["protocols"];

interface Member {
  readonly id: string;
  readonly instanceId: string | null;
  readonly sessionMs: number;
  readonly rebalanceMs: number;
  protocols: Protocols;
  assignment: Uint8Array;
  join: JoinReply | null;
  sync: SyncReply | null;
  timer: Timer | null;
}

const NOTHING = new Uint8Array(0);

export class ClassicGroup {
  readonly #clock: Clock;
  readonly #name: string;
  readonly #members = new Map<string, Member>();
  /** Ids that were given out and have not come back yet. */
  readonly #pending = new Set<string>();
  state: "empty" | "preparing" | "completing" | "stable" = "empty";
  generation = 0;
  protocol = "";
  leader = "";
  #serial = 0;
  #deadline: Timer | null = null;

  constructor(clock: Clock, name: string) {
    this.#clock = clock;
    this.#name = name;
  }

  get members(): readonly { readonly id: string; readonly instanceId: string | null }[] {
    return [...this.#members.values()];
  }

  /** What the leader assigned to each member, by member id. */
  get assignments(): ReadonlyMap<string, Uint8Array> {
    return new Map([...this.#members.values()].map((m) => [m.id, m.assignment]));
  }

  join(request: JoinGroupRequest, version: number, reply: JoinReply): void {
    const { memberId, groupInstanceId } = request;
    const fail = (errorCode: number, id = memberId) => reply({ errorCode, memberId: id });
    if (!this.#speaks(request.protocols)) return fail(ERROR.INCONSISTENT_GROUP_PROTOCOL);
    if (memberId === "") {
      if (groupInstanceId !== null) return this.#joinStatic(request, reply);
      const id = this.#newId();
      if (version < 4) return this.#add(id, request, reply);
      this.#pending.add(id);
      return fail(ERROR.MEMBER_ID_REQUIRED, id);
    }
    if (this.#fenced(memberId, groupInstanceId)) return fail(ERROR.FENCED_INSTANCE_ID);
    const member = this.#members.get(memberId);
    if (member === undefined) {
      if (!this.#pending.delete(memberId)) return fail(ERROR.UNKNOWN_MEMBER_ID);
      return this.#add(memberId, request, reply);
    }
    this.#rejoin(member, request.protocols, reply);
  }

  #newId(): string {
    return `${this.#name}-member-${++this.#serial}`;
  }

  #speaks(protocols: Protocols): boolean {
    const names = new Set(protocols.map((p) => p.name));
    const others = [...this.#members.values()];
    return protocols.length > 0 && (others.length === 0 || this.#common(others).some((n) => names.has(n)));
  }

  #common(members: readonly Member[]): string[] {
    const [first, ...rest] = members;
    const names = (first?.protocols ?? []).map((p) => p.name);
    return names.filter((n) => rest.every((m) => m.protocols.some((p) => p.name === n)));
  }

  #joinStatic(request: JoinGroupRequest, reply: JoinReply): void {
    const id = `${request.groupInstanceId}-${this.#newId()}`;
    const old = [...this.#members.values()].find((m) => m.instanceId === request.groupInstanceId);
    if (old === undefined) return this.#add(id, request, reply);
    // Its successor takes over where it is; whoever still uses the old id learns that at its next request.
    old.timer?.cancel();
    old.join?.({ errorCode: ERROR.FENCED_INSTANCE_ID, memberId: old.id });
    old.sync?.({ errorCode: ERROR.FENCED_INSTANCE_ID });
    this.#members.delete(old.id);
    const fresh: Member = { ...old, id, join: null, sync: null, timer: null };
    this.#members.set(id, fresh);
    const wasLeader = this.leader === old.id;
    if (wasLeader) this.leader = id;
    const same = sameProtocols(old.protocols, request.protocols);
    fresh.protocols = request.protocols;
    if (this.state !== "stable" || !same) return this.#await(fresh, reply);
    this.#watch(fresh);
    reply({ ...this.#joined(fresh), skipAssignment: wasLeader });
  }

  #add(id: string, request: JoinGroupRequest, reply: JoinReply): void {
    const member: Member = {
      id,
      instanceId: request.groupInstanceId,
      sessionMs: request.sessionTimeoutMs,
      rebalanceMs: request.rebalanceTimeoutMs < 0 ? request.sessionTimeoutMs : request.rebalanceTimeoutMs,
      protocols: request.protocols,
      assignment: NOTHING,
      join: null,
      sync: null,
      timer: null,
    };
    this.#members.set(id, member);
    this.#await(member, reply);
  }

  #rejoin(member: Member, protocols: Protocols, reply: JoinReply): void {
    const same = sameProtocols(member.protocols, protocols);
    member.protocols = protocols;
    const settled = this.state === "completing" || (this.state === "stable" && member.id !== this.leader);
    if (settled && same) {
      this.#watch(member);
      return reply(this.#joined(member));
    }
    this.#await(member, reply);
  }

  /** The member waits for the next generation. */
  #await(member: Member, reply: JoinReply): void {
    member.join?.({ errorCode: ERROR.REBALANCE_IN_PROGRESS, memberId: member.id });
    member.join = reply;
    member.timer?.cancel();
    this.#prepare();
    this.#maybeComplete();
  }

  #prepare(): void {
    if (this.state === "preparing") return;
    this.state = "preparing";
    for (const m of this.#members.values()) {
      m.sync?.({ errorCode: ERROR.REBALANCE_IN_PROGRESS });
      m.sync = null;
    }
    const longest = Math.max(0, ...[...this.#members.values()].map((m) => m.rebalanceMs));
    this.#deadline?.cancel();
    this.#deadline = this.#clock.after(longest, () => this.#complete());
  }

  #maybeComplete(): void {
    if (this.state !== "preparing") return;
    if ([...this.#members.values()].every((m) => m.join !== null)) this.#complete();
  }

  #complete(): void {
    this.#deadline?.cancel();
    for (const m of [...this.#members.values()]) {
      if (m.join !== null) continue;
      m.timer?.cancel();
      this.#members.delete(m.id);
    }
    this.generation++;
    if (this.#members.size === 0) {
      this.state = "empty";
      this.leader = "";
      return;
    }
    this.state = "completing";
    const members = [...this.#members.values()];
    this.protocol = this.#elect(members);
    if (!this.#members.has(this.leader)) this.leader = members[0]!.id;
    for (const m of members) {
      m.assignment = NOTHING;
      const reply = m.join;
      m.join = null;
      this.#watch(m);
      reply?.(this.#joined(m));
    }
  }

  /** Each member votes for the first of the common protocols in its own order. */
  #elect(members: readonly Member[]): string {
    const common = this.#common(members);
    const votes = new Map<string, number>();
    for (const m of members) {
      const choice = m.protocols.find((p) => common.includes(p.name))?.name ?? "";
      votes.set(choice, (votes.get(choice) ?? 0) + 1);
    }
    return [...votes].sort((a, b) => b[1] - a[1])[0]?.[0] ?? "";
  }

  #joined(member: Member): Draft<JoinGroupResponse> {
    const of = (m: Member) => m.protocols.find((p) => p.name === this.protocol)?.metadata ?? NOTHING;
    const list = [...this.#members.values()].map((m) => ({
      memberId: m.id,
      groupInstanceId: m.instanceId,
      metadata: of(m),
    }));
    return {
      errorCode: 0,
      generationId: this.generation,
      protocolType: "consumer",
      protocolName: this.protocol,
      leader: this.leader,
      memberId: member.id,
      members: member.id === this.leader ? list : [],
    };
  }

  sync(request: SyncGroupRequest, reply: SyncReply): void {
    const errorCode = this.judge(request.memberId, request.generationId, request.groupInstanceId);
    if (errorCode !== 0) return reply({ errorCode });
    const member = this.#members.get(request.memberId)!;
    if (this.state === "preparing") return reply({ errorCode: ERROR.REBALANCE_IN_PROGRESS });
    if (this.state === "stable") return this.#synced(member, reply);
    member.sync = reply;
    member.timer?.cancel();
    if (member.id !== this.leader) return;
    for (const a of request.assignments) {
      const to = this.#members.get(a.memberId);
      if (to !== undefined) to.assignment = a.assignment.slice();
    }
    this.state = "stable";
    for (const m of this.#members.values()) {
      const waiting = m.sync;
      m.sync = null;
      if (waiting !== null) this.#synced(m, waiting);
    }
  }

  #synced(m: Member, reply: SyncReply): void {
    this.#watch(m);
    const { assignment } = m;
    reply({ errorCode: 0, protocolType: "consumer", protocolName: this.protocol, assignment });
  }

  /** What any request of a member is told about its membership first. */
  judge(memberId: string, generation: number, instanceId: string | null): number {
    if (this.#fenced(memberId, instanceId)) return ERROR.FENCED_INSTANCE_ID;
    if (!this.#members.has(memberId)) return ERROR.UNKNOWN_MEMBER_ID;
    return generation === this.generation ? ERROR.NONE : ERROR.ILLEGAL_GENERATION;
  }

  heartbeat(memberId: string, generation: number, instanceId: string | null): number {
    const error = this.judge(memberId, generation, instanceId);
    if (error !== 0) return error;
    this.#watch(this.#members.get(memberId)!);
    return this.state === "preparing" ? ERROR.REBALANCE_IN_PROGRESS : ERROR.NONE;
  }

  /** For a commit of a member. */
  commit(memberId: string, generation: number, instanceId: string | null): number {
    const error = this.judge(memberId, generation, instanceId);
    if (error !== 0) return error;
    this.#watch(this.#members.get(memberId)!);
    return this.state === "completing" ? ERROR.REBALANCE_IN_PROGRESS : ERROR.NONE;
  }

  leave(memberId: string, instanceId: string | null): number {
    const found =
      memberId === "" && instanceId !== null
        ? [...this.#members.values()].find((m) => m.instanceId === instanceId)
        : this.#members.get(memberId);
    if (found === undefined) return this.#pending.delete(memberId) ? ERROR.NONE : ERROR.UNKNOWN_MEMBER_ID;
    if (this.#fenced(memberId, instanceId)) return ERROR.FENCED_INSTANCE_ID;
    this.#remove(found);
    return ERROR.NONE;
  }

  #fenced(memberId: string, instanceId: string | null): boolean {
    if (instanceId === null || memberId === "") return false;
    const holder = [...this.#members.values()].find((m) => m.instanceId === instanceId);
    return holder !== undefined && holder.id !== memberId;
  }

  #remove(m: Member): void {
    m.timer?.cancel();
    m.join?.({ errorCode: ERROR.UNKNOWN_MEMBER_ID, memberId: m.id });
    m.sync?.({ errorCode: ERROR.UNKNOWN_MEMBER_ID });
    this.#members.delete(m.id);
    this.#prepare();
    this.#maybeComplete();
  }

  /** A sign of life: the session begins anew. */
  #watch(m: Member): void {
    m.timer?.cancel();
    m.timer = this.#clock.after(m.sessionMs, () => {
      if (m.join === null && m.sync === null && this.#members.get(m.id) === m) this.#remove(m);
    });
  }
}

function sameProtocols(a: Protocols, b: Protocols): boolean {
  const text = (list: Protocols) => list.map((p) => `${p.name}:${Buffer.from(p.metadata).toString("hex")}`);
  return text(a).join() === text(b).join();
}

/**
 * Commits positions to the group: for Kafka's own tools to see, never the truth that we start from. A commit is
 * sent only for what is durable. One is under way at a time; calls that come meanwhile share the next one.
 */
import { asFailure, Failure } from "../../core/failure/failure.ts";
import type { Chance } from "../../core/time/chance.ts";
import { type Clock, sleep } from "../../core/time/clock.ts";
import { CONTROL, type KafkaClient } from "./client.ts";
import { cancelled } from "./client-link.ts";
import { Backoff, brokerFailure } from "./client-retry.ts";
import { type GroupPartition, namesCeiling } from "./source-offsets.ts";
import { ERROR, kafkaError } from "./wire/errors.ts";

export interface CommitMark extends GroupPartition {
  readonly stream: number;
  /** First position that is not yet durable. */
  readonly next: bigint;
  /** Epoch of the record before it, -1: unknown. */
  readonly leaderEpoch: number;
}

/** Who commits: a member of the group, or (the default) somebody outside of it, for whom partitions were not assigned. */
export interface Committing {
  readonly memberId: string;
  readonly epoch: number;
  readonly instanceId: string | null;
}

const NO_MEMBER: Committing = { memberId: "", epoch: -1, instanceId: null };

export interface CommitParts {
  /** Waits while the group forms anew. */
  readonly member?: (signal: AbortSignal) => Promise<Committing>;
  /** False: another member has its partition by now, and may have committed more. */
  readonly mayTell?: (stream: number) => boolean;
  readonly client: KafkaClient;
  readonly clock: Clock;
  readonly chance: Chance;
}

/** Quick tries of one commit, enough for a coordinator that moves; a longer outage is left to the next commit. */
const TRIES = 3;

export class GroupCommitter {
  readonly #parts: CommitParts;
  readonly #group: string;
  #pending = new Map<string, CommitMark>();
  #running: Promise<void> | null = null;
  #next: Promise<void> | null = null;

  constructor(parts: CommitParts, group: string) {
    this.#parts = parts;
    this.#group = group;
  }

  /**
   * Resolves when the broker has these or later positions; rejects when it could not be told. What was not told is
   * forgotten: the caller knows it, and by then the topic may be another one under the same name.
   */
  commit(marks: readonly CommitMark[], signal: AbortSignal): Promise<void> {
    for (const m of marks) this.#pending.set(`${m.topicId}/${m.topic}/${m.partition}`, m);
    if (this.#running === null) return this.#start(signal);
    this.#next ??= this.#running.then(
      () => this.#start(signal),
      () => this.#start(signal),
    );
    return this.#next;
  }

  #start(signal: AbortSignal): Promise<void> {
    this.#next = null;
    const running = this.#run(signal).finally(() => {
      if (this.#running === running) this.#running = null;
    });
    this.#running = running;
    return running;
  }

  async #run(signal: AbortSignal): Promise<void> {
    const marks = this.#pending;
    this.#pending = new Map();
    const backoff = new Backoff(this.#parts.chance);
    for (let tries = 1; marks.size > 0; tries++) {
      try {
        await this.#send([...marks.values()], signal);
        return;
      } catch (e) {
        const failure = asFailure(e);
        if (tries === TRIES || !failure.retry) {
          throw failure;
        }
        this.#parts.client.forgetCoordinator(this.#group);
        await sleep(this.#parts.clock, backoff.next(), signal).catch(() => {
          throw cancelled("the commit");
        });
      }
    }
  }

  async #send(due: readonly CommitMark[], signal: AbortSignal): Promise<void> {
    const { client, mayTell } = this.#parts;
    const member = (await this.#parts.member?.(signal)) ?? NO_MEMBER;
    const link = await client.link(await client.coordinator(this.#group, signal), CONTROL, signal);
    const marks = due.filter((m) => mayTell?.(m.stream) ?? true);
    if (marks.length === 0) return;
    const topics = new Map<string, CommitMark[]>();
    for (const m of marks) topics.set(m.topic, [...(topics.get(m.topic) ?? []), m]);
    const body = {
      groupId: this.#group,
      generationIdOrMemberEpoch: member.epoch,
      memberId: member.memberId,
      groupInstanceId: member.instanceId,
      topics: [...topics].map(([name, list]) => ({
        name,
        topicId: list[0]!.topicId,
        partitions: list.map((m) => ({
          partitionIndex: m.partition,
          committedOffset: m.next,
          committedLeaderEpoch: m.leaderEpoch,
          committedMetadata: "",
        })),
      })),
    };
    const response = await client.ask(
      link,
      "OffsetCommit",
      body,
      signal,
      namesCeiling("OffsetCommit", marks),
    );
    let failure: Failure | null = null;
    let answered = 0;
    for (const t of response.topics) {
      for (const p of t.partitions) {
        answered++;
        if (p.errorCode === ERROR.NONE) continue;
        const f = this.#refusal(p.errorCode, link.at);
        // A denial tells more than a partition that only has to wait.
        if (failure === null || kafkaError(p.errorCode).action === "denied") failure = f;
      }
    }
    if (failure !== null) throw failure;
    if (answered < marks.length) {
      const text = `${link.at} answered for ${answered} of ${marks.length} committed partitions`;
      throw new Failure("kafka.response_invalid", text, { at: link.at });
    }
  }

  /** If we are no member of the group, what a broker says of members means that somebody else is one. */
  #refusal(errorCode: number, at: string): Failure {
    const f = brokerFailure(errorCode, `OffsetCommit of group ${this.#group}`, at);
    if (kafkaError(errorCode).action !== "rejoin" || this.#parts.member !== undefined) return f;
    const hint =
      "The group has members: another consumer uses it. Stop that one, name a group of its own in source.group, or share its partitions by source.group_protocol";
    return new Failure(f.code, f.message, { at, hint, retry: f.retry });
  }
}

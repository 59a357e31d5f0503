/**
 * The transactions of a producer: what the coordinator is told, and in which order.
 *
 *   none --init--> ready --begin--> open --commit or abort--> ready
 *                                    '--a batch or a call fails--> spoiled --abort--> ready
 *   anything --fenced--> dead
 *
 * In the first protocol every partition is told to the coordinator before its first batch. In the second (KIP-890:
 * the cluster's transaction.version is 2 or more) the leaders do that, and every end raises the epoch, so that nothing
 * late of the last transaction can land in the next.
 */
import { Failure } from "../../../core/failure/failure.ts";
import { ERROR, errorName, kafkaError } from "../wire/errors.ts";
import { askCoordinator, type CallParts } from "./coordinator-calls.ts";
import type { PartitionQueue, ProducerIdentity } from "./partition-queue.ts";

/** Highest versions that mean the first protocol. */
const FIRST_PROTOCOL = { Produce: 11, EndTxn: 4, TxnOffsetCommit: 4 } as const;
/** First version of EndTxn that raises the epoch. */
const RAISES_EPOCH = 5;

/** Who commits: with a member's proof the offsets of one that lost its place are refused (KIP-447). */
export interface GroupProof {
  readonly group: string;
  /** -1: no member. */
  readonly generation: number;
  readonly memberId: string;
  readonly instanceId: string | null;
}

export interface GroupOffset {
  readonly topic: string;
  readonly partition: number;
  /** The next one to read. */
  readonly offset: bigint;
  readonly leaderEpoch: number;
  readonly metadata: string | null;
}

type State =
  | { readonly at: "none" }
  | { readonly at: "ready" }
  | { readonly at: "open" }
  | { readonly at: "spoiled"; readonly why: Failure }
  | { readonly at: "dead"; readonly why: Failure };

export class Transactions {
  readonly #id: string;
  readonly #timeoutMs: number;
  readonly #parts: CallParts;
  #state: State = { at: "none" };
  #identity: ProducerIdentity | null = null;
  #second = false;
  /** Told to the coordinator; in the second protocol, sent to. */
  readonly #added = new Set<PartitionQueue>();
  readonly #adding = new Set<PartitionQueue>();
  #hasOffsets = false;

  constructor(id: string, timeoutMs: number, parts: CallParts) {
    this.#id = id;
    this.#timeoutMs = timeoutMs;
    this.#parts = parts;
  }

  /** Highest Produce version; null: any. */
  get produceCeiling(): number | null {
    return this.#second ? null : FIRST_PROTOCOL.Produce;
  }

  /** Begun and not ended: it can be aborted. */
  get unfinished(): boolean {
    return this.#state.at === "open" || this.#state.at === "spoiled";
  }

  /** Fences whoever had the id before, whose open transaction is aborted. */
  async init(signal: AbortSignal): Promise<ProducerIdentity> {
    this.#second = await this.#speaksSecond(signal);
    const identity = await this.#initialise(signal, { id: -1n, epoch: -1 });
    this.#state = { at: "ready" };
    return identity;
  }

  /** Goes on under an identity that somebody else has got for us. Nobody is fenced by it. */
  async assume(identity: ProducerIdentity, signal: AbortSignal): Promise<void> {
    this.#second = await this.#speaksSecond(signal);
    this.#identity = identity;
    this.#state = { at: "ready" };
  }

  async #speaksSecond(signal: AbortSignal): Promise<boolean> {
    let second = false;
    const { client } = this.#parts;
    await askCoordinator(this.#parts, "transaction", this.#id, "ApiVersions", signal, async (link) => {
      const who = { clientSoftwareName: "twg", clientSoftwareVersion: "0" };
      const { errorCode, finalizedFeatures } = await client.ask(link, "ApiVersions", who, signal);
      second = finalizedFeatures.some((f) => f.name === "transaction.version" && f.maxVersionLevel >= 2);
      return errorCode;
    });
    return second;
  }

  async #initialise(signal: AbortSignal, own: ProducerIdentity): Promise<ProducerIdentity> {
    const { client } = this.#parts;
    let got: ProducerIdentity = own;
    const what = `InitProducerId of ${this.#id}`;
    const code = await askCoordinator(this.#parts, "transaction", this.#id, what, signal, async (link) => {
      const body = {
        transactionalId: this.#id,
        transactionTimeoutMs: this.#timeoutMs,
        producerId: own.id,
        producerEpoch: own.epoch,
      };
      const response = await client.ask(link, "InitProducerId", body, signal);
      got = { id: response.producerId, epoch: response.producerEpoch };
      return response.errorCode;
    });
    if (code !== ERROR.NONE) throw this.#dead(code, what);
    this.#identity = got;
    return got;
  }

  begin(): void {
    if (this.#state.at !== "ready") throw this.#notNow("begin");
    this.#state = { at: "open" };
    this.#added.clear();
    this.#hasOffsets = false;
  }

  /** Records may be given now. Throws what spoiled the transaction. */
  check(): void {
    if (this.#state.at !== "open") throw this.#notNow("send");
  }

  #notNow(what: string): Failure {
    const state = this.#state;
    if (state.at === "spoiled" || state.at === "dead") return state.why;
    return new Failure("internal.bug", `${what} while the producer's transaction is ${state.at}`);
  }

  /** A batch of it failed: it can only be aborted; `fatal`: the producer is of no use any more. */
  spoil(why: Failure, fatal: boolean): void {
    if (this.#state.at === "dead") return;
    if (fatal) this.#state = { at: "dead", why };
    else if (this.#state.at === "open") this.#state = { at: "spoiled", why };
  }

  // ---- partitions

  /** Whether batches of the queue may be sent. */
  admits(queue: PartitionQueue): boolean {
    if (this.#second) this.#added.add(queue);
    return this.#added.has(queue);
  }

  /** Tells the coordinator of partitions that it does not know yet; true: some are known now that were not. */
  async admit(queues: readonly PartitionQueue[], signal: AbortSignal): Promise<boolean> {
    const fresh = queues.filter((q) => !this.#added.has(q) && !this.#adding.has(q));
    if (fresh.length === 0) return false;
    for (const q of fresh) this.#adding.add(q);
    try {
      await this.#addPartitions(fresh, signal);
      for (const q of fresh) this.#added.add(q);
    } finally {
      for (const q of fresh) this.#adding.delete(q);
    }
    return true;
  }

  async #addPartitions(queues: readonly PartitionQueue[], signal: AbortSignal): Promise<void> {
    const topics = new Map<string, number[]>();
    for (const { topic, partition } of queues) topics.set(topic, [...(topics.get(topic) ?? []), partition]);
    const v3AndBelowTopics = [...topics].map(([name, partitions]) => ({ name, partitions }));
    const { client } = this.#parts;
    const what = `AddPartitionsToTxn of ${this.#id}`;
    const code = await askCoordinator(this.#parts, "transaction", this.#id, what, signal, async (link) => {
      const body = {
        v3AndBelowTransactionalId: this.#id,
        v3AndBelowProducerId: this.#identity!.id,
        v3AndBelowProducerEpoch: this.#identity!.epoch,
        v3AndBelowTopics,
      };
      const { resultsByTopicV3AndBelow } = await client.ask(link, "AddPartitionsToTxn", body, signal);
      const codes = resultsByTopicV3AndBelow.flatMap((t) =>
        t.resultsByPartition.map((p) => p.partitionErrorCode),
      );
      return worst(codes);
    });
    if (code !== ERROR.NONE) throw this.#spoiledBy(code, what);
  }

  // ---- offsets

  /** The offsets become the group's with the commit. */
  async sendOffsets(proof: GroupProof, offsets: readonly GroupOffset[], signal: AbortSignal): Promise<void> {
    this.check();
    if (offsets.length === 0) return;
    if (!this.#second) await this.#addGroup(proof.group, signal);
    this.#hasOffsets = true;
    const topics = new Map<string, GroupOffset[]>();
    for (const o of offsets) topics.set(o.topic, [...(topics.get(o.topic) ?? []), o]);
    const { client } = this.#parts;
    const what = `TxnOffsetCommit of group ${proof.group}`;
    const code = await askCoordinator(this.#parts, "group", proof.group, what, signal, async (link) => {
      const body = {
        transactionalId: this.#id,
        groupId: proof.group,
        producerId: this.#identity!.id,
        producerEpoch: this.#identity!.epoch,
        generationIdOrMemberEpoch: proof.generation,
        memberId: proof.memberId,
        groupInstanceId: proof.instanceId,
        topics: [...topics].map(([name, list]) => ({
          name,
          partitions: list.map((o) => ({
            partitionIndex: o.partition,
            committedOffset: o.offset,
            committedLeaderEpoch: o.leaderEpoch,
            committedMetadata: o.metadata,
          })),
        })),
      };
      const ceiling = this.#second ? undefined : FIRST_PROTOCOL.TxnOffsetCommit;
      const response = await client.ask(link, "TxnOffsetCommit", body, signal, ceiling);
      return worst(response.topics.flatMap((t) => t.partitions.map((p) => p.errorCode)));
    });
    if (code !== ERROR.NONE) throw this.#spoiledBy(code, what);
  }

  async #addGroup(group: string, signal: AbortSignal): Promise<void> {
    const { client } = this.#parts;
    const what = `AddOffsetsToTxn of ${this.#id}`;
    const code = await askCoordinator(this.#parts, "transaction", this.#id, what, signal, async (link) => {
      const { id, epoch } = this.#identity!;
      const body = { transactionalId: this.#id, producerId: id, producerEpoch: epoch, groupId: group };
      return (await client.ask(link, "AddOffsetsToTxn", body, signal)).errorCode;
    });
    if (code !== ERROR.NONE) throw this.#spoiledBy(code, what);
  }

  // ---- the end

  /**
   * Commits; every batch must be confirmed before. Answers the identity of the next transaction. Throws what spoiled
   * it, and kafka.transaction_unknown where no answer could be had: then the producer is of no use any more.
   */
  async commit(signal: AbortSignal): Promise<ProducerIdentity> {
    if (this.#state.at !== "open") throw this.#notNow("commit");
    return this.#end(true, signal);
  }

  /** Aborts what is open or spoiled; every batch must be settled before. */
  async abort(signal: AbortSignal): Promise<ProducerIdentity> {
    const state = this.#state;
    if (state.at !== "open" && state.at !== "spoiled") throw this.#notNow("abort");
    // After a failure the next transaction needs another epoch, and asking for one aborts this one (KIP-360).
    if (state.at === "open" || this.#second) return this.#end(false, signal);
    const identity = await this.#initialise(signal, this.#identity!);
    this.#state = { at: "ready" };
    return identity;
  }

  async #end(committed: boolean, signal: AbortSignal): Promise<ProducerIdentity> {
    const spoiled = this.#state.at === "spoiled";
    const nothing = this.#added.size === 0 && !this.#hasOffsets && !spoiled;
    if (!nothing) await this.#endTxn(committed, signal);
    this.#state = { at: "ready" };
    return this.#identity!;
  }

  async #endTxn(committed: boolean, signal: AbortSignal): Promise<void> {
    const what = `EndTxn of ${this.#id}`;
    let raised: ProducerIdentity | null = null;
    let code: number;
    try {
      code = await askCoordinator(this.#parts, "transaction", this.#id, what, signal, async (link) => {
        const { id, epoch } = this.#identity!;
        const body = { transactionalId: this.#id, producerId: id, producerEpoch: epoch, committed };
        const ceiling = this.#second ? undefined : FIRST_PROTOCOL.EndTxn;
        const version = link.version("EndTxn", ceiling);
        const response = (await link.request("EndTxn", version, body, { signal })).body;
        if (version >= RAISES_EPOCH) raised = { id: response.producerId, epoch: response.producerEpoch };
        return response.errorCode;
      });
    } catch (e) {
      const how = committed ? "commit" : "abort";
      const why = new Failure(
        "kafka.transaction_unknown",
        `the ${how} of a transaction of ${this.#id} has no known outcome`,
        {
          cause: e,
          hint: "It may have been committed; look at the topic before the records are sent again",
        },
      );
      this.#state = { at: "dead", why };
      throw why;
    }
    // An abort of what the coordinator does not know: nothing ever got there.
    if (!committed && code === ERROR.INVALID_TXN_STATE && this.#second) return this.#afresh(signal);
    if (code !== ERROR.NONE) throw this.#spoiledBy(code, what);
    if (raised !== null) this.#identity = raised;
  }

  async #afresh(signal: AbortSignal): Promise<void> {
    await this.#initialise(signal, this.#identity!);
  }

  // ---- failures

  #spoiledBy(code: number, what: string): Failure {
    if (FATAL.has(code)) return this.#dead(code, what);
    const { action } = kafkaError(code);
    const why =
      action === "denied"
        ? new Failure("kafka.cluster_denied", `${what}: no permission (${errorName(code)})`)
        : new Failure("kafka.transaction_failed", `${what}: ${errorName(code)}`);
    this.spoil(why, false);
    return why;
  }

  #dead(code: number, what: string): Failure {
    const why = FATAL.has(code)
      ? new Failure("kafka.producer_fenced", `${what}: ${errorName(code)}`, {
          hint: `Another producer uses the transactional id ${this.#id}`,
        })
      : new Failure(deniedOr(code), `${what}: ${errorName(code)}`, { retry: false });
    this.#state = { at: "dead", why };
    return why;
  }
}

const FATAL: ReadonlySet<number> = new Set([
  ERROR.PRODUCER_FENCED,
  ERROR.INVALID_PRODUCER_EPOCH,
  ERROR.TRANSACTION_COORDINATOR_FENCED,
]);

function deniedOr(code: number): "kafka.cluster_denied" | "kafka.broker_error" {
  return kafkaError(code).action === "denied" ? "kafka.cluster_denied" : "kafka.broker_error";
}

/** One code for many partitions: one that ends it, else one to ask again for, else none. */
function worst(codes: readonly number[]): number {
  const retried = (code: number) => ["retry", "refresh", "coordinator"].includes(kafkaError(code).action);
  const bad = codes.filter((c) => c !== ERROR.NONE && c !== OPERATION_NOT_ATTEMPTED);
  return bad.find((c) => !retried(c)) ?? bad[0] ?? ERROR.NONE;
}

/** Of partitions beside one that failed. */
const OPERATION_NOT_ATTEMPTED = 55;

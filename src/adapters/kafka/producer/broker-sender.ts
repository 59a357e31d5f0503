/** Batches to one broker over a connection of its own, and its answers back to the machine. */
import { asFailure, type Failure } from "../../../core/failure/failure.ts";
import type { Clock } from "../../../core/time/clock.ts";
import type { KafkaClient } from "../client.ts";
import type { BrokerLink } from "../client-link.ts";
import { ERROR } from "../wire/errors.ts";
import type { ProduceResponse } from "../wire/messages/produce.ts";
import { TOPIC_ID_VERSION } from "../wire/protocol.ts";
import { ZERO_UUID } from "../wire/uuid.ts";
import type { PendingBatch } from "./batch.ts";
import type { ProduceMachine } from "./machine.ts";
import type { PartitionAnswer } from "./machine-ports.ts";
import type { PartitionQueue } from "./partition-queue.ts";

/** Purpose of the connection: a long fetch before it would hold answers up. */
const PRODUCE = "produce";
const MAX_REQUESTS = 5;

export interface SenderOptions {
  readonly acks: -1 | 0 | 1;
  readonly ackTimeoutMs: number;
  readonly transactionalId: string | null;
}

export interface SenderHost {
  /** Highest Produce version, by the protocol of transactions; null: any. */
  readonly ceiling: number | null;
  /** Something was settled or is to be sent again. `refresh`: who leads what has changed. */
  turned(refresh: boolean): void;
  /** A broker that cannot be reached. */
  unreachable(failure: Failure): void;
}

export class BrokerSender {
  readonly #client: KafkaClient;
  readonly #broker: number;
  readonly #machine: ProduceMachine;
  readonly #options: SenderOptions;
  readonly #host: SenderHost;
  readonly #clock: Clock;
  #link: BrokerLink | null = null;
  #opening = false;
  #requests = 0;

  constructor(
    client: KafkaClient,
    broker: number,
    machine: ProduceMachine,
    options: SenderOptions,
    host: SenderHost,
    clock: Clock,
  ) {
    this.#client = client;
    this.#broker = broker;
    this.#machine = machine;
    this.#options = options;
    this.#host = host;
    this.#clock = clock;
  }

  /** Sends what these queues, which the broker leads, have to send. */
  pump(queues: readonly PartitionQueue[]): void {
    const now = this.#clock.monotonic();
    if (!queues.some((q) => this.#machine.sendable(q, now))) return;
    if (this.#link === null || this.#link.failure !== null) return this.#open();
    while (this.#requests < MAX_REQUESTS) {
      const batches = this.#machine.take(queues, now);
      if (batches.length === 0) return;
      this.#requests++;
      void this.#send(this.#link, batches);
    }
  }

  #open(): void {
    if (this.#opening) return;
    this.#opening = true;
    this.#client.link(this.#broker, PRODUCE, this.#client.life).then(
      (link) => {
        this.#opening = false;
        this.#link = link;
        this.#host.turned(false);
      },
      (e) => {
        this.#opening = false;
        this.#host.unreachable(asFailure(e));
      },
    );
  }

  async #send(link: BrokerLink, batches: readonly PendingBatch[]): Promise<void> {
    let refresh = false;
    try {
      refresh = await this.#ask(link, batches);
    } catch (e) {
      // A version that no broker here speaks will not be spoken the next time either, but the delivery time-out ends it.
      const failure = asFailure(e);
      for (const batch of batches) this.#machine.lost(batch, this.#clock.monotonic());
      refresh = failure.code !== "internal.cancelled";
    }
    this.#requests--;
    this.#host.turned(refresh);
  }

  /** True: metadata is to be fetched. */
  async #ask(link: BrokerLink, batches: readonly PendingBatch[]): Promise<boolean> {
    const { acks, ackTimeoutMs, transactionalId } = this.#options;
    const version = this.#version(link, batches);
    const body = { transactionalId, acks, timeoutMs: ackTimeoutMs, topicData: this.#topics(batches) };
    if (acks === 0) {
      await link.tell("Produce", version, body);
      for (const batch of batches) this.#machine.handedOver(batch, this.#clock.monotonic());
      return false;
    }
    const signal = this.#client.life;
    const response = (await link.request("Produce", version, body, { signal })).body;
    return this.#read(response, batches, version >= TOPIC_ID_VERSION.Produce);
  }

  /** By topic id only where every topic has one. */
  #version(link: BrokerLink, batches: readonly PendingBatch[]): number {
    const named = batches.some((b) => this.#client.metadata.idOf(b.topic) === ZERO_UUID);
    const byName = named ? TOPIC_ID_VERSION.Produce - 1 : null;
    return link.version("Produce", this.#host.ceiling ?? byName ?? undefined);
  }

  #topics(batches: readonly PendingBatch[]) {
    const topics = new Map<string, { index: number; records: Uint8Array | null }[]>();
    for (const { topic, partition, bytes } of batches) {
      const list = topics.get(topic) ?? [];
      list.push({ index: partition, records: bytes });
      topics.set(topic, list);
    }
    return [...topics].map(([name, partitionData]) => ({
      name,
      topicId: this.#client.metadata.idOf(name),
      partitionData,
    }));
  }

  #read(response: ProduceResponse, batches: readonly PendingBatch[], byId: boolean): boolean {
    const { metadata } = this.#client;
    const now = this.#clock.monotonic();
    const left = new Map(batches.map((b) => [`${b.partition} ${b.topic}`, b]));
    let refresh = false;
    for (const { name, topicId, partitionResponses } of response.responses) {
      const topic = byId ? (batches.find((b) => metadata.idOf(b.topic) === topicId)?.topic ?? name) : name;
      for (const p of partitionResponses) {
        const batch = left.get(`${p.index} ${topic}`);
        if (batch === undefined) continue;
        left.delete(`${p.index} ${topic}`);
        const { leaderId, leaderEpoch } = p.currentLeader;
        const node = response.nodeEndpoints.find((n) => n.nodeId === leaderId) ?? null;
        const hinted = leaderId >= 0 && metadata.hint(topic, p.index, leaderId, leaderEpoch, node);
        if (this.#machine.answered(batch, p, now) === "refresh" && !hinted) refresh = true;
      }
    }
    // An answer that leaves a partition out tells nothing about it.
    for (const batch of left.values()) this.#machine.answered(batch, NOT_TOLD, now);
    return refresh || left.size > 0;
  }
}

const NOT_TOLD: PartitionAnswer = {
  errorCode: ERROR.REQUEST_TIMED_OUT,
  baseOffset: -1n,
  logStartOffset: -1n,
  errorMessage: null,
  recordErrors: [],
};

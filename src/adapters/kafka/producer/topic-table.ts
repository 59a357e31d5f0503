/** The partitions of the topics that are written to, as the last metadata has them. */
import { Failure } from "../../../core/failure/failure.ts";
import type { Chance } from "../../../core/time/chance.ts";
import { type Clock, sleep } from "../../../core/time/clock.ts";
import type { KafkaClient } from "../client.ts";
import { Backoff, brokerFailure } from "../client-retry.ts";
import { kafkaError } from "../wire/errors.ts";
import type { ProduceMachine } from "./machine.ts";
import type { PartitionQueue } from "./partition-queue.ts";
import { StickyPartition } from "./partitioner.ts";

export interface WrittenTopic {
  readonly name: string;
  /** By partition number. */
  queues: readonly PartitionQueue[];
  /** Numbers of the partitions that have a leader; all, if none has one. */
  led: readonly number[];
  readonly sticky: StickyPartition;
}

export interface TopicTableParts {
  readonly client: KafkaClient;
  readonly machine: ProduceMachine;
  readonly clock: Clock;
  readonly chance: Chance;
  readonly batchBytes: number;
  readonly timeoutMs: number;
}

export class TopicTable {
  readonly #p: TopicTableParts;
  readonly #topics = new Map<string, WrittenTopic>();
  #refreshing: Promise<void> | null = null;

  constructor(parts: TopicTableParts) {
    this.#p = parts;
  }

  known(name: string): WrittenTopic | undefined {
    return this.#topics.get(name);
  }

  /** The topic, looked for until it is there. Throws kafka.unknown_topic, kafka.topic_denied. */
  async find(name: string, signal: AbortSignal): Promise<WrittenTopic> {
    const { clock, chance, timeoutMs } = this.#p;
    const until = clock.monotonic() + timeoutMs;
    const backoff = new Backoff(chance);
    for (;;) {
      const known = this.#topics.get(name);
      if (known !== undefined) return known;
      const { errors } = await this.#asked([...this.#topics.keys(), name], signal);
      this.#adopt(name);
      if (this.#topics.has(name)) continue;
      const code = errors.get(name);
      if (code !== undefined && kafkaError(code).action === "denied") {
        throw brokerFailure(code, `Metadata of topic ${name}`, "");
      }
      const pause = backoff.next();
      if (clock.monotonic() + pause >= until) {
        throw new Failure("kafka.unknown_topic", `topic ${name} was not found within ${timeoutMs} ms`, {
          hint: "Create it first: this producer does not ask for topics to be made",
        });
      }
      await sleep(clock, pause, signal);
    }
  }

  async #asked(names: readonly string[], signal: AbortSignal) {
    const { clock, chance, client, timeoutMs } = this.#p;
    const until = clock.monotonic() + timeoutMs;
    const backoff = new Backoff(chance);
    for (;;) {
      try {
        return await client.refresh(names, signal);
      } catch (e) {
        const retry = e instanceof Failure && e.retry;
        const pause = backoff.next();
        if (!retry || clock.monotonic() + pause >= until) throw e;
        await sleep(clock, pause, signal);
      }
    }
  }

  /** Asks who leads what now; one question at a time. Resolves also where no broker answers. */
  refresh(signal: AbortSignal): Promise<void> {
    this.#refreshing ??= this.#p.client
      .refresh([...this.#topics.keys()], signal)
      .then(
        () => this.adoptAll(),
        () => {},
      )
      .finally(() => {
        this.#refreshing = null;
      });
    return this.#refreshing;
  }

  /** Takes over what the client's metadata say. */
  adoptAll(): void {
    for (const name of this.#topics.keys()) this.#adopt(name);
  }

  #adopt(name: string): void {
    const { client, machine, chance, batchBytes } = this.#p;
    const state = client.metadata.topics.get(name);
    if (state === undefined) return;
    const numbers = [...state.partitions.keys()].sort((a, b) => a - b);
    const queues = numbers.map((n) => machine.queue(name, n));
    const withLeader = numbers.filter((n) => (state.partitions.get(n)?.leader ?? -1) >= 0);
    const led = withLeader.length > 0 ? withLeader : numbers;
    const known = this.#topics.get(name);
    if (known !== undefined) {
      known.queues = queues;
      known.led = led;
    } else this.#topics.set(name, { name, queues, led, sticky: new StickyPartition(batchBytes, chance) });
  }
}

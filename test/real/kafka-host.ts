/** A host for the Kafka source against real brokers: keeps what it gets, and sees gaps and overlaps. */
import { type ClientOptions, CONTROL, KafkaClient } from "../../src/adapters/kafka/client.ts";
import { kafkaSettings } from "../../src/adapters/kafka/settings.ts";
import { KafkaSource } from "../../src/adapters/kafka/source.ts";
import { kafkaSourceSpec } from "../../src/adapters/kafka/spec.ts";
import { errorName, kafkaError } from "../../src/adapters/kafka/wire/errors.ts";
import { createNet } from "../../src/adapters/net/net.ts";
import { systemChance } from "../../src/adapters/system/chance.ts";
import { systemClock } from "../../src/adapters/system/clock.ts";
import { systemSaslCrypto } from "../../src/adapters/system/sasl-crypto.ts";
import type { Resolved } from "../../src/core/config/secret.ts";
import type { Failure } from "../../src/core/failure/failure.ts";
import type { TwgEvent } from "../../src/core/observe/events.ts";
import type { Net } from "../../src/core/ports/net.ts";
import type { Observer } from "../../src/core/ports/observer.ts";
import type { FoundStream, SourceHost, StreamStart } from "../../src/core/ports/source.ts";
import type { FrameBundle } from "../../src/core/records/frame.ts";
import { buildBatch } from "../brokers/kafka/batch-builder.ts";

const parts = {
  net: createNet(systemClock),
  clock: systemClock,
  chance: systemChance,
  crypto: systemSaslCrypto,
};

export class RealHost implements SourceHost {
  readonly lanes = 2;
  readonly source: KafkaSource;
  readonly troubles: Failure[] = [];
  readonly events: TwgEvent[] = [];
  readonly found: FoundStream[] = [];
  readonly gaps: string[] = [];
  /** Values in the order in which they came, by partition. Batches are uncompressed, so they show in the bytes. */
  readonly values: string[][] = [];
  readonly positions: bigint[] = [];
  /** Bytes that came from each port. */
  readonly received = new Map<number, number>();
  outcome = "running";
  failure: Failure | null = null;
  #wake: () => void = () => {};

  constructor(options: Record<string, unknown>) {
    const spec = kafkaSourceSpec.parse({ connect_timeout_ms: 10_000, ...options });
    const observer: Observer = { emit: (event) => this.events.push(event) };
    const net: Net = {
      dial: (to, events) =>
        parts.net.dial(to, {
          ...events,
          data: (chunk) => {
            this.#count(to.port, chunk.length);
            events.data(chunk);
          },
          placed: (bytes) => {
            this.#count(to.port, bytes);
            events.placed?.(bytes);
          },
        }),
    };
    this.source = new KafkaSource(kafkaSettings(spec as Resolved<typeof spec>, "0"), {
      ...parts,
      net,
      observer,
    });
    this.source.run(this).then(
      () => this.#end("ended", null),
      (f: Failure) => this.#end(f.code, f),
    );
  }

  #count(port: number, bytes: number): void {
    this.received.set(port, (this.received.get(port) ?? 0) + bytes);
  }

  #end(outcome: string, failure: Failure | null): void {
    this.outcome = outcome;
    this.failure = failure;
    this.#wake();
  }

  /** Waits until `done` holds, looked at whenever something happened, or until the run ends. */
  async until(done: () => boolean): Promise<void> {
    while (!done() && this.outcome === "running") {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  get total(): number {
    return this.values.reduce((n, v) => n + v.length, 0);
  }

  async begin(found: readonly FoundStream[]): Promise<readonly StreamStart[]> {
    return found.map((f) => {
      const stream = this.found.push(f) - 1;
      this.values.push([]);
      this.positions.push(f.committed ?? f.earliest);
      const { transport, cluster, topic, partition } = f;
      const id = { transport, cluster, topic, partition, incarnation: 0 };
      return { id, stream, lane: stream % this.lanes, position: this.positions[stream]!, attempt: 0 };
    });
  }

  deliver(_lane: number, { buffer, frames }: FrameBundle): void {
    for (const f of frames) {
      if (f.from !== this.positions[f.stream]) {
        this.gaps.push(`${f.stream}: from ${f.from}, expected ${this.positions[f.stream]}`);
      }
      this.positions[f.stream] = f.next;
      const text = Buffer.from(buffer, f.start, f.end - f.start).toString("latin1");
      this.values[f.stream]!.push(...(text.match(/<[\w-]+>/g) ?? []));
    }
    this.#wake();
  }

  room(): number {
    return 1 << 24;
  }

  awaited(): void {}

  async release(): Promise<void> {}

  async abandon(): Promise<void> {}

  async gone(): Promise<void> {}

  whenRoom(_lane: number, wake: () => void): void {
    wake();
  }

  takeBuffer(bytes: number): ArrayBuffer {
    return new ArrayBuffer(bytes);
  }

  giveBuffer(): void {}
  watermark(): void {}
  healthy(): void {}

  troubled(failure: Failure): void {
    this.troubles.push(failure);
    this.#wake();
  }

  async lost(): Promise<void> {}
}

/** Makes a topic and appends to it, with this project's own client. */
export class Writer {
  readonly #client: KafkaClient;
  readonly #topic: string;
  readonly #signal = new AbortController().signal;

  constructor(
    bootstrap: readonly string[],
    topic: string,
    security: Pick<ClientOptions, "tls" | "sasl"> = { tls: null, sasl: null },
  ) {
    const addresses = bootstrap.map((b) => ({ host: b.split(":")[0]!, port: Number(b.split(":")[1]) }));
    const options: ClientOptions = {
      bootstrap: addresses,
      clientId: "twg-test",
      version: "0",
      ...security,
      dialTimeoutMs: 5000,
      requestTimeoutMs: 20_000,
      maxResponseBytes: 1 << 24,
    };
    this.#client = new KafkaClient(options, parts);
    this.#topic = topic;
  }

  async create(partitions: number, replicas: number): Promise<void> {
    const ready = () => [...(this.#client.metadata.topics.get(this.#topic)?.partitions.values() ?? [])];
    await this.#client.refresh([this.#topic], this.#signal);
    const topic = { name: this.#topic, numPartitions: partitions, replicationFactor: replicas };
    const link = await this.#client.link(
      [...this.#client.metadata.brokers.keys()][0]!,
      CONTROL,
      this.#signal,
    );
    const made = await this.#client.ask(
      link,
      "CreateTopics",
      { topics: [topic], timeoutMs: 20_000 },
      this.#signal,
    );
    if (made.topics[0]?.errorCode !== 0) throw new Error(`CreateTopics: ${JSON.stringify(made.topics)}`);
    // The controller has it at once; each broker learns of it when it does.
    while (ready().length < partitions || ready().some((p) => p.leader < 0)) {
      await this.#client.refresh([this.#topic], this.#signal);
    }
  }

  /** Learns who leads now. */
  async locate(): Promise<void> {
    await this.#client.refresh([this.#topic], this.#signal);
  }

  /** Appends `<prefix-partition-i>` values, ten a batch, acknowledged by all replicas. */
  async append(partition: number, prefix: string, from: number, count: number): Promise<void> {
    for (let i = from; i < from + count; i += 10) {
      const n = Math.min(10, from + count - i);
      const records = Array.from({ length: n }, (_, k) => ({ value: `<${prefix}-${partition}-${i + k}>` }));
      await this.#produce(partition, buildBatch({ records, baseTimestamp: BigInt(Date.now()) }));
    }
  }

  /** Tried again while the topic is new to its leader: an error of that kind has appended nothing. */
  async #produce(partition: number, records: Uint8Array): Promise<void> {
    for (;;) {
      const { leader } = this.#client.metadata.leader(this.#topic, partition);
      const link = await this.#client.link(leader, CONTROL, this.#signal);
      const data = { index: partition, records };
      const topicId = this.#client.metadata.idOf(this.#topic);
      const topicData = [{ name: this.#topic, topicId, partitionData: [data] }];
      const body = { acks: -1, timeoutMs: 10_000, topicData };
      const response = await this.#client.ask(link, "Produce", body, this.#signal);
      const code = response.responses[0]?.partitionResponses[0]?.errorCode ?? -1;
      if (code === 0) return;
      if (kafkaError(code).action !== "refresh") throw new Error(`Produce: ${errorName(code)}`);
      await this.locate();
    }
  }

  close(): void {
    this.#client.close();
  }
}

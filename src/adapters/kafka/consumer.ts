/**
 * A consumer without the pipeline: the same source, its frames decoded on this thread, batch by batch.
 *
 *   const consumer = new KafkaConsumer(consumerSettings({ bootstrap: ["kafka:9092"], topics: ["orders"], group: "g" }), parts);
 *   for await (const batch of consumer.batches(signal)) { ... }
 *
 * Asking for the next batch says that the last one is done: with a group its position is committed then, and before a
 * partition goes to another member. What was not done when the loop ends is read again by whoever comes next.
 */
import type { Codecs } from "../../core/compression/codec.ts";
import type { Resolved } from "../../core/config/secret.ts";
import { asFailure, Failure } from "../../core/failure/failure.ts";
import type { FrameDecoder } from "../../core/ports/lane-parts.ts";
import type { FoundStream, SourceHost, StreamStart } from "../../core/ports/source.ts";
import type { Frame } from "../../core/records/frame.ts";
import type { RawBatch } from "../../core/records/raw-batch.ts";
import type { StreamId } from "../../core/records/stream.ts";
import type { ClientParts } from "./client.ts";
import type { GroupProof } from "./producer/transactions.ts";
import { kafkaSettings } from "./settings.ts";
import { KafkaSource, type KafkaSourceSettings } from "./source.ts";
import { kafkaSourceSpec } from "./spec.ts";
import { createFrameDecoder } from "./wire/records/frame-decoder.ts";

export interface ConsumerParts extends ClientParts {
  readonly codecs: Codecs;
}

export interface ConsumerOptions {
  /** Bytes that are fetched ahead. Default 32 MiB. */
  readonly aheadBytes?: number;
  /** False: whoever asks for batches commits their positions, in a transaction (`groupMetadata`). Default true. */
  readonly commits?: boolean;
  /** Where a partition begins; null: at its commit, without one where `start` says. */
  readonly position?: (found: FoundStream) => bigint | null;
}

/** The source's options as in a configuration's [source], without secrets. Throws what is wrong with them. */
export function consumerSettings(options: Record<string, unknown>): KafkaSourceSettings {
  const spec = kafkaSourceSpec.parse(options);
  return kafkaSettings(spec as Resolved<typeof spec>, "0");
}

interface Stream {
  readonly id: StreamId;
  attempt: number;
}

interface Waiting {
  readonly bytes: Uint8Array;
  readonly frame: Frame;
  readonly receivedAt: number;
}

/** Stops a decoder after its first batch, whose arrays the next one would take. */
const STOP = new Error("one batch is enough");

export class KafkaConsumer {
  readonly #source: KafkaSource;
  readonly #settings: KafkaSourceSettings;
  readonly #decoder: FrameDecoder;
  readonly #options: ConsumerOptions;
  readonly #streams: Stream[] = [];
  #queue: Waiting[] = [];
  #held = 0;
  #failure: Failure | null = null;
  #ended = false;
  /** The batch that the caller has. */
  #current: { readonly stream: number; readonly next: bigint } | null = null;
  #wake: () => void = () => {};
  #roomWaiters: (() => void)[] = [];
  /** Called when the caller has done with its batch. */
  #doneWaiters: (() => void)[] = [];

  constructor(settings: KafkaSourceSettings, parts: ConsumerParts, options: ConsumerOptions = {}) {
    this.#settings = settings;
    this.#decoder = createFrameDecoder({ codecs: parts.codecs });
    this.#options = options;
    this.#source = new KafkaSource(settings, parts);
  }

  /**
   * Batches of all partitions, each partition's in its order; one of no rows stands for offsets without records. A
   * batch's arrays are the caller's until it asks for the next. Ends when `signal` aborts, throws the Failure that
   * ended the source. Once per consumer.
   */
  async *batches(signal: AbortSignal): AsyncGenerator<RawBatch, void> {
    const stop = () => this.#wake();
    signal.addEventListener("abort", stop, { once: true });
    this.#source.run(this.#host()).then(
      () => this.#end(null),
      (e) => this.#end(asFailure(e)),
    );
    try {
      for (;;) {
        while (this.#queue.length === 0 && !this.#ended && !signal.aborted) await this.#something();
        if (signal.aborted || this.#ended) break;
        const batch = this.#decode(this.#queue[0]!);
        const stream = this.#queue[0]!.frame.stream;
        const { next } = batch.span;
        this.#current = { stream, next };
        yield batch;
        await this.#done(stream, next);
      }
    } finally {
      signal.removeEventListener("abort", stop);
      this.#current = null;
      for (const wake of this.#doneWaiters.splice(0)) wake();
      await this.#source.close();
    }
    if (this.#failure !== null) throw this.#failure;
  }

  /**
   * Proof of who may commit the positions of the batch in hand, for a producer's `sendOffsets` (KIP-447): a member that was
   * evicted meanwhile is fenced by it. Waits while the group forms anew. Rejects with kafka.partition_lost if the batch's
   * partition is another member's by now: its transaction is to be aborted.
   */
  async groupMetadata(signal: AbortSignal): Promise<GroupProof> {
    const { group } = this.#settings;
    if (group === null)
      throw new Failure("config.missing", "the consumer is in no group", { at: "source.group" });
    const current = this.#current;
    const member = await this.#source.member(signal);
    if (current !== null && !this.#source.owns(current.stream)) {
      const { topic, partition } = this.#streams[current.stream]!.id;
      throw new Failure("kafka.partition_lost", `another member has ${topic}/${partition} by now`, {
        at: `${topic}/${partition}`,
        hint: "Abort the transaction and go on with the next batch: these records are read by the other member",
      });
    }
    const { memberId, epoch, instanceId } = member ?? { memberId: "", epoch: -1, instanceId: null };
    return { group, generation: epoch, memberId, instanceId };
  }

  #something(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  #end(failure: Failure | null): void {
    this.#failure ??= failure;
    this.#ended = true;
    this.#wake();
  }

  /** The first batch of what waits; the rest of it stays. */
  #decode(waiting: Waiting): RawBatch {
    const { bytes, frame, receivedAt } = waiting;
    const { id } = this.#streams[frame.stream]!;
    let first: RawBatch | null = null;
    try {
      this.#decoder.decode(bytes, frame, id, receivedAt, (batch) => {
        first = batch;
        throw STOP;
      });
    } catch (e) {
      if (e !== STOP && first === null) throw e;
    }
    return first!;
  }

  /** The batch up to `next` is done. */
  async #done(stream: number, next: bigint): Promise<void> {
    this.#current = null;
    const head = this.#queue[0];
    // It may have been taken from us meanwhile.
    if (head?.frame.stream === stream && head.frame.from < next) {
      if (head.frame.next > next) this.#queue[0] = { ...head, frame: { ...head.frame, from: next } };
      else this.#drop([this.#queue.shift()!]);
    }
    if (this.#settings.group !== null && this.#options.commits !== false)
      await this.#source.acknowledge([{ stream, next }]).catch(() => {});
    for (const wake of this.#doneWaiters.splice(0)) wake();
  }

  #drop(dropped: readonly Waiting[]): void {
    for (const { frame } of dropped) this.#held -= frame.end - frame.start;
    for (const wake of this.#roomWaiters.splice(0)) wake();
  }

  #forget(streams: readonly number[]): void {
    const mine = (w: Waiting) => streams.includes(w.frame.stream);
    const dropped = this.#queue.filter(mine);
    this.#queue = this.#queue.filter((w) => !mine(w));
    this.#drop(dropped);
  }

  // ---- the source's host

  #host(): SourceHost {
    const ahead = this.#options.aheadBytes ?? 33_554_432;
    return {
      lanes: 1,
      begin: async (found) => found.map((f) => this.#begin(f)),
      room: () => Math.max(0, ahead - this.#held),
      whenRoom: (_lane, wake) => {
        if (this.#held < ahead) wake();
        else this.#roomWaiters.push(wake);
      },
      takeBuffer: (bytes) => new ArrayBuffer(bytes),
      giveBuffer: () => {},
      deliver: (_lane, { buffer, frames, receivedAt }) => {
        const bytes = new Uint8Array(buffer);
        for (const frame of frames) {
          if (frame.attempt !== this.#streams[frame.stream]?.attempt) continue;
          this.#held += frame.end - frame.start;
          this.#queue.push({ bytes, frame, receivedAt });
        }
        this.#wake();
      },
      watermark: () => {},
      healthy: () => {},
      troubled: () => {},
      awaited: () => {},
      gone: async (stream) => this.#forget([stream]),
      release: async (streams) => {
        this.#forget(streams);
        const current = this.#current;
        if (current === null || !streams.includes(current.stream)) return;
        await new Promise<void>((resolve) => this.#doneWaiters.push(resolve));
      },
      abandon: async (streams) => this.#forget(streams),
      lost: async (stream, _from, next) => {
        this.#forget([stream]);
        const s = this.#streams[stream]!;
        this.#source.seek(stream, next, ++s.attempt);
      },
    };
  }

  #begin(found: FoundStream): StreamStart {
    const { transport, cluster, topic, partition } = found;
    const id: StreamId = { transport, cluster, topic, partition, incarnation: 0 };
    const stream = this.#streams.push({ id, attempt: 0 }) - 1;
    const { start } = this.#settings;
    const first =
      found.startAt ?? (start === "latest" && found.appeared !== true ? found.latest : found.earliest);
    const position = this.#options.position?.(found) ?? found.committed ?? first;
    return { id, stream, lane: 0, position, attempt: 0 };
  }
}

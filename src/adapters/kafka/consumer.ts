/**
 * A consumer without the pipeline: the same source, its frames decoded on this thread, batch by batch.
 *
 *   const consumer = new KafkaConsumer(consumerSettings({ bootstrap: ["kafka:9092"], topics: ["orders"], group: "g" }), parts);
 *   for await (const batch of consumer.batches(signal)) { ... }
 *
 * Asking for the next batch says that the last one is done: with a group its position is committed soon, and before a
 * partition goes to another member or the loop ends. What was not done then is read again by whoever comes next.
 */
import type { Codecs } from "../../core/compression/codec.ts";
import type { Resolved } from "../../core/config/secret.ts";
import { asFailure, Failure } from "../../core/failure/failure.ts";
import type { FoundStream, SourceHost, StreamStart } from "../../core/ports/source.ts";
import type { RawBatch } from "../../core/records/raw-batch.ts";
import type { StreamId } from "../../core/records/stream.ts";
import { type Clock, sleep } from "../../core/time/clock.ts";
import type { ClientParts } from "./client.ts";
import { ConsumerCommits } from "./consumer-commits.ts";
import { ConsumerQueue, type Waiting } from "./consumer-queue.ts";
import { type ConsumerBatch, type LentBatch, lend } from "./lent-batch.ts";
import type { GroupProof } from "./producer/transactions.ts";
import { kafkaSettings } from "./settings.ts";
import { KafkaSource, type KafkaSourceSettings } from "./source.ts";
import { kafkaSourceSpec } from "./spec.ts";
import { createFrameDecoder, type LendingDecoder } from "./wire/records/frame-decoder.ts";

export interface ConsumerParts extends ClientParts {
  readonly codecs: Codecs;
}

export interface ConsumerOptions {
  /** Bytes that are fetched ahead. Default 32 MiB. */
  readonly aheadBytes?: number;
  /**
   * Between two commits; what was done since the last one is read again after a crash. 0: each batch is committed before
   * the next one is given, at the cost of waiting for the broker each time. Default 1,000.
   */
  readonly commitIntervalMs?: number;
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

const AHEAD_BYTES = 33_554_432;
const COMMIT_INTERVAL_MS = 1_000;
/** The last commit of a consumer that ends; a broker that does not answer must not keep it. */
const LAST_COMMIT_MS = 5_000;
/** A caller that never waits for anything would keep heartbeats and sockets waiting: after so long they have a turn. */
const TURN_MS = 50;

/** Stops a decoder after its first batch, whose arrays the next one would take. */
const STOP = new Error("one batch is enough");

export class KafkaConsumer {
  readonly #source: KafkaSource;
  readonly #settings: KafkaSourceSettings;
  readonly #decoder: LendingDecoder;
  readonly #clock: Clock;
  readonly #queue: ConsumerQueue;
  /** Null: there is no group, or whoever asks for batches commits. */
  readonly #commits: ConsumerCommits | null;
  readonly #options: ConsumerOptions;
  readonly #streams: Stream[] = [];
  #failure: Failure | null = null;
  #ended = false;
  /** The batch that the caller has. */
  #current: { readonly stream: number; readonly next: bigint; readonly lent: LentBatch } | null = null;
  #wake: () => void = () => {};
  /** Called when the caller has done with its batch. */
  #doneWaiters: (() => void)[] = [];

  constructor(settings: KafkaSourceSettings, parts: ConsumerParts, options: ConsumerOptions = {}) {
    this.#settings = settings;
    this.#decoder = createFrameDecoder({ codecs: parts.codecs });
    this.#options = options;
    this.#clock = parts.clock;
    this.#queue = new ConsumerQueue(options.aheadBytes ?? AHEAD_BYTES);
    this.#source = new KafkaSource(settings, parts);
    const commit = {
      clock: parts.clock,
      commit: this.#source.acknowledge.bind(this.#source),
      intervalMs: options.commitIntervalMs ?? COMMIT_INTERVAL_MS,
    };
    this.#commits = settings.group === null || options.commits === false ? null : new ConsumerCommits(commit);
  }

  /**
   * Batches of all partitions, each partition's in its order; one of no rows stands for offsets without records. A
   * batch is the caller's until it asks for the next: then it throws kafka.batch_over, and arrays that were taken out of
   * it are detached (its `copy()` can be kept). Ends when `signal` aborts, throws the Failure that ended the source. Once
   * per consumer.
   */
  async *batches(signal: AbortSignal): AsyncGenerator<ConsumerBatch, void> {
    const stop = () => this.#wake();
    signal.addEventListener("abort", stop, { once: true });
    this.#source.run(this.#host()).then(
      () => this.#end(null),
      (e) => this.#end(asFailure(e)),
    );
    let turned = this.#clock.monotonic();
    try {
      for (;;) {
        if (this.#clock.monotonic() - turned >= TURN_MS) {
          await sleep(this.#clock, 0);
          turned = this.#clock.monotonic();
        }
        while (this.#queue.first === null && !this.#ended && !signal.aborted) {
          await this.#something();
          turned = this.#clock.monotonic();
        }
        const { first } = this.#queue;
        if (first === null || signal.aborted || this.#ended) break;
        const batch = this.#decode(first);
        const lent = lend(batch, (column) => this.#decoder.detach(column));
        this.#current = { stream: first.frame.stream, next: batch.span.next, lent };
        yield lent.batch;
        await this.#done();
      }
    } finally {
      signal.removeEventListener("abort", stop);
      this.#putBack();
      await this.#lastCommit();
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
    const { frame, answer } = waiting;
    const { bytes, receivedAt } = answer;
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

  /** The batch in hand is done. */
  async #done(): Promise<void> {
    const { stream, next } = this.#current!;
    // It may have been taken from us meanwhile.
    const frame = this.#queue.first?.frame;
    if (frame?.stream === stream && frame.from < next) this.#queue.advance(next);
    const told = this.#commits?.done(stream, next);
    if (told) await told;
    this.#putBack();
  }

  /** The caller has no batch any more. */
  #putBack(): void {
    this.#current?.lent.end();
    this.#current = null;
    for (const wake of this.#doneWaiters.splice(0)) wake();
  }

  async #lastCommit(): Promise<void> {
    if (this.#commits === null) return;
    const enough = new AbortController();
    const late = sleep(this.#clock, LAST_COMMIT_MS, enough.signal).catch(() => {});
    await Promise.race([this.#commits.flush(), late]);
    enough.abort();
    this.#commits.stop();
  }

  // ---- the source's host

  #host(): SourceHost {
    const queue = this.#queue;
    return {
      lanes: 1,
      begin: async (found) => found.map((f) => this.#begin(f)),
      room: () => queue.room,
      whenRoom: (_lane, wake) => queue.whenRoom(wake),
      takeBuffer: (bytes) => queue.take(bytes),
      giveBuffer: (buffer) => queue.give(buffer),
      deliver: (_lane, bundle) => {
        if (queue.push(bundle, (f) => f.attempt === this.#streams[f.stream]?.attempt)) this.#wake();
      },
      watermark: () => {},
      healthy: () => {},
      troubled: () => {},
      awaited: () => {},
      gone: async (stream) => this.#forget([stream]),
      release: async (streams) => {
        queue.forget(streams);
        const current = this.#current;
        if (current !== null && streams.includes(current.stream)) {
          await new Promise<void>((resolve) => this.#doneWaiters.push(resolve));
        }
        await this.#commits?.flush();
      },
      abandon: async (streams) => this.#forget(streams),
      lost: async (stream, _from, next) => {
        queue.forget([stream]);
        const s = this.#streams[stream]!;
        this.#source.seek(stream, next, ++s.attempt);
      },
    };
  }

  #forget(streams: readonly number[]): void {
    this.#queue.forget(streams);
    this.#commits?.forget(streams);
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

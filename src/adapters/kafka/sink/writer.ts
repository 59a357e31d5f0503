/** The raw sink's end in a lane: records into topics as they came, straight from their columns. */
import { Failure } from "../../../core/failure/failure.ts";
import type { Authority } from "../../../core/ports/coverage.ts";
import type { RawWriter, SetFiles, SetRefusal } from "../../../core/ports/lane-parts.ts";
import { recordPlace } from "../../../core/records/int64-at.ts";
import type { RawBatch } from "../../../core/records/raw-batch.ts";
import { type Span, type StreamKey, streamKey } from "../../../core/records/stream.ts";
import { type HeaderChoice, ownedColumns } from "./columns.ts";
import type { LaneTransactions } from "./lane-transactions.ts";
import { TransactionSet, type TransactionSetOptions, type TransactionSetParts } from "./set.ts";
import { filledName } from "./settings.ts";

/** Plain data: it crosses to the lane's thread. */
export interface KafkaWriterOptions extends TransactionSetOptions {
  /** With `{topic}`. */
  readonly topic: string;
  /** To the partition of the same number; else by key. */
  readonly samePartition: boolean;
  readonly headers: HeaderChoice;
  /** A set that holds so much takes no further batch. */
  readonly commitBytes: number;
}

interface Largest {
  readonly bytes: number;
  readonly at: string;
}

export class KafkaWriter implements RawWriter {
  readonly #o: KafkaWriterOptions;
  readonly #set: TransactionSet;
  readonly #topics = new Map<string, string>();
  /** Largest record of the set, for whoever has to find one that is too large. */
  #most: Largest = { bytes: -1, at: "" };

  /** `lane`: shared with the other writers of the lane. */
  constructor(options: KafkaWriterOptions, parts: TransactionSetParts, lane: LaneTransactions) {
    this.#o = options;
    this.#set = new TransactionSet(options, parts, lane);
  }

  get held(): number {
    return this.#set.held;
  }

  get largest(): number {
    return this.#set.refused ? Number.POSITIVE_INFINITY : this.#set.size;
  }

  open(id: string): void {
    this.#set.open(id);
    this.#most = { bytes: -1, at: "" };
  }

  write(batch: RawBatch, authority: Authority): number {
    const writer = authority.kind === "generation" ? authority.writer : undefined;
    const set = this.#set;
    if (set.size >= this.#o.commitBytes || !set.takes(writer)) return 0;
    const { stream, rows } = batch;
    const { columns, bytes, largestRow, largestBytes } = ownedColumns(batch, this.#o.headers);
    if (largestBytes > this.#most.bytes)
      this.#most = { bytes: largestBytes, at: recordPlace(batch, largestRow) };
    const partition = this.#o.samePartition ? stream.partition : null;
    set.add(keyOf(batch), writer, rows, { topic: this.#topic(stream.topic), partition, columns, bytes });
    return rows;
  }

  flush(): Promise<void> {
    return this.#explained(() => this.#set.flush());
  }

  seal(spans: readonly Span[], authorities: readonly Authority[]): Promise<SetFiles | SetRefusal> {
    return this.#explained(() => this.#set.seal(spans, authorities));
  }

  abort(): Promise<void> {
    return this.#set.abort();
  }

  #topic(source: string): string {
    let topic = this.#topics.get(source);
    if (topic === undefined) {
      topic = filledName(this.#o.topic, { topic: source });
      this.#topics.set(source, topic);
    }
    return topic;
  }

  /** Brokers say that a batch is too large, and nobody can find the record by that. */
  async #explained<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (e) {
      if (!(e instanceof Failure) || e.code !== "kafka.record_too_large" || this.#most.bytes < 0) throw e;
      const { bytes, at } = this.#most;
      throw new Failure(e.code, `${e.message}; the largest of the set is ${at} of ${bytes} bytes`, {
        ...(e.at === null ? {} : { at: e.at }),
        hint: "Nothing of the set has landed. Raise max.message.bytes of the topic that is written to, and start again",
        cause: e,
      });
    }
  }
}

function keyOf(batch: RawBatch): StreamKey {
  return streamKey(batch.stream);
}

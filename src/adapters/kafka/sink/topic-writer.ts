/** A Kafka sink's end in a lane, whatever is given to it: what becomes records of a batch is somebody else's matter. */
import { Failure, failureLine } from "../../../core/failure/failure.ts";
import type { BranchBatch, BranchWriter } from "../../../core/ports/branch-parts.ts";
import type { Authority } from "../../../core/ports/coverage.ts";
import type { SetFiles, SetRefusal } from "../../../core/ports/lane-parts.ts";
import { recordPlace } from "../../../core/records/int64-at.ts";
import { type Span, type StreamId, streamKey } from "../../../core/records/stream.ts";
import type { OwnedColumns } from "./columns.ts";
import type { LaneTransactions } from "./lane-transactions.ts";
import { TransactionSet, type TransactionSetOptions, type TransactionSetParts } from "./set.ts";
import { filledName } from "./settings.ts";

/** Plain data: it crosses to the lane's thread. */
export interface TopicWriterOptions extends TransactionSetOptions {
  /** With `{topic}`. */
  readonly topic: string;
  /** To the partition of the same number; else by key. */
  readonly samePartition: boolean;
  /** A set that holds so much takes no further batch. */
  readonly commitBytes: number;
}

/** What becomes of a batch; nothing of `owned` may be the batch's. */
export interface OwnedRecords {
  readonly stream: StreamId;
  readonly owned: OwnedColumns;
  /** Positions of the records' sources as pairs of int32, low half first. */
  readonly offsets: Int32Array;
}

interface Largest {
  readonly bytes: number;
  readonly at: string;
}

export class TopicWriter<B extends BranchBatch> implements BranchWriter<B> {
  readonly #o: TopicWriterOptions;
  readonly #set: TransactionSet;
  readonly #recordsOf: (batch: B) => OwnedRecords | null;
  readonly #topics = new Map<string, string>();
  /** Largest record of the set, for whoever has to find one that is too large. */
  #most: Largest = { bytes: -1, at: "" };

  /** `lane`: shared with the other writers of the lane. `recordsOf`: null, the batch has none for this sink. */
  constructor(
    options: TopicWriterOptions,
    parts: TransactionSetParts,
    lane: LaneTransactions,
    recordsOf: (batch: B) => OwnedRecords | null,
  ) {
    this.#o = options;
    this.#set = new TransactionSet(options, parts, lane);
    this.#recordsOf = recordsOf;
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

  write(batch: B, authority: Authority): number {
    const { writer } = authority;
    const set = this.#set;
    if (set.size >= this.#o.commitBytes || !set.takes(writer)) return 0;
    const records = this.#recordsOf(batch);
    if (records === null) return batch.rows;
    const { stream, owned, offsets } = records;
    const { columns, bytes, largestRow, largestBytes } = owned;
    if (largestBytes > this.#most.bytes)
      this.#most = { bytes: largestBytes, at: recordPlace({ stream, offsets }, largestRow) };
    const partition = this.#o.samePartition ? stream.partition : null;
    const topic = this.#topic(stream.topic);
    const key = streamKey(stream);
    // The primary sink leaves nothing out: its positions are acknowledged in order.
    const origins = this.#o.late ? { stream: key, offsets: offsets.slice(0, 2 * columns.rows) } : null;
    set.add(key, writer, columns.rows, { topic, partition, columns, bytes, origins });
    return batch.rows;
  }

  flush(): Promise<void> {
    return this.#explained(() => this.#set.flush());
  }

  async seal(spans: readonly Span[], authorities: readonly Authority[]): Promise<SetFiles | SetRefusal> {
    try {
      return await this.#explained(() => this.#set.seal(spans, authorities));
    } catch (e) {
      // Too many to leave them out: it costs the set, which becomes a gap, and a new claim.
      if (!this.#o.late || !(e instanceof Failure) || !UNFIT.has(e.code)) throw e;
      await this.#set.abort();
      return { refused: "gone", detail: failureLine(e) };
    }
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
        hint: `Nothing of the set has landed. Raise max.message.bytes of the topic that is written to${this.#o.late ? "" : ", and start again"}`,
        cause: e,
      });
    }
  }
}

/** What a broker says of records that it will not take, however often it is asked. */
const UNFIT: ReadonlySet<string> = new Set(["kafka.record_too_large", "kafka.record_refused"]);

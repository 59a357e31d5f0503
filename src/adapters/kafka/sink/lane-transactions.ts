/**
 * The transactions of a lane, one after the other: its client, the producer under the identity that claims gave out, and
 * what stands covered under each generation. The sets of a lane share it, since they share the identity: while one has a
 * transaction, no other may begin one.
 */
import { Failure } from "../../../core/failure/failure.ts";
import type { WriterIdentity } from "../../../core/ports/coverage.ts";
import type { StreamKey } from "../../../core/records/stream.ts";
import { type ClientParts, KafkaClient } from "../client.ts";
import type { ProducerOptions } from "../producer/options.ts";
import { KafkaProducer, type ProducerParts } from "../producer/producer.ts";
import type { KafkaSinkSettings } from "./settings.ts";
import type { Landed } from "./state.ts";

/** Plain data: it crosses to the lane's thread. */
export interface LaneTransactionsOptions {
  readonly settings: KafkaSinkSettings;
  readonly compression: NonNullable<ProducerOptions["compression"]>;
  readonly compressionLevel: number | null;
  readonly batchBytes: number;
  readonly transactionTimeoutMs: number;
}

export interface LaneTransactionsParts extends ClientParts, ProducerParts {
  /** Unique to this lane of this process: identities of another life are not used. */
  readonly writer: string;
}

/** What stands covered of a stream's current generation. */
export interface Held {
  readonly generation: number;
  readonly landed: Landed;
}

/** Brokers take what they are asked to; a record is only compared with what they allow. */
const MAX_RECORD_BYTES = 512 * 1024 * 1024;
const BUFFER_BYTES = 8 * 1024 * 1024;
const LINGER_MS = 20;
/** An outage is seen as one after so long, and the records are read again after it. */
const PATIENCE_MS = 60_000;

export class LaneTransactions {
  readonly #o: LaneTransactionsOptions;
  readonly #p: LaneTransactionsParts;
  #settings: KafkaSinkSettings;
  #client: KafkaClient | null = null;
  #producer: KafkaProducer | null = null;
  /** Whose `#producer` is. */
  #identity: WriterIdentity | null = null;
  /** It failed, or was left in the middle: of no use any more. */
  #spent: WriterIdentity | null = null;
  readonly landed: Map<StreamKey, Held> = new Map();

  constructor(options: LaneTransactionsOptions, parts: LaneTransactionsParts) {
    this.#o = options;
    this.#settings = options.settings;
    this.#p = parts;
  }

  /** Connections that are opened from now on use these. */
  renew(settings: KafkaSinkSettings): void {
    this.#settings = settings;
    this.#client?.renew(settings);
  }

  /** Bytes of records that were sent and are not confirmed. */
  get held(): number {
    return this.#producer?.held ?? 0;
  }

  /** Aborts when the lane's client is closed. */
  get life(): AbortSignal {
    this.#client ??= new KafkaClient(this.#settings, this.#p);
    return this.#client.life;
  }

  /** The producer of an identity. Throws kafka.producer_fenced for one that is of no use (any more). */
  async producing(writer: WriterIdentity): Promise<KafkaProducer> {
    if (this.#producer !== null && this.#identity !== null && sameIdentity(this.#identity, writer))
      return this.#producer;
    const stale = this.#spent !== null && sameIdentity(this.#spent, writer);
    if (writer.life !== this.#p.writer || stale)
      throw new Failure("kafka.producer_fenced", `the identity of ${writer.id} is spent`);
    this.#producer?.abort();
    this.#identity = writer;
    this.#client ??= new KafkaClient(this.#settings, this.#p);
    const { transactionTimeoutMs, batchBytes, compression, compressionLevel } = this.#o;
    const level = compressionLevel === null ? {} : { compressionLevel };
    this.#producer = new KafkaProducer(
      this.#client,
      {
        transactionalId: writer.id,
        transactionTimeoutMs,
        deliveryTimeoutMs: Math.min(transactionTimeoutMs, PATIENCE_MS),
        batchBytes,
        bufferBytes: BUFFER_BYTES,
        maxRecordBytes: MAX_RECORD_BYTES,
        lingerMs: LINGER_MS,
        compression,
        ...level,
      },
      this.#p,
    );
    try {
      await this.#producer.assume({ id: writer.producerId, epoch: writer.epoch }, this.#client.life);
    } catch (e) {
      this.#close();
      throw e;
    }
    return this.#producer;
  }

  /** The identity is of no use any more; its transaction, if there is one, is left to whoever asks for the id next. */
  spend(writer: WriterIdentity): void {
    this.#spent = writer;
    if (this.#identity !== null && sameIdentity(this.#identity, writer)) this.#close();
  }

  #close(): void {
    this.#producer?.abort();
    this.#producer = null;
    this.#identity = null;
  }
}

export function sameIdentity(a: WriterIdentity, b: WriterIdentity): boolean {
  return a.id === b.id && a.life === b.life && a.producerId === b.producerId && a.epoch === b.epoch;
}

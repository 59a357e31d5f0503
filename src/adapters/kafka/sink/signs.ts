/**
 * What an owner of a Kafka sink says without the lock, which a claim of somebody else may need just now: that it lives, and
 * from where on its streams are its own (decision 0037). Each is one record, and the last one counts.
 */
import type { Claim } from "../../../core/ports/coverage.ts";
import type { StreamKey } from "../../../core/records/stream.ts";
import type { KafkaClient } from "../client.ts";
import { columnsOf } from "../producer/columns.ts";
import { KafkaProducer, type ProducerParts } from "../producer/producer.ts";
import { beatKey, encodeHead, headKey, type SinkKey, STATE_PARTITION } from "./state.ts";

export interface OwnerSignsOptions {
  readonly topic: string;
  readonly key: SinkKey;
  readonly instance: string;
}

export interface OwnerSignsParts extends ProducerParts {
  readonly client: KafkaClient;
}

const REQUEST_MS = 30_000;
const PRODUCER = { lingerMs: 0, batchBytes: 16 * 1024, deliveryTimeoutMs: REQUEST_MS };

/** Heads that are to be told, as they will be written. */
export type HeadTexts = ReadonlyMap<StreamKey, string>;

export class OwnerSigns {
  readonly #o: OwnerSignsOptions;
  readonly #p: OwnerSignsParts;
  /** Under which each stream was last claimed here. */
  readonly #generations = new Map<StreamKey, number>();
  readonly #told = new Map<StreamKey, string>();
  #producer: KafkaProducer | null = null;
  #beat = 0;

  constructor(options: OwnerSignsOptions, parts: OwnerSignsParts) {
    this.#o = options;
    this.#p = parts;
  }

  claimed(claims: readonly Claim[]): void {
    for (const { stream, authority } of claims)
      if (authority.kind === "generation") this.#generations.set(stream, authority.generation);
  }

  /** Those that nobody was told of, under the claims of now: one that is made until they are written makes them void. */
  moved(heads: ReadonlyMap<StreamKey, bigint>): HeadTexts {
    const all = [...heads].flatMap(([stream, from]) => {
      const generation = this.#generations.get(stream);
      return generation === undefined ? [] : [[stream, encodeHead(generation, from)] as const];
    });
    return new Map(all.filter(([stream, head]) => this.#told.get(stream) !== head));
  }

  async tell(heads: HeadTexts, signal: AbortSignal): Promise<void> {
    const { client } = this.#p;
    const { topic, key, instance } = this.#o;
    if (this.#producer === null) {
      this.#producer = new KafkaProducer(client, PRODUCER, this.#p);
      await this.#producer.start(signal);
    }
    try {
      const records = [
        { key: beatKey(key, instance), value: String(++this.#beat) },
        ...[...heads].map(([stream, value]) => ({ key: headKey(key, instance, stream), value })),
      ];
      const to = { partition: STATE_PARTITION, signal };
      await (await this.#producer.send(topic, columnsOf(records), to)).done;
    } catch (e) {
      this.close();
      throw e;
    }
    for (const [stream, head] of heads) this.#told.set(stream, head);
  }

  close(): void {
    this.#producer?.abort();
    this.#producer = null;
  }
}

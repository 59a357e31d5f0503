/**
 * Changes of a sink's coverage, one after the other over all processes. Kafka has no conditional write; what it has is
 * that of two producers with one transactional id only the later can commit. So each change is:
 *
 *   1. InitProducerId of the sink's id: whoever is in the middle of a change can commit it no more
 *   2. read the coverage to its end, which holds every change that was committed before 1
 *   3. decide, and write what is different in one transaction
 *
 * Between 2 and the commit nothing can have changed. A change that was overtaken, or whose end is not known, is made
 * again from 1 on: each is safe to be made twice.
 */
import { Failure } from "../../../core/failure/failure.ts";
import type { Chance } from "../../../core/time/chance.ts";
import { sleep } from "../../../core/time/clock.ts";
import type { KafkaClient } from "../client.ts";
import { columnsOf, type OneRecord } from "../producer/columns.ts";
import { KafkaProducer, type ProducerParts } from "../producer/producer.ts";
import type { KeyedLog } from "./keyed-log.ts";
import {
  beatKey,
  changedEntries,
  decodeState,
  type Entries,
  encodeState,
  headKey,
  RANGE_PARTITION,
  type SinkKey,
  type SinkState,
  STATE_PARTITION,
} from "./state.ts";

export interface LockOptions {
  readonly topic: string;
  readonly key: SinkKey;
  readonly transactionalId: string;
}

export interface LockParts extends ProducerParts {
  readonly client: KafkaClient;
  readonly chance: Chance;
  /** Partition of the states. */
  readonly log: KeyedLog;
}

export interface Decided<T> {
  readonly state: SinkState;
  /** Records of the partition of the ranges; null: the key ends. */
  readonly ranges?: ReadonlyMap<string, string | null>;
  readonly answer: T;
}

const TRANSACTION_MS = 30_000;
const OVERTAKEN_TRIES = 30;
const FIRST_PAUSE_MS = 10;
const LONGEST_PAUSE_MS = 1_000;
/** Somebody else has the lock by now, or had it in between. */
const OVERTAKEN: ReadonlySet<string> = new Set(["kafka.producer_fenced", "kafka.transaction_failed"]);

export class SinkLock {
  readonly #o: LockOptions;
  readonly #p: LockParts;
  #producer: KafkaProducer | null = null;

  constructor(options: LockOptions, parts: LockParts) {
    this.#o = options;
    this.#p = parts;
  }

  /** `decide` may be called again with a newer state. What it throws ends the call, and nothing is changed. */
  async change<T>(decide: (state: SinkState) => Decided<T>, signal: AbortSignal): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.#once(decide, signal);
      } catch (e) {
        this.close();
        if (!(e instanceof Failure && OVERTAKEN.has(e.code))) throw e;
        if (tries === OVERTAKEN_TRIES) {
          throw new Failure("kafka.timeout", `others changed the coverage ${tries} times meanwhile`, {
            at: this.#p.log.place,
            cause: e,
          });
        }
        const most = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** tries);
        await sleep(this.#p.clock, most * this.#p.chance.next(), signal);
      }
    }
  }

  async #once<T>(decide: (state: SinkState) => Decided<T>, signal: AbortSignal): Promise<T> {
    const { client, log } = this.#p;
    const { transactionalId, key } = this.#o;
    this.#producer ??= new KafkaProducer(
      client,
      {
        transactionalId,
        transactionTimeoutMs: TRANSACTION_MS,
        deliveryTimeoutMs: TRANSACTION_MS,
        lingerMs: 0,
        batchBytes: 256 * 1024,
      },
      this.#p,
    );
    const producer = this.#producer;
    await producer.start(signal);
    await log.readToEnd(signal);
    const before = decodeState(key, log.entries);
    const { state, ranges, answer } = decide(before);
    const changed = new Map([
      ...changedEntries(encodeState(key, before), encodeState(key, state)),
      ...strayBeats(key, log.entries, state),
    ]);
    if (changed.size === 0 && (ranges?.size ?? 0) === 0) return answer;
    producer.begin();
    await this.#send(producer, STATE_PARTITION, changed, signal);
    await this.#send(producer, RANGE_PARTITION, ranges ?? new Map(), signal);
    await producer.commit(signal);
    return answer;
  }

  async #send(
    producer: KafkaProducer,
    partition: number,
    entries: ReadonlyMap<string, string | null>,
    signal: AbortSignal,
  ): Promise<void> {
    if (entries.size === 0) return;
    const records = [...entries].map(([key, value]): OneRecord => ({ key, value }));
    await producer.send(this.#o.topic, columnsOf(records), { partition, signal });
  }

  close(): void {
    this.#producer?.abort();
    this.#producer = null;
  }
}

/** Signs of life, and heads, of processes that have left. */
function strayBeats(key: SinkKey, entries: Entries, { coverage }: SinkState): Map<string, null> {
  const owners = new Set(coverage.owners.map((o) => o.instance));
  const strays = [...entries.keys()].filter((name) => {
    const of = teller(key, name);
    return of !== null && !owners.has(of);
  });
  return new Map(strays.map((name) => [name, null]));
}

/** Whose sign of life, or head, the key is of; null: of neither. */
function teller(key: SinkKey, name: string): string | null {
  for (const start of [beatKey(key, ""), headKey(key, "", "").slice(0, -1)])
    if (name.startsWith(start)) return name.slice(start.length).split("/")[0] ?? null;
  return null;
}

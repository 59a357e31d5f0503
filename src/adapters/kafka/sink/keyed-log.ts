/**
 * One partition of a compacted topic as a map: the last committed value of every key. It is followed, never owned: each
 * read goes on where the one before ended.
 */
import type { Codecs } from "../../../core/compression/codec.ts";
import { Failure } from "../../../core/failure/failure.ts";
import type { BytesColumn, RawBatch } from "../../../core/records/raw-batch.ts";
import { type Clock, sleep } from "../../../core/time/clock.ts";
import { CONTROL, type KafkaClient } from "../client.ts";
import type { BrokerLink } from "../client-link.ts";
import { brokerFailure } from "../client-retry.ts";
import { scanBatches } from "../source-scan.ts";
import { ERROR, kafkaError } from "../wire/errors.ts";
import { EARLIEST_TIMESTAMP, LATEST_TIMESTAMP } from "../wire/messages/list-offsets.ts";
import { createFrameDecoder } from "../wire/records/frame-decoder.ts";

/** Highest versions that name topics instead of ids. */
const FETCH_BY_NAME = 12;
const FIRST_BYTES = 4 * 1024 * 1024;
const STABLE_PAUSE_MS = 10;
/** Brokers keep the end of a key for `delete.retention.ms` (a day): whoever was away for longer begins anew. */
const FRESH_MS = 3_600_000;

const UTF8 = new TextDecoder();

export interface KeyedLogParts {
  readonly client: KafkaClient;
  readonly clock: Clock;
  readonly codecs: Codecs;
  /** Longest wait for transactions of others, which hold the end of the log back. */
  readonly stableMs: number;
}

type Ask = "earliest" | "latest";

export class KeyedLog {
  readonly entries: Map<string, string> = new Map();
  readonly #topic: string;
  readonly #partition: number;
  readonly #p: KeyedLogParts;
  readonly #decoder: ReturnType<typeof createFrameDecoder>;
  #position: bigint | null = null;
  #readAt = 0;

  constructor(topic: string, partition: number, parts: KeyedLogParts) {
    this.#topic = topic;
    this.#partition = partition;
    this.#p = parts;
    this.#decoder = createFrameDecoder({ codecs: parts.codecs });
  }

  /** Up to the last stable offset of now. */
  async read(signal: AbortSignal): Promise<void> {
    await this.#begin(signal);
    while (await this.#fetch(signal));
    this.#readAt = this.#p.clock.now();
  }

  /**
   * Up to what is the end of the log when this is called: everything that was committed until then is read. Waits for
   * transactions that are open below it. Rejects with kafka.timeout if they stay open.
   */
  async readToEnd(signal: AbortSignal): Promise<void> {
    const { stableMs } = this.#p;
    if (await this.readToEndWithin(stableMs, signal)) return;
    throw new Failure("kafka.timeout", `a transaction was open for ${stableMs} ms`, {
      at: this.place,
      hint: "The brokers end it when its time-out is over",
    });
  }

  /** The same; false: transactions stayed open for so long, and what is behind them was not read. */
  async readToEndWithin(ms: number, signal: AbortSignal): Promise<boolean> {
    await this.#begin(signal);
    const end = await this.#offset("latest", signal);
    const { clock } = this.#p;
    const until = clock.monotonic() + ms;
    while (this.#at < end) {
      if (await this.#fetch(signal)) continue;
      if (this.#at >= end) break;
      if (clock.monotonic() >= until) return false;
      await sleep(clock, STABLE_PAUSE_MS, signal);
    }
    this.#readAt = clock.now();
    return true;
  }

  get place(): string {
    return `${this.#topic}/${this.#partition}`;
  }

  get #at(): bigint {
    return this.#position ?? 0n;
  }

  async #begin(signal: AbortSignal): Promise<void> {
    if (this.#position !== null && this.#p.clock.now() - this.#readAt <= FRESH_MS) return;
    this.entries.clear();
    this.#position = await this.#offset("earliest", signal);
  }

  async #leader(signal: AbortSignal): Promise<BrokerLink> {
    const { client } = this.#p;
    let { leader } = client.metadata.leader(this.#topic, this.#partition);
    if (leader < 0 || !client.metadata.brokers.has(leader)) {
      await client.refresh([this.#topic], signal);
      leader = client.metadata.leader(this.#topic, this.#partition).leader;
    }
    if (leader < 0) throw brokerFailure(ERROR.LEADER_NOT_AVAILABLE, "coverage topic", this.place);
    try {
      return await client.link(leader, CONTROL, signal);
    } catch (e) {
      await client.refresh([this.#topic], signal);
      throw e;
    }
  }

  /** Rejects with the broker's error; what a move of the leader brought about is looked up before. */
  async #check(code: number, what: string, link: BrokerLink, signal: AbortSignal): Promise<void> {
    if (code === ERROR.NONE) return;
    if (code === ERROR.OFFSET_OUT_OF_RANGE) {
      throw new Failure("kafka.offset_out_of_range", `the coverage ends before offset ${this.#at}`, {
        at: this.place,
        hint: "The coverage topic was truncated, or deleted and made anew, while it was in use",
      });
    }
    if (kafkaError(code).action === "refresh") await this.#p.client.refresh([this.#topic], signal);
    throw brokerFailure(code, `${what} of ${this.place}`, link.at);
  }

  async #offset(which: Ask, signal: AbortSignal): Promise<bigint> {
    const link = await this.#leader(signal);
    const timestamp = which === "earliest" ? EARLIEST_TIMESTAMP : LATEST_TIMESTAMP;
    const partition = { partitionIndex: this.#partition, currentLeaderEpoch: -1, timestamp };
    const body = {
      replicaId: -1,
      isolationLevel: 0,
      topics: [{ name: this.#topic, partitions: [partition] }],
    };
    const { topics } = await this.#p.client.ask(link, "ListOffsets", body, signal);
    const answer = topics[0]?.partitions[0];
    await this.#check(answer?.errorCode ?? ERROR.UNKNOWN_TOPIC_OR_PARTITION, "ListOffsets", link, signal);
    return answer?.offset ?? 0n;
  }

  /** False: there is nothing more to read now. */
  async #fetch(signal: AbortSignal, bytes = FIRST_BYTES): Promise<boolean> {
    const link = await this.#leader(signal);
    const body = {
      replicaId: -1,
      maxWaitMs: 0,
      minBytes: 0,
      maxBytes: bytes,
      isolationLevel: 1,
      sessionId: 0,
      sessionEpoch: -1,
      topics: [
        {
          topic: this.#topic,
          partitions: [{ partition: this.#partition, fetchOffset: this.#at, partitionMaxBytes: bytes }],
        },
      ],
      forgottenTopicsData: [],
      rackId: "",
    };
    const response = await this.#p.client.ask(link, "Fetch", body, signal, FETCH_BY_NAME);
    await this.#check(response.errorCode, "Fetch", link, signal);
    const answer = response.responses[0]?.partitions[0];
    if (answer === undefined) return false;
    await this.#check(answer.errorCode, "Fetch", link, signal);
    const { records } = answer;
    if (records === null || records.length === 0) return false;
    const scan = scanBatches(records);
    if (scan.end === 0) return scan.need === 0 ? false : this.#fetch(signal, 2 * scan.need);
    if (scan.next <= this.#at) return false;
    this.#take(records, scan.end, scan.next, answer.abortedTransactions ?? []);
    return true;
  }

  #take(
    bytes: Uint8Array,
    end: number,
    next: bigint,
    aborted: readonly { readonly producerId: bigint; readonly firstOffset: bigint }[],
  ): void {
    const frame = {
      stream: 0,
      attempt: 0,
      from: this.#at,
      next,
      start: 0,
      end,
      aborted,
      committedOnly: true,
    };
    const id = {
      transport: "kafka",
      cluster: "",
      topic: this.#topic,
      incarnation: 0,
      partition: this.#partition,
    } as const;
    this.#decoder.decode(bytes, frame, id, 0, (batch) => this.#apply(batch));
    this.#position = next;
  }

  #apply({ rows, key, value }: RawBatch): void {
    for (let row = 0; row < rows; row++) {
      const name = textOf(key, row);
      if (name === null) continue;
      const text = textOf(value, row);
      if (text === null) this.entries.delete(name);
      else this.entries.set(name, text);
    }
  }
}

function textOf(column: BytesColumn, row: number): string | null {
  if (column.nullCount > 0 && ((column.validity[row >>> 3]! >>> (row & 7)) & 1) === 0) return null;
  return UTF8.decode(column.data.subarray(column.offsets[row]!, column.offsets[row + 1]!));
}

/**
 * A Kafka producer. Records are given as columns and go out in batches; each call's `Delivery` tells what became of
 * them. With acks "all" (the default) it is idempotent: whatever has to be sent again, no record is written twice and
 * none out of order.
 *
 *   const producer = new KafkaProducer(client, { compression: "zstd" }, parts);
 *   await producer.start(signal);
 *   const delivery = await producer.send("orders", columns, { signal });   // waits for room in the buffer
 *   const placed = await delivery.done;                                    // partition, offset, rows
 *   await producer.close(signal);
 */
import type { Codecs } from "../../../core/compression/codec.ts";
import { asFailure, Failure } from "../../../core/failure/failure.ts";
import type { Chance } from "../../../core/time/chance.ts";
import { type Clock, sleep, type Timer } from "../../../core/time/clock.ts";
import { CONTROL, type KafkaClient, until } from "../client.ts";
import { cancelled } from "../client-link.ts";
import { Backoff, brokerFailure, isWorthAnotherTry } from "../client-retry.ts";
import { ERROR } from "../wire/errors.ts";
import type { RecordColumns } from "../wire/records/record-writer.ts";
import { BrokerSender } from "./broker-sender.ts";
import { Delivery } from "./delivery.ts";
import { ProduceMachine } from "./machine.ts";
import type { ProducerRules } from "./machine-ports.ts";
import { type ProducerOptions, rulesOf, type SendOptions } from "./options.ts";
import type { PartitionQueue, ProducerIdentity } from "./partition-queue.ts";
import { keyPartition } from "./partitioner.ts";
import { TopicTable, type WrittenTopic } from "./topic-table.ts";
import { type GroupOffset, type GroupProof, Transactions } from "./transactions.ts";

export interface ProducerParts {
  readonly clock: Clock;
  readonly chance: Chance;
  readonly codecs: Codecs;
}

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 1_000;
/** Metadata are asked for at most so often, whatever goes wrong. */
const REFRESH_PAUSE_MS = 100;

export class KafkaProducer {
  readonly #client: KafkaClient;
  readonly #o: ProducerOptions;
  readonly #parts: ProducerParts;
  readonly #rules: ProducerRules;
  readonly #machine: ProduceMachine;
  readonly #topics: TopicTable;
  readonly #senders = new Map<number, BrokerSender>();
  readonly #transactions: Transactions | null;
  /** Aborted when the producer is closed. */
  readonly #life = new AbortController();
  #waiting: (() => void)[] = [];
  /** End of the line of calls that wait for room: rows of one call stay together and in order. */
  #line: Promise<void> = Promise.resolve();
  #inLine = 0;
  #timer: Timer | null = null;
  #timerAt = 0;
  #pumping = false;
  #identifying = false;
  #refreshAt = Number.NEGATIVE_INFINITY;
  #freshUntil = Number.NEGATIVE_INFINITY;

  /** The client's connections are shared and stay the caller's. Throws config.conflict. */
  constructor(client: KafkaClient, options: ProducerOptions, parts: ProducerParts) {
    const { clock, chance, codecs } = parts;
    this.#client = client;
    this.#o = options;
    this.#parts = parts;
    this.#rules = rulesOf(options);
    this.#machine = new ProduceMachine(this.#rules, codecs, {
      spoiled: (failure, fatal) => this.#transactions?.spoil(failure, fatal),
      settled: () => this.#wake(),
      pause: (sends) =>
        Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(sends - 1, 10)) * (1 - 0.2 * chance.next()),
    });
    const { batchBytes, deliveryTimeoutMs: timeoutMs } = this.#rules;
    this.#topics = new TopicTable({ client, machine: this.#machine, clock, chance, batchBytes, timeoutMs });
    const calls = { client, clock, chance, timeoutMs };
    const id = options.transactionalId;
    this.#transactions =
      id === undefined ? null : new Transactions(id, options.transactionTimeoutMs ?? 60_000, calls);
  }

  /** Bytes that are held for records without an outcome. */
  get held(): number {
    return this.#machine.held;
  }

  /**
   * Gets the producer id; with a transactional id it takes that over and aborts what its former owner left open.
   * Rejects if that cannot be had in `deliveryTimeoutMs`.
   */
  async start(signal: AbortSignal): Promise<void> {
    if (this.#transactions !== null) this.#machine.identify(await this.#transactions.init(signal));
    else if (this.#rules.idempotent) this.#machine.identify(await this.#newIdentity(signal));
  }

  /**
   * Instead of `start`: transactions under an identity that was had elsewhere for this transactional id. It is good until
   * somebody else asks for one, and this producer never does.
   */
  async assume(identity: ProducerIdentity, signal: AbortSignal): Promise<void> {
    await this.#transactional().assume(identity, signal);
    this.#machine.identify(identity);
  }

  /** An id of any broker. */
  async #newIdentity(signal: AbortSignal): Promise<ProducerIdentity> {
    const { clock, chance } = this.#parts;
    const backoff = new Backoff(chance);
    const end = clock.monotonic() + this.#rules.deliveryTimeoutMs;
    for (;;) {
      let failure: Failure;
      try {
        if (this.#client.metadata.brokers.size === 0) await this.#client.refresh([], signal);
        const brokers = [...this.#client.metadata.brokers.keys()];
        const broker = brokers[Math.floor(chance.next() * brokers.length)]!;
        const link = await this.#client.link(broker, CONTROL, signal);
        const body = { transactionalId: null, transactionTimeoutMs: 0x7fffffff };
        const response = await this.#client.ask(link, "InitProducerId", body, signal);
        if (response.errorCode === ERROR.NONE)
          return { id: response.producerId, epoch: response.producerEpoch };
        failure = brokerFailure(response.errorCode, "InitProducerId", link.at);
      } catch (e) {
        failure = asFailure(e);
      }
      const pause = backoff.next();
      if (!isWorthAnotherTry(failure, "starting") || clock.monotonic() + pause >= end) throw failure;
      await sleep(clock, pause, signal);
    }
  }

  // ---- records

  /**
   * Gives records to the producer. Resolves when all of them are in its buffer, which waits for room; what becomes of
   * them is the delivery's. The columns are copied and may be reused then. A row that cannot be sent (too large)
   * fails alone. Rejects where the topic cannot be found, or the transaction is spoiled.
   */
  async send(topic: string, columns: RecordColumns, options: SendOptions): Promise<Delivery> {
    this.#transactions?.check();
    const { signal } = options;
    const delivery = new Delivery(options.leaveOut);
    const found = this.#topics.known(topic) ?? (await this.#topics.find(topic, signal));
    let row = 0;
    if (this.#inLine === 0 && !this.#life.signal.aborted)
      row = this.#give(found, columns, 0, delivery, options);
    if (row < columns.rows) {
      await this.#inTurn(async () => {
        while (row < columns.rows) {
          await this.#room(signal);
          row = this.#give(found, columns, row, delivery, options);
        }
      });
    }
    delivery.complete();
    return delivery;
  }

  async #inTurn(work: () => Promise<void>): Promise<void> {
    this.#inLine++;
    const turn = this.#line.then(work);
    this.#line = turn.catch(() => {});
    try {
      await turn;
    } finally {
      this.#inLine--;
    }
  }

  /** Gives rows from `from` on until the buffer is full; answers the first that was not taken. */
  #give(
    topic: WrittenTopic,
    columns: RecordColumns,
    from: number,
    delivery: Delivery,
    o: SendOptions,
  ): number {
    const machine = this.#machine;
    const now = this.#parts.clock.monotonic();
    const wall = this.#parts.clock.now();
    const fixed = o.partition === undefined ? null : queueOf(topic, o.partition);
    let row = from;
    for (; row < columns.rows && !machine.full; row++) {
      const keyed = fixed === null ? this.#keyed(topic, columns, row) : null;
      const queue = fixed ?? keyed ?? this.#sticky(topic);
      try {
        const bytes = machine.append(queue, columns, row, delivery, now, wall);
        if (fixed === null && keyed === null) topic.sticky.took(bytes);
      } catch (e) {
        delivery.joined();
        const failure = asFailure(e);
        if (!delivery.leftOut(row, failure)) delivery.failed(failure, 1);
      }
    }
    if (machine.takeStirred()) this.#kick();
    return row;
  }

  /** The partition of a row's key, null for a row without one. */
  #keyed(topic: WrittenTopic, { key }: RecordColumns, row: number): PartitionQueue | null {
    if (key === null) return null;
    if (key.nullCount > 0 && ((key.validity[row >>> 3]! >>> (row & 7)) & 1) === 0) return null;
    const { queues } = topic;
    return queues[keyPartition(key.data, key.offsets[row]!, key.offsets[row + 1]!, queues.length)]!;
  }

  #sticky(topic: WrittenTopic): PartitionQueue {
    const partition = topic.sticky.current(topic.led, (n) => topic.queues[n]!.queued);
    return topic.queues[partition]!;
  }

  /** Resolves once there is room. What lingers does so no longer meanwhile. */
  async #room(signal: AbortSignal): Promise<void> {
    const release = this.#machine.hurry();
    try {
      while (this.#machine.full) {
        this.#kick();
        await this.#settled(signal);
      }
    } finally {
      release();
    }
    this.#alive();
  }

  #alive(): void {
    if (this.#life.signal.aborted) throw cancelled("a closed producer's send");
  }

  /** Resolves when something is settled. */
  #settled(signal: AbortSignal): Promise<void> {
    this.#alive();
    return until(
      new Promise<void>((resolve) => this.#waiting.push(resolve)),
      signal,
      "waiting for the producer",
    );
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }

  /** Resolves when every record given until now has an outcome, which may be a failure: see the deliveries. */
  async flush(signal: AbortSignal): Promise<void> {
    const release = this.#machine.hurry();
    try {
      await this.#line;
      while (!this.#machine.idle) {
        this.#kick();
        await this.#settled(signal);
      }
    } finally {
      release();
    }
  }

  /** Flushes and ends. Records without an outcome when `signal` aborts fail. A transaction that is not ended is aborted. */
  async close(signal: AbortSignal): Promise<void> {
    try {
      if (this.#transactions?.unfinished === true) await this.abortTransaction(signal);
      await this.flush(signal);
    } finally {
      this.abort();
    }
  }

  /** Ends at once: everything without an outcome fails. */
  abort(): void {
    if (this.#life.signal.aborted) return;
    this.#life.abort(cancelled("the producer"));
    this.#timer?.cancel();
    this.#machine.dropAll(cancelled("a record of a producer that was closed"));
    for (const broker of this.#senders.keys()) this.#client.release(broker, "produce");
    this.#wake();
  }

  // ---- transactions

  #transactional(): Transactions {
    if (this.#transactions === null) throw new Failure("internal.bug", "the producer has no transactionalId");
    return this.#transactions;
  }

  /** Everything that is sent until `commit` or `abortTransaction` is one transaction. */
  begin(): void {
    this.#transactional().begin();
  }

  /** Adds the position of a group: it is committed with the records, or not at all. */
  sendOffsets(proof: GroupProof, offsets: readonly GroupOffset[], signal: AbortSignal): Promise<void> {
    return this.#transactional().sendOffsets(proof, offsets, signal);
  }

  /**
   * Waits for all records and commits. Rejects with what spoiled the transaction (then `abortTransaction`), with
   * kafka.producer_fenced, or with kafka.transaction_unknown.
   */
  async commit(signal: AbortSignal): Promise<void> {
    const transactions = this.#transactional();
    await this.flush(signal);
    this.#machine.identify(await transactions.commit(signal));
  }

  /** Records that were not sent yet fail with kafka.transaction_failed; then a new transaction may begin. */
  async abortTransaction(signal: AbortSignal): Promise<void> {
    const transactions = this.#transactional();
    this.#machine.dropUnsent(
      new Failure("kafka.transaction_failed", "the transaction was aborted before this was sent"),
    );
    await this.flush(signal);
    this.#machine.identify(await transactions.abort(signal));
  }

  // ---- the loop

  /** Looks for something to do, soon. */
  #kick(): void {
    if (this.#pumping) return;
    this.#pumping = true;
    queueMicrotask(() => {
      this.#pumping = false;
      if (!this.#life.signal.aborted) this.#pump();
    });
  }

  #pump(): void {
    const now = this.#parts.clock.monotonic();
    this.#machine.expire(now);
    if (this.#rules.idempotent && this.#machine.identity === null && !this.#machine.idle) this.#identify();
    const byLeader = new Map<number, PartitionQueue[]>();
    const strangers: PartitionQueue[] = [];
    let leaderless = false;
    for (const queue of this.#machine.active()) {
      if (!this.#machine.sendable(queue, now)) continue;
      if (this.#transactions?.admits(queue) === false) {
        strangers.push(queue);
        continue;
      }
      const { leader } = this.#client.metadata.leader(queue.topic, queue.partition);
      if (leader < 0 || !this.#client.metadata.brokers.has(leader)) leaderless = true;
      else if (byLeader.has(leader)) byLeader.get(leader)!.push(queue);
      else byLeader.set(leader, [queue]);
    }
    for (const [leader, queues] of byLeader) this.#sender(leader).pump(queues);
    if (strangers.length > 0) this.#admit(strangers);
    if (leaderless || now >= this.#freshUntil) this.#refresh(now);
    this.#arm(now);
  }

  #sender(broker: number): BrokerSender {
    let sender = this.#senders.get(broker);
    if (sender === undefined) {
      const { acks } = this.#rules;
      const { ackTimeoutMs = 30_000, transactionalId = null } = this.#o;
      const transactions = this.#transactions;
      sender = new BrokerSender(
        this.#client,
        broker,
        this.#machine,
        { acks, ackTimeoutMs, transactionalId },
        {
          get ceiling() {
            return transactions === null ? null : transactions.produceCeiling;
          },
          turned: (refresh) => {
            if (refresh) this.#refresh(this.#parts.clock.monotonic());
            this.#kick();
          },
          unreachable: () => this.#refresh(this.#parts.clock.monotonic()),
        },
        this.#parts.clock,
      );
      this.#senders.set(broker, sender);
    }
    return sender;
  }

  /** Asks who leads what, not too often. Whatever comes of it, it is looked for something to do afterwards. */
  #refresh(now: number): void {
    if (now < this.#refreshAt) return this.#armAt(this.#refreshAt, now);
    this.#refreshAt = now + REFRESH_PAUSE_MS;
    this.#freshUntil = now + (this.#o.metadataRefreshMs ?? 300_000);
    void this.#topics.refresh(this.#life.signal).then(() => this.#kick());
  }

  #admit(queues: readonly PartitionQueue[]): void {
    this.#transactions!.admit(queues, this.#life.signal).then(
      (news) => {
        if (news) this.#kick();
      },
      (e) => this.#dropSpoiled(asFailure(e)),
    );
  }

  /** Nothing of a transaction that can only be aborted is sent any more. */
  #dropSpoiled(failure: Failure): void {
    this.#transactions?.spoil(failure, false);
    this.#machine.dropUnsent(failure);
  }

  /** Epochs of the producer id have run out. */
  #identify(): void {
    if (this.#identifying || this.#transactions !== null) return;
    this.#identifying = true;
    this.#newIdentity(this.#life.signal)
      .then(
        (identity) => this.#machine.identify(identity),
        () => {},
      )
      .finally(() => {
        this.#identifying = false;
        this.#kick();
      });
  }

  #arm(now: number): void {
    const at = this.#machine.wakeAt(now);
    if (at !== null) this.#armAt(at, now);
  }

  #armAt(at: number, now: number): void {
    if (this.#timer !== null && this.#timerAt <= at) return;
    this.#timer?.cancel();
    this.#timerAt = at;
    this.#timer = this.#parts.clock.after(Math.max(0, at - now), () => {
      this.#timer = null;
      if (!this.#life.signal.aborted) this.#pump();
    });
  }
}

function queueOf(topic: WrittenTopic, partition: number): PartitionQueue {
  const queue = topic.queues[partition];
  if (queue === undefined) {
    throw new Failure("kafka.unknown_partition", `topic ${topic.name} has no partition ${partition}`, {
      hint: `It has ${topic.queues.length}`,
    });
  }
  return queue;
}

/**
 * The producer without a socket and without a clock: records go in, batches to send come out, answers go in. What
 * memory it holds is counted; who has no room waits outside.
 */
import type { Codecs } from "../../../core/compression/codec.ts";
import type { Code } from "../../../core/failure/codes.ts";
import type { Failure } from "../../../core/failure/failure.ts";
import { V2_RECORDS } from "../wire/records/layout.ts";
import {
  farTimestamp,
  isTooLong,
  type RecordColumns,
  RecordWriter,
  rowBound,
  timestampOf,
} from "../wire/records/record-writer.ts";
import { sealBatch, stampBatch, UNSTAMPED } from "../wire/records/seal.ts";
import { splitBatch } from "../wire/records/split.ts";
import { PendingBatch } from "./batch.ts";
import { BatchMemory, FIRST_BYTES } from "./batch-memory.ts";
import type { Delivery } from "./delivery.ts";
import type { Consequence, MachineHost, PartitionAnswer, ProducerRules } from "./machine-ports.ts";
import { PartitionQueue, type ProducerIdentity } from "./partition-queue.ts";
import { codeOfRefusal, outOfTime, refusedFailure, sequenceLost, tooLarge } from "./refusals.ts";
import { mayBeWritten, produceVerdict, type Verdict } from "./verdict.ts";

/** As brokers keep the last five batches of a producer, more must not be under way in a partition. */
const MAX_IN_FLIGHT = 5;
/** Timestamps further apart than this do not stand in one batch: their difference would not be exact. */
const FAR_APART = 2 ** 51;

/** Milliseconds; `far`: exact, where a double is not. */
interface RowTime {
  readonly timestamp: number;
  readonly far: bigint | null;
}

export class ProduceMachine {
  readonly #rules: ProducerRules;
  readonly #codecs: Codecs;
  readonly #host: MachineHost;
  readonly #queues = new Map<string, Map<number, PartitionQueue>>();
  /** Those with anything to do. */
  readonly #active = new Set<PartitionQueue>();
  readonly #memory: BatchMemory;
  #identity: ProducerIdentity | null = null;
  #held = 0;
  /** Open batches wait no longer: somebody waits for them, or for their memory. */
  #hurried = 0;
  #stirred = false;

  constructor(rules: ProducerRules, codecs: Codecs, host: MachineHost) {
    this.#rules = rules;
    this.#memory = new BatchMemory(rules.batchBytes + V2_RECORDS, rules.bufferBytes / 2);
    this.#codecs = codecs;
    this.#host = host;
  }

  /** Bytes of all batches that are not settled. */
  get held(): number {
    return this.#held;
  }

  get full(): boolean {
    return this.#held >= this.#rules.bufferBytes;
  }

  get idle(): boolean {
    return this.#active.size === 0;
  }

  get identity(): ProducerIdentity | null {
    return this.#identity;
  }

  /** Without one nothing of an idempotent producer is sent; null: a new one is needed. */
  identify(identity: ProducerIdentity | null): void {
    this.#identity = identity;
  }

  /** Until the returned function is called, open batches do not linger. */
  hurry(): () => void {
    this.#hurried++;
    let done = false;
    return () => {
      if (!done) this.#hurried--;
      done = true;
    };
  }

  queued(topic: string, partition: number): number {
    return this.#queues.get(topic)?.get(partition)?.queued ?? 0;
  }

  queue(topic: string, partition: number): PartitionQueue {
    let ofTopic = this.#queues.get(topic);
    if (ofTopic === undefined) {
      ofTopic = new Map();
      this.#queues.set(topic, ofTopic);
    }
    let queue = ofTopic.get(partition);
    if (queue === undefined) {
      queue = new PartitionQueue(topic, partition);
      ofTopic.set(partition, queue);
    }
    return queue;
  }

  /**
   * Takes the row into its partition's batch; answers its bytes. Throws kafka.record_too_large.
   * It does not look at the budget: callers do, row by row or batch by batch.
   */
  append(
    queue: PartitionQueue,
    columns: RecordColumns,
    row: number,
    delivery: Delivery,
    now: number,
    wall: number,
  ): number {
    const bound = rowBound(columns, row);
    if (bound > this.#rules.maxRecordBytes || isTooLong(bound))
      throw tooLarge(placeOf(queue), bound, this.#rules.maxRecordBytes);
    const timestamp = timestampOf(columns, row, wall);
    const far = farTimestamp(columns, row, timestamp);
    const batch = this.#open(queue, bound, { timestamp, far }, now);
    const writer = batch.writer!;
    const before = writer.length;
    writer.append(columns, row, timestamp, far);
    batch.add(delivery, row);
    if (writer.length >= this.#rules.batchBytes) this.#close(queue);
    return writer.length - before;
  }

  /** The open batch with room for `bound` bytes. */
  #open(queue: PartitionQueue, bound: number, { timestamp, far }: RowTime, now: number): PendingBatch {
    const open = queue.open;
    if (open !== null) {
      const w = open.writer!;
      const fits = w.length + bound <= this.#rules.batchBytes + V2_RECORDS;
      if (fits && far === w.farTimestamp && Math.abs(timestamp - w.baseTimestamp) < FAR_APART) {
        if (w.length + bound > w.capacity) this.#grow(open, w, w.length + bound);
        return open;
      }
      this.#close(queue);
    }
    const memory = this.#memory.take(Math.max(FIRST_BYTES, V2_RECORDS + bound));
    const { topic, partition } = queue;
    const batch = new PendingBatch(topic, partition, queue.nextOrder(), 1, now, new RecordWriter(memory));
    queue.open = batch;
    this.#active.add(queue);
    this.#stirred = true;
    this.#hold(batch, memory.length);
    return batch;
  }

  #close(queue: PartitionQueue): void {
    if (queue.open === null) return;
    queue.ready.push(queue.open);
    queue.open = null;
    this.#stirred = true;
  }

  /** Whether a batch was begun or filled since the last time this was asked. */
  takeStirred(): boolean {
    const was = this.#stirred;
    this.#stirred = false;
    return was;
  }

  #grow(batch: PendingBatch, w: RecordWriter, need: number): void {
    const largest = this.#rules.batchBytes + V2_RECORDS;
    const memory = this.#memory.take(Math.max(need, Math.min(2 * w.capacity, largest)));
    this.#memory.give(w.moveTo(memory));
    this.#hold(batch, memory.length);
  }

  #hold(batch: PendingBatch, bytes: number): void {
    this.#held += bytes - batch.held;
    batch.held = bytes;
  }

  // ---- sending

  /** Partitions that have something to send, now or later. */
  active(): Iterable<PartitionQueue> {
    return this.#active;
  }

  /** An open batch waits no longer than it lingers. */
  #due(open: PendingBatch, now: number): boolean {
    return this.#hurried > 0 || now - open.createdAt >= this.#rules.lingerMs;
  }

  /** Whether the queue has a batch that could be sent now. */
  sendable(queue: PartitionQueue, now: number): boolean {
    if (this.#rules.idempotent && this.#identity === null) return false;
    return queue.head(now, this.#inFlightLimit, (open) => this.#due(open, now)) !== null;
  }

  /** Without sequences a second batch under way could overtake a first that has to be sent again. */
  get #inFlightLimit(): number {
    return this.#rules.idempotent ? MAX_IN_FLIGHT : 1;
  }

  /**
   * The batches for one request to the broker that leads these queues: at most one for each, up to the limit of a
   * request. They count as sent. The queues that were served go to the end, so that none starves.
   */
  take(queues: readonly PartitionQueue[], now: number): PendingBatch[] {
    const taken: PendingBatch[] = [];
    let bytes = 0;
    for (const queue of queues) {
      if (!this.sendable(queue, now)) continue;
      const batch = queue.head(now, this.#inFlightLimit, (open) => this.#due(open, now))!;
      if (this.#expired(queue, batch, now)) continue;
      const size = batch.bytes?.length ?? batch.writer!.length;
      if (taken.length > 0 && bytes + size > this.#rules.requestBytes) continue;
      this.#send(queue, batch);
      taken.push(batch);
      bytes += batch.bytes!.length;
      this.#active.delete(queue);
      this.#active.add(queue);
    }
    return taken;
  }

  #send(queue: PartitionQueue, batch: PendingBatch): void {
    const { writer } = batch;
    if (writer !== null) this.#seal(batch, writer);
    const first = batch.sends === 0;
    const { idempotent, transactional } = this.#rules;
    const stamp = queue.sent(batch, idempotent ? this.#identity : null);
    if (stamp !== null) {
      const { identity, sequence } = stamp;
      const fields = { producerId: identity.id, epoch: identity.epoch, sequence, transactional };
      stampBatch(this.#codecs, batch.bytes!, fields);
    } else if (first && !idempotent) stampBatch(this.#codecs, batch.bytes!, UNSTAMPED);
  }

  #seal(batch: PendingBatch, writer: RecordWriter): void {
    const bytes = sealBatch(this.#codecs, this.#rules.compression, writer);
    batch.bytes = bytes;
    batch.writer = null;
    if (bytes.buffer === writer.bytes.buffer) return;
    this.#memory.give(writer.bytes);
    this.#hold(batch, bytes.length);
  }

  /** Monotonic time at which something may be sent or expires that cannot yet; null: nothing waits for time. */
  wakeAt(now: number): number | null {
    let at = Number.POSITIVE_INFINITY;
    for (const queue of this.#active) {
      const first = queue.ready[0] ?? queue.open;
      if (first === null) continue;
      at = Math.min(at, first.createdAt + this.#rules.deliveryTimeoutMs);
      const next = queue.pausedUntil > now ? queue.pausedUntil : first.createdAt + this.#rules.lingerMs;
      // What is due already and was not sent waits for something else than time.
      if (next > now) at = Math.min(at, next);
    }
    return at === Number.POSITIVE_INFINITY ? null : at;
  }

  /** Gives up what waits for longer than the delivery time-out. */
  expire(now: number): void {
    for (const queue of [...this.#active]) {
      for (const batch of [...queue.ready, ...(queue.open === null ? [] : [queue.open])]) {
        if (!this.#expired(queue, batch, now)) break;
      }
    }
  }

  #expired(queue: PartitionQueue, batch: PendingBatch, now: number): boolean {
    if (now - batch.createdAt < this.#rules.deliveryTimeoutMs) return false;
    const { deliveryTimeoutMs } = this.#rules;
    this.#fail(queue, batch, outOfTime(batch, deliveryTimeoutMs));
    return true;
  }

  // ---- answers

  /** The broker's answer about a batch that was sent. */
  answered(batch: PendingBatch, answer: PartitionAnswer, now: number): Consequence {
    const queue = this.queue(batch.topic, batch.partition);
    const verdict = produceVerdict(answer.errorCode);
    switch (verdict) {
      case "written":
      case "duplicate":
        queue.written(batch, verdict === "written" ? answer.baseOffset : -1n, now);
        this.#settle(queue, batch);
        batch.written(verdict === "written" ? answer.baseOffset : -1n);
        this.#host.settled();
        return "none";
      case "again":
      case "refresh":
        batch.doubtful ||= mayBeWritten(answer.errorCode);
        this.#again(queue, batch, now);
        return verdict === "refresh" ? "refresh" : "none";
      case "split":
        this.#unfit(queue, batch, "kafka.record_too_large", answer);
        return "none";
      case "out_of_order":
      case "forgotten":
      case "old_epoch":
        this.#sequenceRefused(queue, batch, verdict, answer, now);
        return "none";
      default:
        this.#refused(queue, batch, verdict, answer);
        return "none";
    }
  }

  /** Acks 0: it was given to the connection, and that is all that will be known. */
  handedOver(batch: PendingBatch, now: number): void {
    const queue = this.queue(batch.topic, batch.partition);
    queue.written(batch, -1n, now);
    this.#settle(queue, batch);
    batch.written(-1n);
    this.#host.settled();
  }

  /** The connection ended, or could not be had: whether it was written nobody knows. */
  lost(batch: PendingBatch, now: number): void {
    batch.doubtful = true;
    this.#again(this.queue(batch.topic, batch.partition), batch, now);
  }

  #again(queue: PartitionQueue, batch: PendingBatch, now: number): void {
    queue.again(batch, now + this.#host.pause(batch.sends));
    this.#expired(queue, batch, now);
  }

  /** What the broker will never take as it is: smaller batches, down to the record that it is said of. */
  #unfit(queue: PartitionQueue, batch: PendingBatch, code: Code, answer: PartitionAnswer): void {
    if (batch.count > 1) return this.#split(queue, batch);
    const failure = refusedFailure(code, batch, answer);
    if (!batch.leftOut(failure)) return this.#fail(queue, batch, failure);
    queue.leftOut(batch);
    this.#settle(queue, batch);
    this.#host.settled();
  }

  #split(queue: PartitionQueue, batch: PendingBatch): void {
    const [first, second] = splitBatch(this.#codecs, this.#rules.compression, batch.bytes!);
    const halves = batch.split(first, second, batch.count >>> 1);
    queue.halves(batch, ...halves);
    this.#hold(batch, 0);
    for (const half of halves) {
      this.#hold(half, half.bytes!.length);
      this.#restamp(queue, half);
    }
  }

  /** A half keeps its part of the sequence, in bytes of its own. */
  #restamp(queue: PartitionQueue, half: PendingBatch): void {
    const identity = queue.identity;
    const { transactional } = this.#rules;
    const stamp =
      half.sequence < 0 || identity === null
        ? UNSTAMPED
        : { producerId: identity.id, epoch: identity.epoch, sequence: half.sequence, transactional };
    stampBatch(this.#codecs, half.bytes!, stamp);
  }

  #sequenceRefused(
    queue: PartitionQueue,
    batch: PendingBatch,
    verdict: Verdict,
    answer: PartitionAnswer,
    now: number,
  ): void {
    // Another before it has no outcome yet: that one decides, and this one is told so only for coming after it.
    if (!queue.isFirst(batch) || queue.waitsForLeftOut(batch)) {
      queue.again(batch, now);
      return;
    }
    if (this.#rules.transactional) {
      this.#fail(queue, batch, refusedFailure("kafka.transaction_failed", batch, answer));
      return;
    }
    // The log's tail that was confirmed is gone at the broker, which is more than this batch not being written.
    const kept = answer.logStartOffset < 0n || queue.confirmed >= answer.logStartOffset;
    const lost = verdict !== "old_epoch" && !queue.gap && queue.confirmed >= 0n && kept;
    if (lost) this.#fail(queue, batch, sequenceLost(batch, queue.confirmed, answer));
    else queue.again(batch, now + this.#host.pause(batch.sends));
    if (queue.inFlight.length === 0 && !queue.startOver()) this.#identity = null;
  }

  #refused(queue: PartitionQueue, batch: PendingBatch, verdict: Verdict, answer: PartitionAnswer): void {
    const code = codeOfRefusal(verdict, answer.errorCode);
    if (code === "kafka.record_refused" && batch.mayLeaveOut) return this.#unfit(queue, batch, code, answer);
    this.#fail(queue, batch, refusedFailure(code, batch, answer), verdict === "fenced");
  }

  #fail(queue: PartitionQueue, batch: PendingBatch, failure: Failure, fatal = false): void {
    queue.dropped(batch);
    this.#settle(queue, batch);
    batch.failed(failure);
    if (this.#rules.transactional || fatal) this.#host.spoiled(failure, fatal);
    this.#host.settled();
  }

  #settle(queue: PartitionQueue, batch: PendingBatch): void {
    const memory = batch.bytes ?? batch.writer?.bytes;
    if (memory !== undefined && memory.buffer instanceof ArrayBuffer)
      this.#memory.give(new Uint8Array(memory.buffer));
    batch.bytes = null;
    batch.writer = null;
    this.#hold(batch, 0);
    if (queue.idle) this.#active.delete(queue);
  }

  /** Gives up everything that was never sent; what was may have been written, and stays until that is known. */
  dropUnsent(failure: Failure): void {
    for (const queue of [...this.#active]) {
      const waiting = [...queue.ready, ...(queue.open === null ? [] : [queue.open])];
      for (const batch of waiting) {
        if (batch.sends > 0) continue;
        queue.dropped(batch);
        this.#settle(queue, batch);
        batch.failed(failure);
      }
    }
    this.#host.settled();
  }

  /** Gives up everything, what was sent too. */
  dropAll(failure: Failure): void {
    this.dropUnsent(failure);
    for (const queue of [...this.#active]) {
      for (const batch of [...queue.ready, ...queue.inFlight]) {
        queue.dropped(batch);
        this.#settle(queue, batch);
        batch.failed(failure);
      }
    }
    this.#host.settled();
  }
}

function placeOf(queue: PartitionQueue): string {
  return `${queue.topic}/${queue.partition}`;
}

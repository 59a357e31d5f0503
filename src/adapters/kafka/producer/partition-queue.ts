/**
 * The batches of one partition, in their order, and the sequence under which the broker takes them.
 *
 * Invariants. What is in flight and what waits is sorted by order, and stands for sequences without a hole unless
 * `gap`. After anything but a plain success nothing is sent until all in flight are answered, and then one batch at a
 * time until one is written: so a batch never overtakes another. The same holds until the broker is known to know this
 * producer: one that does not takes any first sequence, also that of a second batch whose first it turned away. A batch that was sent once is sent again with the
 * same bytes and the same sequence; only an answer that says it was *not* written lets it have another.
 */
import type { PendingBatch } from "./batch.ts";

export interface ProducerIdentity {
  readonly id: bigint;
  readonly epoch: number;
}

const SEQUENCE_MASK = 0x7fffffff;
const LARGEST_EPOCH = 32767;
/** Brokers forget a producer that is silent for a day, or for less where that is so configured. */
const REMEMBERED_MS = 600_000;

/** Sequences are int32 and go on at 0. */
export function sequenceAfter(sequence: number, records: number): number {
  return (sequence + records) & SEQUENCE_MASK;
}

export class PartitionQueue {
  readonly topic: string;
  readonly partition: number;
  /** Takes further records; the last of all. */
  open: PendingBatch | null = null;
  /** Full, or to be sent again. */
  readonly ready: PendingBatch[] = [];
  readonly inFlight: PendingBatch[] = [];
  /** One at a time until one is written. */
  recovering = false;
  /** Monotonic time before which nothing is sent. */
  pausedUntil = 0;
  /** Sequences were given to batches that never will be written, so the broker will see a hole. */
  gap = false;
  /** Largest offset that was confirmed, -1: none. */
  confirmed = -1n;
  /** The first record that was left out and whose sequence the broker still waits for. */
  #leftOut: { readonly order: number; readonly sequence: number } | null = null;
  #identity: ProducerIdentity | null = null;
  #nextSequence = 0;
  #nextOrder = 0;
  /** Monotonic time until which the broker surely knows the producer. */
  #knownUntil = Number.NEGATIVE_INFINITY;

  constructor(topic: string, partition: number) {
    this.topic = topic;
    this.partition = partition;
  }

  get idle(): boolean {
    return this.open === null && this.ready.length === 0 && this.inFlight.length === 0;
  }

  get queued(): number {
    return this.ready.length + this.inFlight.length + (this.open === null ? 0 : 1);
  }

  nextOrder(): number {
    return this.#nextOrder++;
  }

  /** The batch to send next, sealed or not; null: none now. `due` says whether an open batch need wait no longer. */
  head(now: number, maxInFlight: number, due: (open: PendingBatch) => boolean): PendingBatch | null {
    if (now < this.pausedUntil) return null;
    if (this.#leftOut !== null && this.inFlight.length === 0) this.#closeUp(this.#leftOut);
    const alone = this.recovering || now >= this.#knownUntil;
    if (this.inFlight.length >= (alone ? 1 : maxInFlight)) return null;
    const first = this.ready[0];
    if (first !== undefined) return first;
    return this.open !== null && due(this.open) ? this.open : null;
  }

  /** The head is sent: what it is to be stamped with, if it was not before. */
  sent(
    batch: PendingBatch,
    identity: ProducerIdentity | null,
  ): { identity: ProducerIdentity; sequence: number } | null {
    if (this.ready[0] === batch) this.ready.shift();
    else this.open = null;
    this.inFlight.push(batch);
    batch.sends++;
    if (identity === null || batch.sequence >= 0) return null;
    this.#follow(identity);
    const sequence = this.#nextSequence;
    batch.sequence = sequence;
    this.#nextSequence = sequenceAfter(sequence, batch.count);
    return { identity: this.#identity!, sequence };
  }

  /** A new producer id or epoch of the whole producer begins the sequence anew; our own later epoch of it stays. */
  #follow(identity: ProducerIdentity): void {
    const own = this.#identity;
    if (own !== null && own.id === identity.id && own.epoch >= identity.epoch) return;
    if (own !== null && own.id !== identity.id) this.#knownUntil = Number.NEGATIVE_INFINITY;
    this.#identity = identity;
    this.#nextSequence = 0;
  }

  /** The broker has told that it knows the producer. */
  known(now: number): void {
    this.#knownUntil = now + REMEMBERED_MS;
  }

  /** Whether nothing that was sent before it is still without an outcome. */
  isFirst(batch: PendingBatch): boolean {
    const before = this.ready[0];
    return this.inFlight[0] === batch && (before === undefined || before.order > batch.order);
  }

  answered(batch: PendingBatch): void {
    const at = this.inFlight.indexOf(batch);
    if (at >= 0) this.inFlight.splice(at, 1);
  }

  written(batch: PendingBatch, offset: bigint, now: number): void {
    this.answered(batch);
    this.known(now);
    this.recovering = false;
    // The broker did not wait for it: it goes on behind this one.
    if (this.waitsForLeftOut(batch)) this.#leftOut = null;
    const last = offset + BigInt(batch.count - 1);
    if (offset >= 0n && last > this.confirmed) this.confirmed = last;
  }

  /** Back in its place, to be sent again. */
  again(batch: PendingBatch, pausedUntil: number): void {
    this.answered(batch);
    this.recovering = true;
    this.pausedUntil = Math.max(this.pausedUntil, pausedUntil);
    let at = this.ready.length;
    while (at > 0 && this.ready[at - 1]!.order > batch.order) at--;
    this.ready.splice(at, 0, batch);
  }

  /**
   * It was not written and never will be, and what stands behind it goes on without it. The broker turns away what it was
   * sent behind it, since it waits for this one's sequence; that is given to the next as soon as nothing is in flight.
   */
  leftOut(batch: PendingBatch): void {
    this.answered(batch);
    const { order, sequence } = batch;
    if (sequence < 0) return;
    this.recovering = true;
    this.#leftOut ??= { order, sequence };
  }

  /** It stands behind one that was left out, under a sequence that the broker does not expect. */
  waitsForLeftOut(batch: PendingBatch): boolean {
    return this.#leftOut !== null && batch.order > this.#leftOut.order;
  }

  #closeUp({ order, sequence }: { readonly order: number; readonly sequence: number }): void {
    for (const b of this.ready) if (b.order > order) b.sequence = -1;
    this.#nextSequence = sequence;
    this.#leftOut = null;
  }

  /** It will not be written, or nobody will learn of it. */
  dropped(batch: PendingBatch): void {
    this.answered(batch);
    const at = this.ready.indexOf(batch);
    if (at >= 0) this.ready.splice(at, 1);
    if (this.open === batch) this.open = null;
    if (batch.sequence >= 0) {
      this.gap = true;
      this.recovering = true;
    }
  }

  /** The halves take the sequences of the whole. */
  halves(whole: PendingBatch, first: PendingBatch, second: PendingBatch): void {
    if (whole.sequence >= 0) {
      first.sequence = whole.sequence;
      second.sequence = sequenceAfter(whole.sequence, first.count);
    }
    this.again(second, 0);
    this.again(first, 0);
    this.answered(whole);
  }

  /** The epoch under which a batch that waits is stamped. */
  get identity(): ProducerIdentity | null {
    return this.#identity;
  }

  /**
   * Begins the sequence anew under the next epoch (KIP-360), which the broker takes from us without being asked. What
   * waits is stamped again. Only when nothing is in flight, and after an answer that says that the first of what waits
   * was not written: then nothing behind it was either. False: epochs have run out, another producer id is needed.
   */
  startOver(): boolean {
    this.gap = false;
    this.#leftOut = null;
    this.#knownUntil = Number.NEGATIVE_INFINITY;
    this.#nextSequence = 0;
    for (const b of this.ready) b.sequence = -1;
    const own = this.#identity;
    if (own === null || own.epoch >= LARGEST_EPOCH) return false;
    this.#identity = { id: own.id, epoch: own.epoch + 1 };
    return true;
  }
}

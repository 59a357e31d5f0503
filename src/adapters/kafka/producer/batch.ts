/** A record batch from its first record to its last answer. */
import type { Failure } from "../../../core/failure/failure.ts";
import type { RecordWriter } from "../wire/records/record-writer.ts";
import type { Delivery } from "./delivery.ts";

interface Part {
  readonly delivery: Delivery;
  rows: number;
}

export class PendingBatch {
  readonly topic: string;
  readonly partition: number;
  /** Place among the batches of its partition; halves of a split one stand in the room of the whole. */
  readonly order: number;
  readonly width: number;
  /** Monotonic, of its first record. */
  readonly createdAt: number;
  /** null once it is sealed. */
  writer: RecordWriter | null;
  /** null until it is sealed. */
  bytes: Uint8Array | null = null;
  count = 0;
  /** Of the buffer budget. */
  held = 0;
  /** -1: not stamped. */
  sequence = -1;
  /** Times that it was sent: above 0 it may have been written. */
  sends = 0;
  /** It may have been written by a sending whose answer did not come or did not tell. */
  doubtful = false;
  readonly #parts: Part[] = [];
  /** Of its records the rows of their calls, where each of them may be left out. */
  #rows: number[] = [];

  constructor(
    topic: string,
    partition: number,
    order: number,
    width: number,
    createdAt: number,
    writer: RecordWriter | null,
  ) {
    this.topic = topic;
    this.partition = partition;
    this.order = order;
    this.width = width;
    this.createdAt = createdAt;
    this.writer = writer;
  }

  get place(): string {
    return `${this.topic}/${this.partition}`;
  }

  /** A record more: a row of a call. */
  add(delivery: Delivery, row: number): void {
    if (delivery.choosy) this.#rows.push(row);
    this.#count(delivery, 1);
  }

  /** Records that brokers will never take may be left out of it. */
  get mayLeaveOut(): boolean {
    return !this.doubtful && this.#rows.length === this.count;
  }

  /** Of its only record, which is refused for good: whether the call goes on without it. */
  leftOut(failure: Failure): boolean {
    return this.mayLeaveOut && this.#parts[0]!.delivery.leftOut(this.#rows[0]!, failure);
  }

  #count(delivery: Delivery, rows: number): void {
    this.count += rows;
    const last = this.#parts.at(-1);
    if (last?.delivery === delivery) {
      last.rows += rows;
      return;
    }
    delivery.joined();
    this.#parts.push({ delivery, rows });
  }

  /** `offset` of the first record; negative: not told. */
  written(offset: bigint): void {
    let next = offset;
    for (const { delivery, rows } of this.#parts) {
      delivery.written({ partition: this.partition, offset: offset < 0n ? -1n : next, rows });
      next += BigInt(rows);
    }
  }

  failed(failure: Failure): void {
    for (const { delivery, rows } of this.#parts) delivery.failed(failure, rows);
  }

  /** Two batches for its records, of `firstCount` and the rest; this one is nobody's any more. */
  split(first: Uint8Array, second: Uint8Array, firstCount: number): readonly [PendingBatch, PendingBatch] {
    const { topic, partition, order, createdAt } = this;
    const width = this.width / 2;
    const a = new PendingBatch(topic, partition, order, width, createdAt, null);
    const b = new PendingBatch(topic, partition, order + width, width, createdAt, null);
    a.bytes = first;
    b.bytes = second;
    a.#rows = this.#rows.slice(0, firstCount);
    b.#rows = this.#rows.slice(firstCount);
    a.doubtful = this.doubtful;
    b.doubtful = this.doubtful;
    let left = firstCount;
    for (const { delivery, rows } of this.#parts) {
      const here = Math.min(left, rows);
      left -= here;
      if (here > 0) a.#count(delivery, here);
      if (here < rows) b.#count(delivery, rows - here);
      // The whole counted as one; each half has counted itself.
      delivery.complete();
    }
    return [a, b];
  }
}

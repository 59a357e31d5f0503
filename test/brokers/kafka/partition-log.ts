/**
 * The log of one partition: batches as raw bytes with the offsets that they stand for, so that any bytes at all can be
 * served. Keeps what a leader keeps beside them: log start, high watermark, open and aborted transactions, and where
 * each leader epoch began. One log stands for all replicas of the partition.
 */
import { controlBatch, HEADER_BYTES, placeBatch } from "./batch-builder.ts";

export interface LogEntry {
  readonly base: bigint;
  /** Offset after the last one of the batch. */
  readonly next: bigint;
  readonly bytes: Uint8Array;
  readonly epoch: number;
  readonly baseTimestamp: bigint;
  readonly maxTimestamp: bigint;
}

export interface Aborted {
  readonly producerId: bigint;
  readonly firstOffset: bigint;
  /** Of the abort marker. */
  readonly lastOffset: bigint;
}

const TRANSACTIONAL = 16;
const CONTROL = 32;
const ABORT_TYPE = 0;

function lowest(values: Iterable<bigint>, ceiling: bigint): bigint {
  let low = ceiling;
  for (const v of values) if (v < low) low = v;
  return low;
}

export class PartitionLog {
  start: bigint;
  /** Where the high watermark stands still; null: it is always the end of the log. */
  heldWatermark: bigint | null = null;
  entries: LogEntry[] = [];
  aborted: Aborted[] = [];
  /** First offset of every leader epoch, in their order. */
  epochs: { readonly epoch: number; readonly start: bigint }[] = [];
  #next: bigint;
  readonly #open = new Map<bigint, bigint>();

  constructor(start = 0n) {
    this.start = start;
    this.#next = start;
  }

  /** Log end offset. */
  get end(): bigint {
    return this.#next;
  }

  get highWatermark(): bigint {
    return this.heldWatermark ?? this.#next;
  }

  /** Nothing at or behind it is decided: the first offset of the oldest open transaction. */
  get lastStable(): bigint {
    return lowest(this.#open.values(), this.highWatermark);
  }

  /** A well-formed batch, placed at the end of the log. Returns its base offset. */
  append(batch: Uint8Array, epoch: number): bigint {
    const base = this.#next;
    placeBatch(batch, base, epoch);
    const view = new DataView(batch.buffer, batch.byteOffset, batch.byteLength);
    const next = base + BigInt(view.getInt32(23)) + 1n;
    this.#push(batch, base, next, epoch, view.getBigInt64(27), view.getBigInt64(35));
    this.#track(batch, view.getInt16(21), view.getBigInt64(43), base);
    return base;
  }

  /** Any bytes, as they are, standing for [base, next); `base` may leave a hole behind the end of the log. */
  appendRaw(bytes: Uint8Array, base: bigint, next: bigint, epoch = 0, timestamp = 0n): void {
    this.#push(bytes, base, next, epoch, timestamp, timestamp);
  }

  #push(
    bytes: Uint8Array,
    base: bigint,
    next: bigint,
    epoch: number,
    baseTimestamp: bigint,
    maxTimestamp: bigint,
  ): void {
    this.beginEpoch(epoch, base);
    this.entries.push({ base, next, bytes, epoch, baseTimestamp, maxTimestamp });
    this.#next = next;
  }

  #track(batch: Uint8Array, attributes: number, producerId: bigint, base: bigint): void {
    if ((attributes & TRANSACTIONAL) === 0) return;
    if ((attributes & CONTROL) === 0) {
      if (!this.#open.has(producerId)) this.#open.set(producerId, base);
      return;
    }
    const firstOffset = this.#open.get(producerId);
    this.#open.delete(producerId);
    // The marker's key lies behind five one-byte varints: version int16, type int16.
    const type = batch[HEADER_BYTES + 8];
    if (type === ABORT_TYPE && firstOffset !== undefined) {
      this.aborted.push({ producerId, firstOffset, lastOffset: base });
    }
  }

  /** Appends the marker that ends a producer's transaction. */
  endTransaction(type: "commit" | "abort", producerId: bigint, epoch: number, producerEpoch = 0): bigint {
    return this.append(controlBatch({ type, producerId, producerEpoch }), epoch);
  }

  beginEpoch(epoch: number, start: bigint = this.#next): void {
    const last = this.epochs[this.epochs.length - 1];
    if (last === undefined || epoch > last.epoch) this.epochs.push({ epoch, start });
  }

  /** Index of the first entry with an offset at or behind `offset`. */
  #find(offset: bigint): number {
    let low = 0;
    let high = this.entries.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (this.entries[mid]!.next > offset) high = mid;
      else low = mid + 1;
    }
    return low;
  }

  /**
   * Bytes from the batch that holds `from`, up to `limit`. As in a real broker the last batch may be cut off by
   * `maxBytes`; a first batch that does not fit is left out, or whole with `minOne` (KIP-74).
   */
  read(from: bigint, limit: bigint, maxBytes: number, minOne: boolean): Uint8Array {
    const parts: Uint8Array[] = [];
    let size = 0;
    for (let i = this.#find(from); i < this.entries.length; i++) {
      const entry = this.entries[i]!;
      if (entry.base >= limit || size >= maxBytes) break;
      parts.push(entry.bytes);
      size += entry.bytes.length;
    }
    // With `minOne` the first batch may be read although there is no room at all.
    if (parts.length === 0 && minOne) {
      const entry = this.entries[this.#find(from)];
      return entry !== undefined && entry.base < limit ? entry.bytes : new Uint8Array(0);
    }
    const first = parts[0]?.length ?? 0;
    if (first > maxBytes) return minOne ? parts[0]! : new Uint8Array(0);
    const whole = parts.length === 1 ? parts[0]! : Buffer.concat(parts);
    return whole.subarray(0, Math.min(size, maxBytes));
  }

  /** Aborted transactions with anything in [from, limit), as the broker lists them. */
  abortedBetween(from: bigint, limit: bigint): Aborted[] {
    return this.aborted.filter((a) => a.lastOffset >= from && a.firstOffset < limit);
  }

  /**
   * First batch that holds a timestamp at or behind `timestamp`, null if none. Real brokers look at records: this one
   * answers with the batch's base, which is at or before the exact offset.
   */
  findTimestamp(timestamp: bigint): LogEntry | null {
    return this.entries.find((e) => e.next > this.start && e.maxTimestamp >= timestamp) ?? null;
  }

  /** The batch with the largest timestamp, null in an empty log. */
  largestTimestamp(): LogEntry | null {
    let best: LogEntry | null = null;
    for (const e of this.entries) if (best === null || e.maxTimestamp > best.maxTimestamp) best = e;
    return best;
  }

  /** Where an epoch ended, as leaders answer it (KIP-279): -1 where they cannot know. */
  endOfEpoch(epoch: number): { epoch: number; end: bigint } {
    const latest = this.epochs[this.epochs.length - 1];
    if (epoch < 0 || latest === undefined || epoch > latest.epoch) return { epoch: -1, end: -1n };
    if (epoch === latest.epoch) return { epoch, end: this.#next };
    const higher = this.epochs.find((e) => e.epoch > epoch)!;
    const floor = this.epochs.findLast((e) => e.epoch <= epoch);
    return { epoch: floor?.epoch ?? epoch, end: higher.start };
  }

  /** Loses everything from `to` on, as an unclean election does. */
  truncate(to: bigint): void {
    this.entries = this.entries.filter((e) => e.next <= to);
    this.epochs = this.epochs.filter((e) => e.start < to || e.start === 0n);
    this.aborted = this.aborted.filter((a) => a.lastOffset < to);
    for (const [producerId, first] of this.#open) if (first >= to) this.#open.delete(producerId);
    this.#next = to;
  }

  /** Retention: the log begins at `to`, and batches wholly before it are gone. */
  advanceStart(to: bigint): void {
    this.start = to;
    this.entries = this.entries.filter((e) => e.next > to);
    if (this.#next < to) this.#next = to;
  }
}

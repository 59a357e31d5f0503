/**
 * The columns of a RawBatch under construction. Arrays are made once and grow; `take` hands out views of them,
 * which are good until the next record is added.
 *
 * Values are compacted in place: the records of a broker batch are put behind the values kept so far, and each
 * value is moved forward over the framing that stood before it. Framing is at least seven bytes a record, so the
 * target never overtakes the source.
 */

import { Output } from "../../../../core/compression/output.ts";
import type { BatchRuns, BytesColumn, RawBatch } from "../../../../core/records/raw-batch.ts";
import type { StreamId } from "../../../../core/records/stream.ts";
import { streamKey } from "../../../../core/records/stream.ts";

/** Rows of a batch at most. */
export const MAX_ROWS = 65_536;
/** Bytes of values, keys and headers after which a batch is handed out. */
export const MAX_BYTES = 8 * 1024 * 1024;

/** Variable-size bytes that are appended; nulls are counted and marked. */
export class Bytes implements BytesColumn {
  offsets: Int32Array;
  data: Uint8Array;
  validity: Uint8Array;
  nullCount = 0;
  count = 0;
  end = 0;

  constructor(rows: number, bytes: number) {
    this.offsets = new Int32Array(rows + 1);
    this.validity = new Uint8Array((rows + 7) >> 3).fill(255);
    this.data = new Uint8Array(bytes);
  }

  clear(): void {
    if (this.nullCount > 0) this.validity.fill(255);
    this.nullCount = 0;
    this.count = 0;
    this.end = 0;
  }

  /** Room for one more entry of `n` bytes. */
  reserve(n: number): void {
    if (this.count + 2 > this.offsets.length) this.#growEntries();
    if (this.end + n <= this.data.length) return;
    const grown = new Uint8Array(Math.max(this.data.length * 2, this.end + n));
    grown.set(this.data.subarray(0, this.end));
    this.data = grown;
  }

  #growEntries(): void {
    const offsets = new Int32Array((this.offsets.length - 1) * 2 + 1);
    offsets.set(this.offsets);
    this.offsets = offsets;
    const validity = new Uint8Array((offsets.length + 7) >> 3).fill(255);
    validity.set(this.validity);
    this.validity = validity;
  }

  /** Appends src[at, at + n); n < 0 is null. */
  add(src: Uint8Array, at: number, n: number): void {
    this.reserve(n > 0 ? n : 0);
    if (n < 0) this.markNull();
    else if (n > 48) {
      this.data.set(src.subarray(at, at + n), this.end);
      this.end += n;
    } else {
      const { data } = this;
      let w = this.end;
      for (let i = at; i < at + n; i++) data[w++] = src[i]!;
      this.end = w;
    }
    this.offsets[++this.count] = this.end;
  }

  /** Back to `count` entries that end at `end`. */
  cut(count: number, end: number): void {
    for (let i = count; i < this.count; i++) {
      if ((this.validity[i >> 3]! & (1 << (i & 7))) !== 0) continue;
      this.validity[i >> 3]! |= 1 << (i & 7);
      this.nullCount--;
    }
    this.count = count;
    this.end = end;
  }

  markNull(): void {
    this.validity[this.count >> 3]! &= ~(1 << (this.count & 7));
    this.nullCount++;
  }
}

/** Values of one broker batch that all its records share. */
export interface BatchFacts {
  readonly leaderEpoch: number;
  readonly producerId: bigint;
  readonly producerEpoch: number;
  readonly baseSequence: number;
  readonly transactional: boolean;
  /** 0 none, 1 create time, 2 log append time. */
  readonly timestampType: number;
}

class Runs implements BatchRuns {
  count = 0;
  end = new Int32Array(64);
  leaderEpoch = new Int32Array(64);
  producerId = new BigInt64Array(64);
  producerEpoch = new Int16Array(64);
  baseSequence = new Int32Array(64);
  transactional = new Uint8Array(64);
  timestampType = new Uint8Array(64);

  add(end: number, f: BatchFacts): void {
    const last = this.count - 1;
    if ((last < 0 ? 0 : this.end[last]!) === end) return;
    if (last >= 0 && this.#same(last, f)) {
      this.end[last] = end;
      return;
    }
    if (this.count === this.end.length) this.#grow();
    const i = this.count++;
    this.end[i] = end;
    this.leaderEpoch[i] = f.leaderEpoch;
    this.producerId[i] = f.producerId;
    this.producerEpoch[i] = f.producerEpoch;
    this.baseSequence[i] = f.baseSequence;
    this.transactional[i] = f.transactional ? 1 : 0;
    this.timestampType[i] = f.timestampType;
  }

  /** Back to `count` runs, the last of which ends at `end`. */
  cut(count: number, end: number): void {
    this.count = count;
    if (count > 0) this.end[count - 1] = end;
  }

  #same(i: number, f: BatchFacts): boolean {
    return (
      this.leaderEpoch[i] === f.leaderEpoch &&
      this.producerId[i] === f.producerId &&
      this.producerEpoch[i] === f.producerEpoch &&
      this.baseSequence[i] === f.baseSequence &&
      this.transactional[i] === (f.transactional ? 1 : 0) &&
      this.timestampType[i] === f.timestampType
    );
  }

  #grow(): void {
    const n = this.end.length * 2;
    const ints = (old: Int32Array) => {
      const a = new Int32Array(n);
      a.set(old);
      return a;
    };
    const bytes = (old: Uint8Array) => {
      const a = new Uint8Array(n);
      a.set(old);
      return a;
    };
    this.end = ints(this.end);
    this.leaderEpoch = ints(this.leaderEpoch);
    this.baseSequence = ints(this.baseSequence);
    this.transactional = bytes(this.transactional);
    this.timestampType = bytes(this.timestampType);
    const ids = new BigInt64Array(n);
    ids.set(this.producerId);
    this.producerId = ids;
    const epochs = new Int16Array(n);
    epochs.set(this.producerEpoch);
    this.producerEpoch = epochs;
  }
}

export class BatchColumns {
  readonly offsets = new Int32Array(2 * MAX_ROWS);
  readonly timestamps = new Int32Array(2 * MAX_ROWS);
  readonly key = new Bytes(MAX_ROWS, 1 << 20);
  readonly valueOffsets = new Int32Array(MAX_ROWS + 1);
  readonly valueValidity = new Uint8Array((MAX_ROWS + 7) >> 3).fill(255);
  valueNulls = 0;
  /** Values so far are [0, valueEnd); the records that are being read stand behind. */
  readonly values = new Output(1 << 20);
  valueEnd = 0;
  readonly headerOffsets = new Int32Array(MAX_ROWS + 1);
  readonly headerKeys = new Bytes(1024, 1 << 14);
  readonly headerValues = new Bytes(1024, 1 << 14);
  readonly runs = new Runs();
  rows = 0;

  get bytes(): number {
    return this.valueEnd + this.key.end + this.headerKeys.end + this.headerValues.end;
  }

  clear(): void {
    if (this.valueNulls > 0) this.valueValidity.fill(255);
    this.valueNulls = 0;
    this.valueEnd = 0;
    this.key.clear();
    this.headerKeys.clear();
    this.headerValues.clear();
    this.runs.count = 0;
    this.rows = 0;
  }

  view(stream: StreamId, from: bigint, next: bigint, ingestTs: number): RawBatch {
    return {
      stream,
      span: { stream: streamKey(stream), from, next },
      rows: this.rows,
      offsets: this.offsets,
      timestamps: this.timestamps,
      key: this.key,
      value: {
        offsets: this.valueOffsets,
        data: this.values.bytes,
        validity: this.valueValidity,
        nullCount: this.valueNulls,
      },
      headers: {
        offsets: this.headerOffsets,
        entries: this.headerKeys.count,
        keys: this.headerKeys,
        values: this.headerValues,
      },
      runs: this.runs,
      ingestTs,
    };
  }
}

/** Columns that are constant over one broker batch, as runs. */
import type { BatchRuns } from "../../../../core/records/raw-batch.ts";
import { renewed } from "./renewed.ts";

export interface RunFields {
  readonly leaderEpoch: number;
  readonly producerId: bigint;
  readonly producerEpoch: number;
  readonly baseSequence: number;
  readonly transactional: number;
  readonly timestampType: number;
}

const FIRST_RUNS = 1024;

export class RunsBuilder {
  readonly #most: number;
  #count = 0;
  #capacity = 0;
  #end = new Int32Array(0);
  #leaderEpoch = new Int32Array(0);
  #producerId = new BigInt64Array(0);
  #producerEpoch = new Int16Array(0);
  #baseSequence = new Int32Array(0);
  #transactional = new Uint8Array(0);
  #timestampType = new Uint8Array(0);

  /** There are never more runs than rows. */
  constructor(maxRows: number) {
    this.#most = maxRows;
    this.#grow(Math.min(FIRST_RUNS, maxRows));
  }

  reset(): void {
    this.#count = 0;
  }

  /** The rows up to `end` that no run holds yet have these fields. */
  add(end: number, f: RunFields): void {
    const last = this.#count - 1;
    const from = last < 0 ? 0 : this.#end[last]!;
    if (end === from) return;
    if (last >= 0 && this.#same(last, f)) {
      this.#end[last] = end;
      return;
    }
    if (this.#count === this.#capacity) this.#grow(Math.min(this.#capacity * 2, this.#most));
    const i = this.#count++;
    this.#end[i] = end;
    this.#leaderEpoch[i] = f.leaderEpoch;
    this.#producerId[i] = f.producerId;
    this.#producerEpoch[i] = f.producerEpoch;
    this.#baseSequence[i] = f.baseSequence;
    this.#transactional[i] = f.transactional;
    this.#timestampType[i] = f.timestampType;
  }

  #same(i: number, f: RunFields): boolean {
    return (
      this.#baseSequence[i] === f.baseSequence &&
      this.#leaderEpoch[i] === f.leaderEpoch &&
      this.#producerId[i] === f.producerId &&
      this.#producerEpoch[i] === f.producerEpoch &&
      this.#transactional[i] === f.transactional &&
      this.#timestampType[i] === f.timestampType
    );
  }

  /** Takes the arrays from whoever got them with `columns`. */
  detach(): void {
    const n = this.#capacity;
    this.#end = renewed(this.#end, () => new Int32Array(n));
    this.#leaderEpoch = renewed(this.#leaderEpoch, () => new Int32Array(n));
    this.#producerId = renewed(this.#producerId, () => new BigInt64Array(n));
    this.#producerEpoch = renewed(this.#producerEpoch, () => new Int16Array(n));
    this.#baseSequence = renewed(this.#baseSequence, () => new Int32Array(n));
    this.#transactional = renewed(this.#transactional, () => new Uint8Array(n));
    this.#timestampType = renewed(this.#timestampType, () => new Uint8Array(n));
  }

  #grow(capacity: number): void {
    this.#capacity = capacity;
    const into = <T extends { set(from: T): void }>(to: T, from: T): T => {
      to.set(from);
      return to;
    };
    this.#end = into(new Int32Array(capacity), this.#end);
    this.#leaderEpoch = into(new Int32Array(capacity), this.#leaderEpoch);
    this.#producerId = into(new BigInt64Array(capacity), this.#producerId);
    this.#producerEpoch = into(new Int16Array(capacity), this.#producerEpoch);
    this.#baseSequence = into(new Int32Array(capacity), this.#baseSequence);
    this.#transactional = into(new Uint8Array(capacity), this.#transactional);
    this.#timestampType = into(new Uint8Array(capacity), this.#timestampType);
  }

  columns(): BatchRuns {
    return {
      count: this.#count,
      end: this.#end,
      leaderEpoch: this.#leaderEpoch,
      producerId: this.#producerId,
      producerEpoch: this.#producerEpoch,
      baseSequence: this.#baseSequence,
      transactional: this.#transactional,
      timestampType: this.#timestampType,
    };
  }
}

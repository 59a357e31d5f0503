/**
 * What a record weighs: the live 95th percentile of record size, used to turn a limit in bytes into one in records
 * and back. The configured estimate is the seed, as long as nothing was seen, and the floor ever after.
 *
 * Sizes are kept in a histogram of eight buckets an octave, so the answer is at most 2^(1/8) (9 %) above the true
 * percentile and never below it. Old weight is halved once a window is full, so the estimate follows the topic.
 */
import { Failure } from "../failure/failure.ts";

const BUCKETS_PER_OCTAVE = 8;
/** 2^31 bytes is the largest batch that Kafka's int32 lengths allow. */
const OCTAVES = 31;
const PERCENTILE = 0.95;

export class SizeEstimate {
  readonly #seed: number;
  readonly #window: number;
  readonly #weights = new Float64Array(OCTAVES * BUCKETS_PER_OCTAVE + 1);
  #total = 0;

  /** `seedBytes`: `record_size_est_bytes`. `windowRecords`: after this many, older records weigh half. */
  constructor(seedBytes: number, windowRecords = 100_000) {
    if (!(seedBytes >= 1) || !(windowRecords >= 1)) {
      throw new Failure(
        "internal.bug",
        `a size estimate needs a seed and a window of at least 1, got ${seedBytes}, ${windowRecords}`,
      );
    }
    this.#seed = seedBytes;
    this.#window = windowRecords;
  }

  /** `records` of `bytes` together: each counts with their mean. None, or a nonsensical pair, changes nothing. */
  observe(records: number, bytes: number): void {
    if (!(records >= 1) || !(bytes >= 0)) return;
    const mean = Math.max(1, bytes / records);
    const index = Math.min(this.#weights.length - 1, Math.ceil(Math.log2(mean) * BUCKETS_PER_OCTAVE));
    this.#weights[index] = (this.#weights[index] ?? 0) + records;
    this.#total += records;
    if (this.#total >= 2 * this.#window) this.#halve();
  }

  /** Bytes of a record that 95 % stay below; never less than the seed. */
  get bytes(): number {
    if (this.#total === 0) return this.#seed;
    const wanted = this.#total * PERCENTILE;
    let seen = 0;
    for (let i = 0; i < this.#weights.length; i++) {
      seen += this.#weights[i] ?? 0;
      if (seen >= wanted) return Math.max(this.#seed, 2 ** (i / BUCKETS_PER_OCTAVE));
    }
    return Math.max(this.#seed, 2 ** OCTAVES);
  }

  /** Records that fit; at least 1. */
  recordsIn(bytes: number): number {
    return Math.max(1, Math.floor(bytes / this.bytes));
  }

  bytesFor(records: number): number {
    return Math.ceil(records * this.bytes);
  }

  #halve(): void {
    let total = 0;
    for (let i = 0; i < this.#weights.length; i++) {
      const weight = (this.#weights[i] ?? 0) / 2;
      this.#weights[i] = weight;
      total += weight;
    }
    this.#total = total;
  }
}

/**
 * Where a decompressor writes: the tail of a buffer that grows, with a hard cap that is checked before memory is
 * taken. What stands before `start` belongs to somebody else and survives growth.
 */
import { Failure } from "../failure/failure.ts";

/**
 * Bytes behind the usable capacity that always exist. A varint reader may look that far past the end of what was
 * written before it compares positions, without leaving the array.
 */
export const SLACK_BYTES = 64;

const FIRST_BYTES = 1 << 16;

export class Output {
  bytes: Uint8Array<ArrayBuffer>;
  /** Where this output begins, and the end of what is written so far. Indexes into `bytes`. */
  start = 0;
  end = 0;
  #limit = 0;

  constructor(capacity = FIRST_BYTES) {
    this.bytes = new Uint8Array(capacity + SLACK_BYTES);
  }

  /** Starts an output of at most `limit` bytes behind the first `start` bytes. */
  begin(start: number, limit: number): void {
    this.start = start;
    this.end = start;
    this.#limit = limit;
  }

  /** Usable bytes of the buffer. */
  get capacity(): number {
    return this.bytes.length - SLACK_BYTES;
  }

  /** Bytes that this output may still take by its cap. */
  get allowance(): number {
    return this.#limit - (this.end - this.start);
  }

  /** Bytes that fit behind `end` now, without growing and within the cap. */
  get room(): number {
    return Math.min(this.capacity - this.end, this.allowance);
  }

  /** Makes room for `n` more bytes; throws compression.limit above the cap. */
  reserve(n: number): void {
    if (n > this.allowance) throw this.tooLarge();
    const need = this.end + n;
    if (need <= this.capacity) return;
    // Doubling, but never past what the cap can use.
    const grown = Math.max(need, Math.min(this.capacity * 2, this.start + this.#limit));
    const bytes = new Uint8Array(grown + SLACK_BYTES);
    bytes.set(this.bytes.subarray(0, this.end));
    this.bytes = bytes;
  }

  tooLarge(): Failure {
    return new Failure("compression.limit", `decompressed size is over the limit of ${this.#limit} bytes`, {
      hint: "A batch that expands this much is either hostile or needs a higher limit",
    });
  }

  append(bytes: Uint8Array): void {
    this.reserve(bytes.length);
    this.bytes.set(bytes, this.end);
    this.end += bytes.length;
  }

  /** Gives a buffer that one huge output left behind back to the collector. Only between outputs. */
  shrink(capacity: number): void {
    if (this.capacity > capacity) this.bytes = new Uint8Array(capacity + SLACK_BYTES);
  }
}

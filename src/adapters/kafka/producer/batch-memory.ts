/** Memory of batches: a full one's is used again, since a producer in a hurry fills one after the other. */

/** Whole buffers that are kept. */
const POOLED = 16;

export class BatchMemory {
  readonly #whole: number;
  readonly #pool: Uint8Array<ArrayBuffer>[] = [];

  /** `whole`: bytes of a full batch. */
  constructor(whole: number) {
    this.#whole = whole;
  }

  /** At least `bytes`; a whole one where that is not much more. What stands in it is anything. */
  take(bytes: number): Uint8Array<ArrayBuffer> {
    if (2 * bytes <= this.#whole || bytes > this.#whole) return new Uint8Array(bytes);
    return this.#pool.pop() ?? new Uint8Array(this.#whole);
  }

  /** Nobody uses it any more. */
  give(memory: Uint8Array<ArrayBuffer>): void {
    const whole = memory.byteOffset === 0 && memory.length === this.#whole;
    if (whole && this.#pool.length < POOLED) this.#pool.push(memory);
  }
}

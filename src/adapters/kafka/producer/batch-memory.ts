/**
 * Memory of batches, used again since a producer in a hurry fills one after the other. A batch grows by doubling, so there
 * is a pool for each size that it has on its way: new memory costs a page fault for every 4 KiB, more than filling it.
 */

/** What a batch begins with, where its first record is not larger. */
export const FIRST_BYTES = 4096;
export class BatchMemory {
  readonly #whole: number;
  readonly #most: number;
  readonly #pools = new Map<number, Uint8Array<ArrayBuffer>[]>();
  #pooled = 0;

  /** `whole`: bytes of a full batch. `most`: bytes that are kept. */
  constructor(whole: number, most: number) {
    this.#whole = whole;
    this.#most = most;
    for (let size = FIRST_BYTES; size < whole; size *= 2) this.#pools.set(size, []);
    this.#pools.set(whole, []);
  }

  /** At least `bytes`; a whole one where that is not much more. What stands in it is anything. */
  take(bytes: number): Uint8Array<ArrayBuffer> {
    const size = 2 * bytes <= this.#whole || bytes > this.#whole ? bytes : this.#whole;
    const kept = this.#pools.get(size)?.pop();
    if (kept === undefined) return new Uint8Array(size);
    this.#pooled -= size;
    return kept;
  }

  /** Nobody uses it any more. */
  give(memory: Uint8Array<ArrayBuffer>): void {
    const size = memory.length;
    if (memory.byteOffset > 0 || size !== memory.buffer.byteLength) return;
    if (this.#pooled + size > this.#most) return;
    const pool = this.#pools.get(size);
    if (pool === undefined) return;
    pool.push(memory);
    this.#pooled += size;
  }
}

/**
 * Which batches of a response belong to aborted transactions. The broker lists (producer id, first offset) of
 * every aborted transaction that overlaps the response; a transaction ends at the abort marker of its producer.
 * Works on batch headers and markers, so that nothing aborted is ever decompressed.
 */
import type { AbortedTransaction } from "../../../../core/records/frame.ts";

export class AbortedFilter {
  /** By first offset: some brokers send the list unordered. */
  readonly #waiting: readonly AbortedTransaction[];
  #taken = 0;
  readonly #open = new Set<bigint>();

  constructor(aborted: readonly AbortedTransaction[]) {
    const order = (a: AbortedTransaction, b: AbortedTransaction) =>
      a.firstOffset < b.firstOffset ? -1 : a.firstOffset > b.firstOffset ? 1 : 0;
    this.#waiting = aborted.length > 1 ? [...aborted].sort(order) : aborted;
  }

  /** To be called for every batch of a producer, in order, before asking about it. */
  reach(lastOffset: bigint): void {
    for (; this.#taken < this.#waiting.length; this.#taken++) {
      const next = this.#waiting[this.#taken]!;
      if (next.firstOffset > lastOffset) return;
      this.#open.add(next.producerId);
    }
  }

  /** True for a transactional batch of this producer at the place reached. */
  isAborted(producerId: bigint): boolean {
    return this.#open.has(producerId);
  }

  /** The producer's abort marker was read. */
  end(producerId: bigint): void {
    this.#open.delete(producerId);
  }
}

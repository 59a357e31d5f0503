/**
 * Which transactional batches of a frame were aborted (read_committed). The broker lists the aborted transactions
 * that overlap what it sent; a producer's batches are dropped from the transaction's first offset to its marker.
 * The list comes unsorted from some brokers.
 */
import type { AbortedTransaction } from "../../../../core/records/frame.ts";

export class AbortedProducers {
  readonly #queue: AbortedTransaction[];
  readonly #now = new Set<bigint>();
  #at = 0;

  constructor(list: readonly AbortedTransaction[]) {
    this.#queue = [...list].sort((a, b) => (a.firstOffset < b.firstOffset ? -1 : 1));
  }

  /** To be called for each batch in order, before it is judged. */
  upTo(lastOffset: bigint): void {
    for (
      let t = this.#queue[this.#at];
      t !== undefined && t.firstOffset <= lastOffset;
      t = this.#queue[++this.#at]
    ) {
      this.#now.add(t.producerId);
    }
  }

  has(producerId: bigint): boolean {
    return this.#now.has(producerId);
  }

  marker(producerId: bigint): void {
    this.#now.delete(producerId);
  }
}

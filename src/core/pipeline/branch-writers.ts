/** The writers of a branch: one for each set that is open or being sealed, used again as long as rows keep their shape. */
import { Failure } from "../failure/failure.ts";
import type { BranchBatch, BranchWriter } from "../ports/branch-parts.ts";
import { int64At } from "../records/int64-at.ts";

export interface Shaped<B extends BranchBatch> {
  readonly writer: BranchWriter<B>;
  readonly shape: number;
}

export class BranchWriters<B extends BranchBatch> {
  readonly #make: () => BranchWriter<B>;
  #free: BranchWriter<B>[] = [];
  /** Raised with each new shape of rows: writers of an older one are not used again. */
  #shape = 0;

  constructor(make: () => BranchWriter<B>) {
    this.#make = make;
  }

  take(): Shaped<B> {
    return { writer: this.#free.pop() ?? this.#make(), shape: this.#shape };
  }

  give({ writer, shape }: Shaped<B>): void {
    if (shape === this.#shape) this.#free.push(writer);
  }

  reshape(): void {
    this.#free = [];
    this.#shape++;
  }

  /** `busy`: something is under way in its middle, so it is not used again. */
  async abort(one: Shaped<B>, busy: boolean): Promise<void> {
    try {
      await one.writer.abort();
      if (!busy) this.give(one);
    } catch {
      // What it left behind is swept at the next start.
    }
  }
}

/** Position of a row. */
export function offsetOf({ offsets }: BranchBatch, row: number): bigint {
  if (offsets === undefined) throw new Failure("internal.bug", "a batch of rows was taken in part");
  return int64At(offsets, row);
}

/** What becomes of the rows of one call: where they were written, or why they were not. */
import { Failure } from "../../../core/failure/failure.ts";
import type { SendOptions } from "./options.ts";

/** Rows of the call that stand one behind the other in a partition. */
export interface Placed {
  readonly partition: number;
  /** Offset of the first; -1: written, and the broker did not tell where. */
  readonly offset: bigint;
  readonly rows: number;
}

/** Settled once every row of the call is. */
export class Delivery {
  readonly done: Promise<readonly Placed[]>;
  readonly #leaveOut: SendOptions["leaveOut"];
  readonly #placed: Placed[] = [];
  #open = 1;
  #failed = 0;
  #failure: Failure | null = null;
  #resolve!: (placed: readonly Placed[]) => void;
  #reject!: (failure: Failure) => void;

  constructor(leaveOut?: SendOptions["leaveOut"]) {
    this.#leaveOut = leaveOut;
    this.done = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    // Whoever looks at `done` still gets the failure; nobody looking is not an unhandled one.
    this.done.catch(() => {});
  }

  /** A further batch holds rows of this call. */
  joined(): void {
    this.#open++;
  }

  /** All rows have been given to batches. */
  complete(): void {
    this.#settled();
  }

  written(placed: Placed): void {
    const last = this.#placed.at(-1);
    const follows =
      last !== undefined &&
      last.partition === placed.partition &&
      last.offset >= 0n &&
      last.offset + BigInt(last.rows) === placed.offset;
    if (follows) this.#placed[this.#placed.length - 1] = { ...last, rows: last.rows + placed.rows };
    else this.#placed.push(placed);
    this.#settled();
  }

  /** Rows of it may be left out, so it matters which one is where. */
  get choosy(): boolean {
    return this.#leaveOut !== undefined;
  }

  /** One row that will never be taken: whether the call goes on without it. Then it is settled. */
  leftOut(row: number, failure: Failure): boolean {
    if (this.#leaveOut?.(row, failure) !== true) return false;
    this.#settled();
    return true;
  }

  failed(failure: Failure, rows: number): void {
    this.#failure ??= failure;
    this.#failed += rows;
    this.#settled();
  }

  #settled(): void {
    if (--this.#open > 0) return;
    if (this.#failure === null) {
      this.#resolve(this.#placed);
      return;
    }
    const written = this.#placed.reduce((sum, p) => sum + p.rows, 0);
    const f = this.#failure;
    const detail = {
      retry: f.retry,
      cause: f,
      ...(f.at === null ? {} : { at: f.at }),
      ...(f.hint === null ? {} : { hint: f.hint }),
    };
    const rest = written === 0 ? "" : ` (${this.#failed} records; ${written} of the same call were written)`;
    this.#reject(new Failure(f.code, `${f.message}${rest}`, detail));
  }
}

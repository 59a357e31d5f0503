/**
 * Waits for enough records to look at: until there are so many, or for so long, or until nobody can wait any more. A topic
 * with one record an hour gets its table after the wait, one with a backlog at once.
 */
import type { RawBatch } from "../records/raw-batch.ts";
import type { Clock } from "../time/clock.ts";

export interface SampleLimits {
  readonly records: number;
  readonly bytes: number;
  readonly waitMs: number;
  /** Larger values are left out, bytes. */
  readonly largest: number;
}

/** Values of a topic's records that wait, as many as there are within the limits. */
export type TakeSample = (limits: SampleLimits) => Promise<readonly Uint8Array[]>;

/** `of`: rows of the first batch; null: all of them. `full`: no more would be taken. */
function valuesOf(
  batches: readonly Pick<RawBatch, "value" | "rows">[],
  of: readonly number[] | null,
  { records, bytes, largest }: SampleLimits,
): { readonly values: readonly Uint8Array[]; readonly full: boolean } {
  const values: Uint8Array[] = [];
  let total = 0;
  for (const [i, { value, rows }] of batches.entries()) {
    const some = i === 0 ? of : null;
    for (let n = 0; n < (some?.length ?? rows); n++) {
      const row = some?.[n] ?? n;
      if (values.length >= records || total >= bytes) return { values, full: true };
      const [start, end] = [value.offsets[row]!, value.offsets[row + 1]!];
      const isNull = value.nullCount > 0 && (value.validity[row >> 3]! & (1 << (row & 7))) === 0;
      if (isNull || end - start > largest) continue;
      values.push(value.data.subarray(start, end));
      total += end - start;
    }
  }
  return { values, full: values.length >= records || total >= bytes };
}

export class Sampling {
  readonly #clock: Clock;
  #waiting: { readonly enough: () => boolean; readonly go: () => void } | null = null;
  #hurried = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** `pressed`: there is no room to wait any longer. */
  taker(
    batches: () => readonly Pick<RawBatch, "value" | "rows">[],
    of: readonly number[] | null,
    pressed: () => boolean,
  ): TakeSample {
    return async (limits) => {
      const now = () => valuesOf(batches(), of, limits);
      await this.#wait(() => pressed() || now().full, limits.waitMs);
      return now().values;
    };
  }

  async #wait(enough: () => boolean, atMostMs: number): Promise<void> {
    if (this.#hurried || enough()) return;
    await new Promise<void>((resolve) => {
      const timer = this.#clock.after(atMostMs, () => this.#waiting?.go());
      const go = () => {
        timer.cancel();
        this.#waiting = null;
        resolve();
      };
      this.#waiting = { enough, go };
    });
  }

  /** There is more than before. */
  more(): void {
    if (this.#waiting?.enough() === true) this.#waiting.go();
  }

  /** Nothing is waited for: what is there has to do, until `hurry(false)`. */
  hurry(on: boolean): void {
    this.#hurried = on;
    if (on) this.#waiting?.go();
  }

  /** What is waited for is gone. */
  giveUp(): void {
    this.#waiting?.go();
  }
}

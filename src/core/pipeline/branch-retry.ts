/** Waits out the outages of a branch's sink, for as long as the set at hand is not dropped. */
import { isOutage, waitedOut } from "../coverage/outage.ts";
import type { Failure } from "../failure/failure.ts";
import type { Clock } from "../time/clock.ts";

/** Thrown out of work whose set was dropped meanwhile. */
export const DROPPED = Symbol("dropped");

export class BranchRetry {
  readonly #clock: Clock;
  readonly #trouble: (failure: Failure | null) => void;
  #wake: (() => void) | null = null;
  #isFailing = false;

  constructor(clock: Clock, trouble: (failure: Failure | null) => void) {
    this.#clock = clock;
    this.#trouble = (failure) => {
      this.#isFailing = failure !== null;
      trouble(failure);
    };
  }

  /** What was tried last failed, and is tried again. */
  get isFailing(): boolean {
    return this.#isFailing;
  }

  async run<T>(isDropped: () => boolean, fn: () => Promise<T>): Promise<T> {
    const pause = async (ms: number) => {
      await this.#pause(ms);
      if (isDropped()) throw DROPPED;
    };
    try {
      const value = await waitedOut(
        { pause, trouble: this.#trouble },
        fn,
        (f) => !isDropped() && isOutage(f),
      );
      // Also of what was given up before.
      this.#isFailing = false;
      return value;
    } catch (e) {
      if (isDropped()) throw DROPPED;
      throw e;
    }
  }

  /** A set was dropped: whoever waits looks whether it was its own. */
  wake(): void {
    this.#wake?.();
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        timer.cancel();
        this.#wake = null;
        resolve();
      };
      const timer = this.#clock.after(ms, done);
      this.#wake = done;
    });
  }
}

/** Lanes that wait until a sink has room again. */
import type { Clock } from "../time/clock.ts";

/** Longest that a lane waits at a time for a sink that moves on, but not as fast as it is given rows. */
const RELIEF_MS = 5_000;

export class LaneWaits {
  readonly #clock: Clock;
  #waiting: { readonly done: () => void; readonly isPatient: boolean }[] = [];
  #isSpent = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Resolves with the next `release`. `late`: it did not come in time; it is asked to see to one. Then nobody waits any
   * more until `renew`.
   */
  wait(isPatient: boolean, late: () => void): Promise<void> {
    if (this.#isSpent) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = this.#clock.after(RELIEF_MS, () => {
        this.#isSpent = true;
        late();
      });
      const done = () => {
        timer.cancel();
        resolve();
      };
      this.#waiting.push({ done, isPatient });
    });
  }

  /** The sink fails: who is not patient goes on. */
  interrupt(): void {
    const waiting = this.#waiting.splice(0);
    this.#waiting = waiting.filter((w) => w.isPatient);
    for (const w of waiting) if (!w.isPatient) w.done();
  }

  /** The sink moves again. */
  renew(): void {
    this.#isSpent = false;
  }

  release(): void {
    for (const { done } of this.#waiting.splice(0)) done();
  }
}

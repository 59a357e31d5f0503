/** Lanes that wait until a sink has room again. */
import type { Clock } from "../time/clock.ts";

export class LaneWaits {
  readonly #clock: Clock;
  #waiting: (() => void)[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves with the next `release`. `late`: it did not come in time; it is asked to see to one. */
  wait(atMostMs: number, late: () => void): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#clock.after(atMostMs, late);
      this.#waiting.push(() => {
        timer.cancel();
        resolve();
      });
    });
  }

  release(): void {
    for (const done of this.#waiting.splice(0)) done();
  }
}

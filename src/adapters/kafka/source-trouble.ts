/** What is wrong right now, told to the host once per change: several loops may meet the same outage many times a second. */
import type { Failure } from "../../core/failure/failure.ts";
import type { Clock } from "../../core/time/clock.ts";

/** The same failure is told again after this time, so that a long outage stays visible. */
const REPEAT_MS = 30_000;

interface Told {
  readonly text: string;
  readonly at: number;
}

export class Troubles {
  readonly #clock: Clock;
  readonly #troubled: (failure: Failure) => void;
  readonly #healthy: () => void;
  readonly #open = new Map<string, Told>();
  #everHealthy = false;
  /** The latest failure told, for the message when nothing was ever reached. */
  last: Failure | null = null;

  constructor(clock: Clock, troubled: (failure: Failure) => void, healthy: () => void) {
    this.#clock = clock;
    this.#troubled = troubled;
    this.#healthy = healthy;
  }

  report(who: string, failure: Failure): void {
    const now = this.#clock.monotonic();
    const told = this.#open.get(who);
    this.last = failure;
    if (told !== undefined && told.text === failure.message && now - told.at < REPEAT_MS) return;
    this.#open.set(who, { text: failure.message, at: now });
    this.#troubled(failure);
  }

  clear(who: string): void {
    const had = this.#open.delete(who);
    if (this.#open.size > 0 || (this.#everHealthy && !had)) return;
    this.#everHealthy = true;
    this.#healthy();
  }
}

/**
 * Recovery in the process of live ingest waits while live records fall behind. Behind is what the source holds and nobody has
 * fetched: beyond two seconds of what is fetched otherwise, until it is less than one. So that a pipeline which is behind for
 * good does not keep recovery from ever coming to an end, a wait is over after half a minute, for as much as is read at a time.
 */
import type { RateLimit } from "../delivery/rate-limit.ts";
import type { Observer } from "../ports/observer.ts";
import type { Clock } from "../time/clock.ts";

export interface LiveLoad {
  /** Positions at the source that were not fetched yet. */
  readonly backlog: number;
  /** Positions fetched since the start. */
  readonly fetched: number;
}

export interface YieldParts {
  readonly clock: Clock;
  readonly observer: Observer;
  readonly load: () => LiveLoad;
}

const SAMPLE_MS = 500;
/** Of the rate, which follows what is fetched: ms. */
const SMOOTH_MS = 10_000;
const BEHIND_S = 2;
const CAUGHT_UP_S = 1;
/** A pipeline of a few records a second is not behind because of them. */
const LEAST_BEHIND = 10_000;
const LONGEST_WAIT_MS = 30_000;

export class Yielding implements RateLimit {
  readonly #p: YieldParts;
  #at: number;
  #fetched: number;
  /** Positions a second. */
  #rate = 0;
  /** Since when recovery waits; null: it does not. */
  #since: number | null = null;
  /** The wait was too long: open until something is read. */
  #lenient = false;

  constructor(parts: YieldParts) {
    this.#p = parts;
    this.#at = parts.clock.monotonic();
    this.#fetched = parts.load().fetched;
  }

  room(): number {
    return this.#isOpen() ? Number.POSITIVE_INFINITY : 0;
  }

  spend(_records: number, bytes: number): void {
    if (bytes <= 0 || !this.#lenient) return;
    this.#lenient = false;
    this.#since = this.#p.clock.monotonic();
  }

  waitMs(): number {
    return this.#isOpen() ? 0 : SAMPLE_MS;
  }

  #isOpen(): boolean {
    this.#sample();
    return this.#since === null || this.#lenient;
  }

  #sample(): void {
    const { clock, observer, load } = this.#p;
    const now = clock.monotonic();
    const ms = now - this.#at;
    if (ms < SAMPLE_MS) return;
    const { backlog, fetched } = load();
    const weight = 1 - Math.exp(-ms / SMOOTH_MS);
    this.#rate += weight * (((fetched - this.#fetched) * 1000) / ms - this.#rate);
    this.#at = now;
    this.#fetched = fetched;
    const seconds = this.#since === null ? BEHIND_S : CAUGHT_UP_S;
    const isBehind = backlog > Math.max(LEAST_BEHIND * (seconds / BEHIND_S), seconds * this.#rate);
    if (isBehind && this.#since === null) {
      this.#since = now;
      observer.emit({ e: "recovery.yields", backlog });
    } else if (!isBehind && this.#since !== null) {
      observer.emit({ e: "recovery.resumes", ms: now - this.#since });
      this.#since = null;
      this.#lenient = false;
    } else if (this.#since !== null && now - this.#since >= LONGEST_WAIT_MS) this.#lenient = true;
  }
}

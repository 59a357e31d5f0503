/**
 * The stall watchdog: there is work, and nothing has moved for too long. It only looks; `check` is called every
 * second or so. Time counts in steps of at most `MAX_STEP_MS`, so a process that was suspended, or an event loop
 * that stood still, does not raise an alarm the moment it goes on.
 */
import type { Clock } from "../time/clock.ts";
import type { TwgEvent } from "./events.ts";

const MAX_STEP_MS = 5_000;

export interface Work {
  /** Positions at the source that were not fetched yet. */
  readonly backlog: number;
  readonly bytesInFlight: number;
  /** Positions that are not acknowledged yet: fetched data may rightly wait here for a file to roll. */
  readonly lag: number;
  /** Any value that changes with every step forward. */
  readonly progress: number;
  /** Something outside is known to be down: a restart would not help, so it is never fatal. */
  readonly excused: boolean;
}

export interface WatchdogOptions {
  readonly clock: Clock;
  /** Standstill that is reported. Default 60 s, or half of `fatalMs` where that is less. */
  readonly stallMs?: number;
  /** Standstill after which the process is not alive. Default five times `stallMs`. */
  readonly fatalMs?: number;
  /** How long data may wait in an open file: `roll_interval_ms`. Added while nothing is left to fetch. Default 0. */
  readonly rollMs?: number;
  readonly work: () => Work;
  readonly emit: (event: TwgEvent) => void;
}

export const DEFAULT_STALL_MS = 60_000;

export class Watchdog {
  readonly #o: WatchdogOptions;
  readonly #stallMs: number;
  readonly #fatalMs: number;
  #progress: number | null = null;
  #checkedAt: number;
  #stuckMs = 0;
  /** Time without excuse only: an outage that ends must not be held against the process. */
  #unexcusedMs = 0;
  #stage: "moving" | "stalled" | "fatal" = "moving";

  constructor(options: WatchdogOptions) {
    this.#o = options;
    this.#stallMs = options.stallMs ?? Math.min(DEFAULT_STALL_MS, (options.fatalMs ?? Infinity) / 2);
    this.#fatalMs = options.fatalMs ?? 5 * this.#stallMs;
    this.#checkedAt = options.clock.monotonic();
  }

  check(): void {
    const now = this.#o.clock.monotonic();
    const step = Math.min(MAX_STEP_MS, Math.max(0, now - this.#checkedAt));
    this.#checkedAt = now;
    const work = this.#o.work();
    const moved = work.progress !== this.#progress;
    this.#progress = work.progress;
    if (moved || (work.backlog === 0 && work.bytesInFlight === 0 && work.lag === 0)) {
      this.#clear();
      return;
    }
    this.#stuckMs += step;
    this.#unexcusedMs = work.excused ? 0 : this.#unexcusedMs + step;
    const wait = work.backlog > 0 ? 0 : (this.#o.rollMs ?? 0);
    this.#judge(work, wait);
  }

  #judge(work: Work, wait: number): void {
    const seen = { ms: this.#stuckMs, lag: work.lag, bytesInFlight: work.bytesInFlight };
    if (this.#stage === "moving" && this.#stuckMs >= this.#stallMs + wait) {
      this.#stage = "stalled";
      this.#o.emit({ e: "stall.detected", ...seen });
    }
    if (this.#stage === "stalled" && this.#unexcusedMs >= this.#fatalMs + wait) {
      this.#stage = "fatal";
      this.#o.emit({ e: "stall.fatal", ...seen });
    }
  }

  #clear(): void {
    if (this.#stage !== "moving") this.#o.emit({ e: "stall.cleared", ms: this.#stuckMs });
    this.#stage = "moving";
    this.#stuckMs = 0;
    this.#unexcusedMs = 0;
  }
}

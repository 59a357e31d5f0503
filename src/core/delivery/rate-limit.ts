/**
 * Rate limits as token buckets. What a fetch brings is known only afterwards, so a bucket may go into debt and
 * then stays shut until time has paid it back: the long-run rate is exact, a burst is at most the depth plus one
 * fetch. Limits compose: the tightest one decides.
 */
import { Failure } from "../failure/failure.ts";
import type { Clock, Timer } from "../time/clock.ts";

/** A bucket filled at `perSecond` up to `depth`, full at the start. */
export class TokenBucket {
  readonly #clock: Clock;
  readonly #perMs: number;
  readonly #depth: number;
  #level: number;
  #at: number;

  /** `depth`: default one second's worth. */
  constructor(clock: Clock, perSecond: number, depth: number = perSecond) {
    if (!(perSecond > 0) || !(depth > 0) || !Number.isFinite(perSecond) || !Number.isFinite(depth)) {
      throw new Failure(
        "internal.bug",
        `a rate limit must be a number above zero, got ${perSecond} and ${depth}`,
      );
    }
    this.#clock = clock;
    this.#perMs = perSecond / 1000;
    this.#depth = depth;
    this.#level = depth;
    this.#at = clock.monotonic();
  }

  /** Tokens now; below zero while in debt. */
  get level(): number {
    const now = this.#clock.monotonic();
    this.#level = Math.min(this.#depth, this.#level + Math.max(0, now - this.#at) * this.#perMs);
    this.#at = now;
    return this.#level;
  }

  spend(tokens: number): void {
    this.#level = this.level - tokens;
  }

  /** Milliseconds until there is a token again; 0 = now. */
  waitMs(): number {
    const level = this.level;
    return level > 0 ? 0 : Math.max(1, Math.ceil(-level / this.#perMs));
  }
}

export interface RateLimit {
  /** Bytes that may be fetched now, given what a record weighs; 0 = none, Infinity = no limit. */
  room(recordBytes: number): number;
  spend(records: number, bytes: number): void;
  waitMs(): number;
}

export interface RateOptions {
  readonly recordsPerSecond?: number;
  readonly bytesPerSecond?: number;
}

/** A limit in records, in bytes, in both or in neither. */
export function rateLimit(clock: Clock, options: RateOptions): RateLimit {
  const records =
    options.recordsPerSecond === undefined ? null : new TokenBucket(clock, options.recordsPerSecond);
  const bytes = options.bytesPerSecond === undefined ? null : new TokenBucket(clock, options.bytesPerSecond);
  const open = (level: number): number => (level > 0 ? Math.max(1, Math.floor(level)) : 0);
  return {
    room: (recordBytes) =>
      Math.min(
        records === null ? Infinity : open(records.level * Math.max(1, recordBytes)),
        bytes === null ? Infinity : open(bytes.level),
      ),
    spend: (r, b) => {
      records?.spend(r);
      bytes?.spend(b);
    },
    waitMs: () => Math.max(records?.waitMs() ?? 0, bytes?.waitMs() ?? 0),
  };
}

/** Several limits on one flow (one of the source, one of the pipeline): each is charged, the tightest decides. */
export function allOf(limits: readonly RateLimit[]): RateLimit {
  return {
    room: (recordBytes) => limits.reduce((least, l) => Math.min(least, l.room(recordBytes)), Infinity),
    spend: (records, bytes) => {
      for (const l of limits) l.spend(records, bytes);
    },
    waitMs: () => limits.reduce((most, l) => Math.max(most, l.waitMs()), 0),
  };
}

/** Wakes those who wait for a limit to open, with one timer for all of them. */
export class RateGate {
  readonly #clock: Clock;
  readonly #limit: RateLimit;
  #waiting: (() => void)[] = [];
  #timer: Timer | null = null;

  constructor(clock: Clock, limit: RateLimit) {
    this.#clock = clock;
    this.#limit = limit;
  }

  /** Calls `wake` once when the limit is open; never from within this call. */
  whenOpen(wake: () => void): void {
    this.#waiting.push(wake);
    this.#arm();
  }

  /** Something was given back, so that the limit may open earlier than it seemed. */
  eased(): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#arm();
  }

  /** Forgets everybody who waits. */
  close(): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#waiting = [];
  }

  #arm(): void {
    if (this.#timer !== null || this.#waiting.length === 0) return;
    this.#timer = this.#clock.after(this.#limit.waitMs(), () => {
      this.#timer = null;
      this.#open();
    });
  }

  /** One after the other, since the first may use up what there is. */
  #open(): void {
    try {
      while (this.#waiting.length > 0 && this.#limit.waitMs() === 0) {
        const wake = this.#waiting.shift();
        wake?.();
      }
    } finally {
      this.#arm();
    }
  }
}

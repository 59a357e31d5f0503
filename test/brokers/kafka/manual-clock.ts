/** A clock that moves only when told, and a generator of chance from a seed: tests of the broker wait for nothing. */
import type { Chance } from "../../../src/core/time/chance.ts";
import type { Clock, Timer } from "../../../src/core/time/clock.ts";

interface Due {
  readonly at: number;
  readonly fn: () => void;
}

export class ManualClock implements Clock {
  #ms = 0;
  #due: Due[] = [];

  now(): number {
    return 1_767_225_600_000 + this.#ms;
  }

  monotonic(): number {
    return this.#ms;
  }

  after(ms: number, fn: () => void): Timer {
    const due: Due = { at: this.#ms + Math.max(0, ms), fn };
    this.#due.push(due);
    return {
      cancel: () => {
        this.#due = this.#due.filter((d) => d !== due);
      },
    };
  }

  get waiting(): number {
    return this.#due.length;
  }

  /** Runs what falls due within `ms`, in the order of time, also what that schedules. */
  advance(ms: number): void {
    const end = this.#ms + ms;
    for (;;) {
      const next = this.#due.reduce<Due | null>((a, b) => (a === null || b.at < a.at ? b : a), null);
      if (next === null || next.at > end) break;
      this.#due = this.#due.filter((d) => d !== next);
      this.#ms = Math.max(this.#ms, next.at);
      next.fn();
    }
    this.#ms = end;
  }

  /** Runs until nothing is scheduled, at most `limitMs`. */
  drain(limitMs = 60_000): void {
    const end = this.#ms + limitMs;
    while (this.#due.length > 0 && this.#ms < end) this.advance(1);
  }
}

export function seededChance(seed: number): Chance {
  let state = seed | 0;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let z = Math.imul(state ^ (state >>> 15), state | 1);
    z ^= z + Math.imul(z ^ (z >>> 7), z | 61);
    return ((z ^ (z >>> 14)) >>> 0) / 4294967296;
  };
  return { next, bytes: (n) => Uint8Array.from({ length: n }, () => Math.floor(next() * 256)) };
}

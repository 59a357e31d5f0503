/**
 * Simulated time. Nothing happens between two timers, so a run is a sequence of timer firings whose order is
 * decided by (time, tie break from the seed, insertion). Promise jobs run to the end between two firings.
 */
import type { Clock, Timer } from "../../src/core/time/clock.ts";

interface Entry {
  readonly at: number;
  readonly order: number;
  readonly fn: () => void;
  readonly owner: SimProcess | null;
  cancelled: boolean;
}

/** A simulated process: everything that it scheduled dies or sleeps with it. */
export class SimProcess {
  readonly name: string;
  alive = true;
  /** Stopped like by SIGSTOP: its timers wait until it is woken. */
  paused = false;
  constructor(name: string) {
    this.name = name;
  }
}

export class SimTime {
  nowMs = 0;
  #order = 0;
  #heap: Entry[] = [];

  /** A clock whose timers belong to a process. */
  clock(owner: SimProcess | null, epochMs = 1_767_225_600_000): Clock {
    return {
      now: () => Math.floor(epochMs + this.nowMs),
      monotonic: () => this.nowMs,
      after: (ms, fn) => this.#schedule(ms, fn, owner),
    };
  }

  #schedule(ms: number, fn: () => void, owner: SimProcess | null): Timer {
    const entry: Entry = {
      at: this.nowMs + Math.max(0, ms),
      order: this.#order++,
      fn,
      owner,
      cancelled: false,
    };
    push(this.#heap, entry);
    return {
      cancel: () => {
        entry.cancelled = true;
      },
    };
  }

  /** Fires the next timer; false when nothing is left or the limit is reached. */
  async step(limitMs: number): Promise<boolean> {
    await settleJobs();
    for (;;) {
      const entry = pop(this.#heap);
      if (entry === undefined) return false;
      if (entry.cancelled || entry.owner?.alive === false) continue;
      if (entry.at > limitMs) {
        push(this.#heap, entry);
        return false;
      }
      if (entry.owner?.paused) {
        // A stopped process runs nothing; look again a little later, as its wake-up is an event of the world.
        push(this.#heap, { ...entry, at: Math.max(entry.at, this.nowMs) + 50, order: this.#order++ });
        if (this.#heap.every((e) => e.owner?.paused === true || e.cancelled)) return false;
        continue;
      }
      this.nowMs = Math.max(this.nowMs, entry.at);
      entry.fn();
      return true;
    }
  }

  /** Runs until `done()` or the time limit; true if done. */
  async runUntil(done: () => boolean, limitMs: number): Promise<boolean> {
    while (!done()) {
      if (!(await this.step(limitMs))) {
        await settleJobs();
        if (Number.isFinite(limitMs)) this.nowMs = Math.max(this.nowMs, limitMs);
        return done();
      }
    }
    return true;
  }
}

/** Lets every promise job run that can run without time passing. */
export function settleJobs(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function before(a: Entry, b: Entry): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}

function push(heap: Entry[], e: Entry): void {
  let i = heap.push(e) - 1;
  while (i > 0) {
    const up = (i - 1) >> 1;
    if (!before(e, heap[up]!)) break;
    heap[i] = heap[up]!;
    i = up;
  }
  heap[i] = e;
}

function pop(heap: Entry[]): Entry | undefined {
  const top = heap[0];
  const last = heap.pop();
  if (top === undefined || last === undefined || heap.length === 0) return top;
  let i = 0;
  for (;;) {
    let child = 2 * i + 1;
    if (child >= heap.length) break;
    if (child + 1 < heap.length && before(heap[child + 1]!, heap[child]!)) child++;
    if (!before(heap[child]!, last)) break;
    heap[i] = heap[child]!;
    i = child;
  }
  heap[i] = last;
  return top;
}

/**
 * Everything that an owner asks of the world outside is an operation that waits until the explorer lets it happen: a read or a
 * compare-and-swap of the coverage object, a look at an object, its publication, a timer. Between two operations an owner
 * runs to the end of what it can do, so a run is a sequence of operations, and two runs with the same sequence are one.
 */
import type { Clock } from "../../src/core/time/clock.ts";

export interface Operation {
  readonly owner: number;
  /** Unique in a run: what it is, and how many its owner had asked for before. */
  readonly name: string;
  /** It changes the world, so a crash behind it is not one before it. */
  readonly changes: boolean;
  /** Of timers: when it may happen, on the owner's clock. */
  readonly due: number;
  /** Has its effect and gives what the owner will see of it, as text, and how it gets to see it. */
  readonly happen: () => { readonly seen: string; readonly reply: () => void };
}

export class Operations {
  #pending: Operation[] = [];
  readonly #asked = new Map<number, number>();

  /** Those that may happen now: of each owner's timers the next one. */
  get enabled(): readonly Operation[] {
    const next = new Map<number, Operation>();
    for (const o of this.#pending) {
      const before = next.get(o.owner);
      if (o.due >= 0 && (before === undefined || o.due < before.due)) next.set(o.owner, o);
    }
    return this.#pending.filter((o) => o.due < 0 || next.get(o.owner) === o);
  }

  take(operation: Operation): void {
    this.#pending = this.#pending.filter((o) => o !== operation);
  }

  /** Nothing of the owner happens any more. */
  end(owner: number): void {
    this.#pending = this.#pending.filter((o) => o.owner !== owner);
  }

  ask<T>(owner: number, what: string, changes: boolean, effect: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      const happen = () => {
        try {
          const value = effect();
          return { seen: seenText(value), reply: () => resolve(value) };
        } catch (e) {
          return { seen: `${e}`, reply: () => reject(e) };
        }
      };
      this.#add({ owner, name: what, changes, due: -1, happen });
    });
  }

  /** A clock that moves only when its owner's timers fire: as fast and as slow as can be. */
  clock(owner: number): Clock {
    let now = 0;
    return {
      now: () => now,
      monotonic: () => now,
      after: (ms, fn) => {
        const due = now + ms;
        const timer = this.#add({
          ...{ owner, name: "timer", changes: false, due },
          happen: () => {
            now = Math.max(now, due);
            return { seen: String(due), reply: fn };
          },
        });
        return { cancel: () => this.take(timer) };
      },
    };
  }

  #add(operation: Operation): Operation {
    const n = this.#asked.get(operation.owner) ?? 0;
    this.#asked.set(operation.owner, n + 1);
    const named = { ...operation, name: `${operation.name}#${n}` };
    this.#pending.push(named);
    return named;
  }
}

function seenText(value: unknown): string {
  if (value === null || typeof value !== "object") return String(value);
  const bytes = (value as { readonly bytes?: Uint8Array }).bytes;
  const plain = (_: string, v: unknown) => (typeof v === "bigint" ? String(v) : v);
  return bytes === undefined ? JSON.stringify(value, plain) : String(Bun.hash(bytes));
}

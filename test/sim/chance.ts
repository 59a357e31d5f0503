/** Seeded chance (splitmix32 steps); the same seed gives the same run on every machine. */
import type { Chance } from "../../src/core/time/chance.ts";

export class SeededChance implements Chance {
  #s: number;
  constructor(seed: number) {
    this.#s = seed >>> 0;
  }

  next(): number {
    return this.#u32() / 4294967296;
  }

  #u32(): number {
    this.#s = (this.#s + 0x9e3779b9) >>> 0;
    let z = this.#s;
    z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    return (z ^ (z >>> 15)) >>> 0;
  }

  bytes(n: number): Uint8Array {
    const out = new Uint8Array(n);
    for (let i = 0; i < n; i++) out[i] = this.#u32() & 255;
    return out;
  }

  int(n: number): number {
    return Math.floor(this.next() * n);
  }

  pick<T>(items: readonly T[]): T {
    const item = items[this.int(items.length)];
    if (item === undefined) throw new Error("pick from nothing");
    return item;
  }

  /** A generator of its own, so that one part's draws do not shift another's. */
  fork(): SeededChance {
    return new SeededChance(this.#u32());
  }
}

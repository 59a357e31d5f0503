/** What is remembered, within so many bytes: the least used goes first. */

interface Held<T> {
  readonly value: T;
  readonly bytes: number;
  /** Monotonic ms. */
  readonly until: number;
}

/** Of one entry beside its value: key, map, bookkeeping. */
const ENTRY_BYTES = 200;

export class BoundedCache<T> {
  readonly #maxBytes: number;
  /** A map keeps the order of insertion: the least used first. */
  readonly #held = new Map<string, Held<T>>();
  bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** What is held, be it past its time or not. */
  get(key: string): Held<T> | null {
    const held = this.#held.get(key);
    if (held === undefined) return null;
    this.#held.delete(key);
    this.#held.set(key, held);
    return held;
  }

  put(key: string, value: T, bytes: number, until: number = Number.POSITIVE_INFINITY): void {
    this.delete(key);
    const all = bytes + ENTRY_BYTES + 2 * key.length;
    if (all > this.#maxBytes) return;
    this.#held.set(key, { value, bytes: all, until });
    this.bytes += all;
    for (const oldest of this.#held.keys()) {
      if (this.bytes <= this.#maxBytes) break;
      this.delete(oldest);
    }
  }

  delete(key: string): void {
    const held = this.#held.get(key);
    if (held === undefined) return;
    this.#held.delete(key);
    this.bytes -= held.bytes;
  }
}

/**
 * Which partition a record goes to: by the hash of its key, as Kafka's Java client does, so that both put a key in the
 * same place; without a key to one partition for a while (KIP-480), which fills batches, and then to another.
 */
import type { Chance } from "../../../core/time/chance.ts";

const SEED = 0x9747b28c;
const M = 0x5bd1e995;

/** MurmurHash2, 32 bits, of bytes[from, to), int32. */
export function murmur2(bytes: Uint8Array, from: number, to: number): number {
  const length = to - from;
  let h = SEED ^ length;
  let p = from;
  for (const stop = to - 3; p < stop; p += 4) {
    let k = bytes[p]! | (bytes[p + 1]! << 8) | (bytes[p + 2]! << 16) | (bytes[p + 3]! << 24);
    k = Math.imul(k, M);
    k ^= k >>> 24;
    h = Math.imul(h, M) ^ Math.imul(k, M);
  }
  const rest = to - p;
  if (rest > 0) {
    if (rest > 2) h ^= bytes[p + 2]! << 16;
    if (rest > 1) h ^= bytes[p + 1]! << 8;
    h = Math.imul(h ^ bytes[p]!, M);
  }
  h = Math.imul(h ^ (h >>> 13), M);
  return h ^ (h >>> 15);
}

export function keyPartition(key: Uint8Array, from: number, to: number, partitions: number): number {
  return (murmur2(key, from, to) & 0x7fffffff) % partitions;
}

/**
 * The partition for records without a key of one topic. It stays until a batch's worth of bytes went there (KIP-794:
 * by bytes, not by batches, so that a slow broker, whose batches are larger, gets no more than its part).
 */
export class StickyPartition {
  readonly #bytesEach: number;
  readonly #chance: Chance;
  #current = -1;
  #left = 0;

  constructor(bytesEach: number, chance: Chance) {
    this.#bytesEach = bytesEach;
    this.#chance = chance;
  }

  /**
   * `candidates`: partitions with a leader, never empty. `queued`: batches waiting for each: one with a longer queue is
   * taken less often, in proportion.
   */
  current(candidates: readonly number[], queued: (partition: number) => number): number {
    if (this.#left > 0 && candidates.includes(this.#current)) return this.#current;
    this.#left = this.#bytesEach;
    this.#current = this.#draw(candidates, queued);
    return this.#current;
  }

  /** So many bytes were given to the current one. */
  took(bytes: number): void {
    this.#left -= bytes;
  }

  #draw(candidates: readonly number[], queued: (partition: number) => number): number {
    const waiting = candidates.map(queued);
    const longest = waiting.reduce((a, b) => Math.max(a, b), 0) + 1;
    const total = waiting.reduce((sum, n) => sum + longest - n, 0);
    let at = this.#chance.next() * total;
    for (let i = 0; i < candidates.length; i++) {
      at -= longest - waiting[i]!;
      if (at < 0) return candidates[i]!;
    }
    return candidates[candidates.length - 1]!;
  }
}

/**
 * Gives the distinct envelopes of a batch small numbers. Most rows have the envelope of the row before them, and no row
 * costs an object: envelopes are compared as bytes, and read only where one is seen for the first time.
 */
import type { Framed, FramedSchema } from "./framed.ts";

interface Known {
  readonly envelope: Uint8Array;
  readonly slot: number;
  /** Another one of the same hash. */
  readonly next: Known | null;
}

export class Interner {
  readonly #byHash = new Map<number, Known>();
  #last: Known | null = null;

  begin(): void {
    this.#byHash.clear();
    this.#last = null;
  }

  /** The slot of the envelope bytes[from, to), -1 where it is new. */
  find(bytes: Uint8Array, from: number, to: number): number {
    if (this.#last !== null && same(this.#last.envelope, bytes, from, to)) return this.#last.slot;
    for (let k = this.#byHash.get(hashOf(bytes, from, to)) ?? null; k !== null; k = k.next) {
      if (!same(k.envelope, bytes, from, to)) continue;
      this.#last = k;
      return k.slot;
    }
    return -1;
  }

  /** Its slot in `out.schemas`, where `schema` is put. */
  add(bytes: Uint8Array, from: number, to: number, out: Framed, schema: FramedSchema): number {
    const hash = hashOf(bytes, from, to);
    const slot = out.schemas.push(schema) - 1;
    this.#last = { envelope: bytes.slice(from, to), slot, next: this.#byHash.get(hash) ?? null };
    this.#byHash.set(hash, this.#last);
    return slot;
  }
}

function same(envelope: Uint8Array, bytes: Uint8Array, from: number, to: number): boolean {
  if (envelope.length !== to - from) return false;
  // From the end: ids differ in their low bytes.
  for (let i = envelope.length - 1; i >= 0; i--) if (envelope[i] !== bytes[from + i]) return false;
  return true;
}

/** FNV-1a, 32 bits. */
function hashOf(bytes: Uint8Array, from: number, to: number): number {
  let hash = 0x811c9dc5;
  for (let i = from; i < to; i++) hash = Math.imul(hash ^ bytes[i]!, 0x01000193);
  return hash;
}

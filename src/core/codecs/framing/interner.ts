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
  /** The one of the row before, and the one before that: schemas often alternate. */
  #last: Known | null = null;
  #other: Known | null = null;

  begin(): void {
    this.#byHash.clear();
    this.#last = null;
    this.#other = null;
  }

  /** Of the envelope that `again` has found. */
  get slot(): number {
    return this.#last?.slot ?? -1;
  }

  /**
   * Where the envelope ends that begins at `from` if it is one of the last two, else -1. Envelopes are told apart by
   * their own bytes, so one that is there needs no reading.
   */
  again(bytes: Uint8Array, from: number, limit: number): number {
    const last = this.#last;
    if (last === null) return -1;
    const length = last.envelope.length;
    if (length <= limit - from && same(last.envelope, bytes, from, from + length)) return from + length;
    const other = this.#other;
    if (other === null) return -1;
    const end = from + other.envelope.length;
    if (end > limit || !same(other.envelope, bytes, from, end)) return -1;
    this.#last = other;
    this.#other = last;
    return end;
  }

  #use(known: Known): void {
    if (known === this.#last) return;
    this.#other = this.#last;
    this.#last = known;
  }

  /** The slot of the envelope bytes[from, to), -1 where it is new. */
  find(bytes: Uint8Array, from: number, to: number): number {
    if (this.again(bytes, from, to) === to) return this.slot;
    for (let k = this.#byHash.get(hashOf(bytes, from, to)) ?? null; k !== null; k = k.next) {
      if (!same(k.envelope, bytes, from, to)) continue;
      this.#use(k);
      return k.slot;
    }
    return -1;
  }

  /** Its slot in `out.schemas`, where `schema` is put. */
  add(bytes: Uint8Array, from: number, to: number, out: Framed, schema: FramedSchema): number {
    const hash = hashOf(bytes, from, to);
    const slot = out.schemas.push(schema) - 1;
    const known = { envelope: bytes.slice(from, to), slot, next: this.#byHash.get(hash) ?? null };
    this.#byHash.set(hash, known);
    this.#use(known);
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

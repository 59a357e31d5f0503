/** Segments of an index that many ask for at about the same time: each is read once, and kept as long as there is memory. */
import { IndexSegments } from "./index-segments.ts";
import type { IndexEntry, SegmentRef } from "./state.ts";

export class KeptSegments extends IndexSegments {
  /** They never change. */
  readonly #kept = new Map<string, WeakRef<readonly IndexEntry[]>>();
  readonly #reading = new Map<string, Promise<readonly IndexEntry[]>>();

  override entries(ref: SegmentRef): Promise<readonly IndexEntry[]> {
    const kept = this.#kept.get(ref.name)?.deref();
    if (kept !== undefined) return Promise.resolve(kept);
    const reading = this.#reading.get(ref.name) ?? this.#read(ref);
    this.#reading.set(ref.name, reading);
    return reading;
  }

  async #read(ref: SegmentRef): Promise<readonly IndexEntry[]> {
    try {
      const entries = await super.entries(ref);
      this.#forgetOld();
      this.#kept.set(ref.name, new WeakRef(entries));
      return entries;
    } finally {
      this.#reading.delete(ref.name);
    }
  }

  #forgetOld(): void {
    for (const [name, kept] of this.#kept) if (kept.deref() === undefined) this.#kept.delete(name);
  }
}

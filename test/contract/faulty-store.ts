/** Any versioned store with outcomes to order: what a network or a disk makes of single writes. */
import type { Versioned, VersionedStore, WriteOutcome } from "../../src/core/ports/versioned-store.ts";

/**
 * lost: refused without a rival. unknown_applied: it has its effect, nobody says so. unknown_not_applied: it has
 * none, nobody says so. A function is called in place of the write: whatever it does happens between our read and
 * our write; then the write goes on.
 */
export type OrderedFault = "lost" | "unknown_applied" | "unknown_not_applied" | Error | (() => Promise<void>);

export class FaultyStore implements VersionedStore {
  readonly inner: VersionedStore;
  /** One per write, taken from the front. */
  readonly faults: OrderedFault[] = [];
  writes = 0;

  constructor(inner: VersionedStore) {
    this.inner = inner;
  }

  get place(): string {
    return this.inner.place;
  }

  prepare(): Promise<void> {
    return this.inner.prepare();
  }

  read(): Promise<Versioned | null> {
    return this.inner.read();
  }

  async write(expected: number | null, bytes: Uint8Array, tag: string): Promise<WriteOutcome> {
    this.writes++;
    const fault = this.faults.shift();
    if (fault instanceof Error) throw fault;
    if (fault === "lost") return "lost";
    if (fault === "unknown_not_applied") return "unknown";
    if (typeof fault === "function") await fault();
    const outcome = await this.inner.write(expected, bytes, tag);
    return fault === "unknown_applied" && outcome === "won" ? "unknown" : outcome;
  }

  putSegment(name: string, bytes: Uint8Array): Promise<void> {
    return this.inner.putSegment(name, bytes);
  }

  getSegment(name: string): Promise<Uint8Array | null> {
    return this.inner.getSegment(name);
  }

  sweep(keep: ReadonlySet<string>): Promise<void> {
    return this.inner.sweep(keep);
  }
}

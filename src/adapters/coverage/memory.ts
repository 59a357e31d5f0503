/** A versioned object in memory, with outcomes to order: for tests and the simulated world. */
import type { Versioned, VersionedStore, WriteOutcome } from "../../core/ports/versioned-store.ts";

/** What happens to one write instead of the usual. */
export type WriteFault = "lost" | "unknown_applied" | "unknown_not_applied";

export interface SharedObject {
  readonly versions: Map<number, Uint8Array>;
  readonly segments: Map<string, Uint8Array>;
}

export function sharedObject(): SharedObject {
  return { versions: new Map(), segments: new Map() };
}

export interface MemoryStoreOptions {
  /** Asked before each write; null: no fault. */
  readonly fault?: () => WriteFault | null;
  /** Waits as a store would. */
  readonly delay?: () => Promise<void>;
}

export class MemoryVersionedStore implements VersionedStore {
  readonly place = "memory:";
  readonly #shared: SharedObject;
  readonly #o: MemoryStoreOptions;

  constructor(shared: SharedObject, options: MemoryStoreOptions = {}) {
    this.#shared = shared;
    this.#o = options;
  }

  async prepare(): Promise<void> {
    await this.#o.delay?.();
  }

  async read(): Promise<Versioned | null> {
    await this.#o.delay?.();
    const version = Math.max(0, ...this.#shared.versions.keys());
    const bytes = this.#shared.versions.get(version);
    return bytes === undefined ? null : { version, bytes, name: `memory:${version}` };
  }

  async write(expected: number | null, bytes: Uint8Array, _tag: string): Promise<WriteOutcome> {
    await this.#o.delay?.();
    const fault = this.#o.fault?.() ?? null;
    const version = (expected ?? 0) + 1;
    const free = Math.max(0, ...this.#shared.versions.keys()) === version - 1;
    if (fault === "lost" || !free) return fault === "unknown_not_applied" ? "unknown" : "lost";
    if (fault !== "unknown_not_applied") {
      this.#shared.versions.set(version, bytes.slice());
      this.#shared.versions.delete(version - 2);
    }
    await this.#o.delay?.();
    return fault === null ? "won" : "unknown";
  }

  async putSegment(name: string, bytes: Uint8Array): Promise<void> {
    await this.#o.delay?.();
    this.#shared.segments.set(name, bytes.slice());
  }

  async getSegment(name: string): Promise<Uint8Array | null> {
    await this.#o.delay?.();
    return this.#shared.segments.get(name) ?? null;
  }

  async sweep(keep: ReadonlySet<string> | null): Promise<void> {
    if (keep === null) return;
    for (const name of this.#shared.segments.keys()) if (!keep.has(name)) this.#shared.segments.delete(name);
  }
}

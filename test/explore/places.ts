/** The durable world of an exploration: objects and a coverage object for each sink, shared by all owners. */
import { Failure } from "../../src/core/failure/failure.ts";
import type { ObjectStore, Target } from "../../src/core/ports/object-store.ts";
import type { Versioned, VersionedStore, WriteOutcome } from "../../src/core/ports/versioned-store.ts";
import type { Operations } from "./operations.ts";

/**
 * Planted bugs. blind_write: a compare-and-swap that does not compare. no_discard: what is staged stays, and is told to be
 * gone. early_ack: the source is told when a set is intended. early_cover: a set is covered before it is published. leads: a
 * second sink does not wait for the first.
 */
export const CANARIES = ["blind_write", "no_discard", "early_ack", "early_cover", "leads"] as const;
export type Canary = (typeof CANARIES)[number];

/** Rows of a file are "stream@position", sorted as they were written. */
type Rows = readonly string[];

export class Place {
  readonly staged = new Map<string, Rows>();
  readonly published = new Map<string, Rows>();
  readonly segments = new Map<string, Uint8Array>();
  newest: Versioned | null = null;
  readonly name: string;
  readonly #canary: Canary | null;

  constructor(name: string, canary: Canary | null) {
    this.name = name;
    this.#canary = canary;
  }

  /** What is durable here, as text: two worlds with the same text are the same. */
  get text(): string {
    const state = this.newest === null ? "" : String(Bun.hash(this.newest.bytes));
    return `${state} ${[...this.staged.keys()].sort()} ${[...this.published.keys()].sort()}`;
  }

  get rows(): Rows {
    return [...this.published.values()].flat();
  }

  /** Nobody sees what is staged before an intent names it: that is no operation. */
  stage(key: string, rows: Rows): Target {
    this.staged.set(key, rows);
    return { key, staging: key, bytes: rows.length, rows: rows.length };
  }

  versions(owner: number, operations: Operations): VersionedStore {
    const ask = <T>(what: string, changes: boolean, effect: () => T) =>
      operations.ask(owner, `${this.name}.${what}`, changes, effect);
    return {
      place: `${this.name}:`,
      prepare: () => Promise.resolve(),
      read: () => ask("read", false, () => this.newest),
      write: (expected, bytes) => ask("write", true, () => this.#write(expected, bytes)),
      putSegment: (name, bytes) => ask("segment", true, () => void this.segments.set(name, bytes)),
      getSegment: (name) => ask("segment?", false, () => this.segments.get(name) ?? null),
      sweep: () => Promise.resolve(),
    };
  }

  #write(expected: number | null, bytes: Uint8Array): WriteOutcome {
    const version = this.newest?.version ?? 0;
    if (this.#canary !== "blind_write" && version !== (expected ?? 0)) return "lost";
    this.newest = { version: (expected ?? 0) + 1, bytes: bytes.slice(), name: this.name };
    return "won";
  }

  objects(owner: number, operations: Operations): ObjectStore {
    const ask = <T>(what: string, t: Target, changes: boolean, effect: () => T) =>
      operations.ask(owner, `${this.name}.${what} ${t.key}`, changes, effect);
    const lies = this.#canary === "no_discard";
    return {
      place: `${this.name}:`,
      stage: () => Promise.reject(new Failure("internal.bug", "staging is no operation here")),
      probe: (t) =>
        ask("probe", t, false, () =>
          this.published.has(t.key) ? "published" : this.staged.has(t.staging) && !lies ? "staged" : "absent",
        ),
      publish: (t) => ask("publish", t, true, () => this.#publish(t)),
      discard: (t) => ask("discard", t, true, () => void (lies || this.staged.delete(t.staging))),
      sweep: async (keep) => {
        const gone = [...this.staged.keys()].filter((name) => !keep.has(name));
        for (const name of gone) this.staged.delete(name);
        return gone;
      },
    };
  }

  #publish(t: Target): void {
    if (this.published.has(t.key)) return;
    const rows = this.staged.get(t.staging);
    if (rows === undefined) throw new Failure("store.absent", "neither staged nor there", { at: t.key });
    this.published.set(t.key, rows);
    this.staged.delete(t.staging);
  }
}

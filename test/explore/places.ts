/** The durable world of an exploration: objects and a coverage object for each sink, shared by all owners. */
import { Failure } from "../../src/core/failure/failure.ts";
import type { ObjectStore, Target } from "../../src/core/ports/object-store.ts";
import type { Versioned, VersionedStore, WriteOutcome } from "../../src/core/ports/versioned-store.ts";
import type { StreamKey } from "../../src/core/records/stream.ts";
import type { LeasesJson } from "./lease-rules.ts";
import type { Operations } from "./operations.ts";

/**
 * Planted bugs. blind_write: a compare-and-swap that does not compare. no_discard: what is staged stays, and is told to be
 * gone. early_ack: the source is told when a set is intended. early_cover: a set is covered before it is published. leads: a
 * second sink does not wait for the first. Of recovery: over_covered leases what is covered. over_head leases what live ingest has
 * not let go of. lost_lease: a holder that was taken out, and whose windows others have, goes on. Of heads: high_heads tells them
 * higher than they are. no_heads forgets them.
 */
export const CANARIES = [
  "blind_write",
  "no_discard",
  "early_ack",
  "early_cover",
  "leads",
  "over_covered",
  "over_head",
  "lost_lease",
  "high_heads",
  "no_heads",
] as const;
export type Canary = (typeof CANARIES)[number];

/** The newest state, read as plain JSON: not by what is judged. */
export interface StateJson extends LeasesJson {
  readonly streams: readonly {
    readonly stream: StreamKey;
    readonly owner: string | null;
    readonly covered: readonly (readonly [string, string])[];
  }[];
}

/** Rows of a file are "stream@position", sorted as they were written. */
type Rows = readonly string[];

export class Place {
  readonly staged = new Map<string, Rows>();
  readonly published = new Map<string, Rows>();
  readonly segments = new Map<string, Uint8Array>();
  newest: Versioned | null = null;
  readonly name: string;
  /** Of lost_lease: what each recovery last knew to be its own. */
  readonly #own = new Map<
    number,
    { readonly owners: readonly unknown[]; readonly leases: readonly unknown[] }
  >();
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

  /** `recovers`: it fills windows. */
  versions(owner: number, operations: Operations, recovers = false): VersionedStore {
    const ask = <T>(what: string, changes: boolean, effect: () => T) =>
      operations.ask(owner, `${this.name}.${what}`, changes, effect);
    return {
      place: `${this.name}:`,
      prepare: () => Promise.resolve(),
      read: () => ask("read", false, () => (recovers ? this.#misread(owner) : this.newest)),
      write: (expected, bytes) =>
        ask("write", true, () => {
          if (recovers && this.#canary === "lost_lease") this.#keepsOwn(owner, bytes);
          return this.#write(
            expected,
            recovers && this.#canary === "over_head" ? this.#withOwners(bytes) : bytes,
          );
        }),
      putSegment: (name, bytes) => ask("segment", true, () => void this.segments.set(name, bytes)),
      getSegment: (name) => ask("segment?", false, () => this.segments.get(name) ?? null),
      sweep: () => Promise.resolve(),
    };
  }

  /** What a recovery with a planted bug takes the state for. */
  #misread(owner: number): Versioned | null {
    const state = stateOf(this);
    if (state === null || this.newest === null) return this.newest;
    const streams = state.streams.map((s) => ({
      ...s,
      ...(this.#canary === "over_covered" ? { covered: [] } : {}),
      ...(this.#canary === "over_head" ? { owner: null } : {}),
    }));
    const own = this.#own.get(owner);
    const isOut = own !== undefined && !state.owners.some((o) => o.instance.endsWith(`-o${owner}`));
    const back = isOut
      ? { owners: [...state.owners, ...own.owners], leases: [...state.leases, ...own.leases] }
      : {};
    const bytes = new TextEncoder().encode(JSON.stringify({ ...state, streams, ...back }));
    return { ...this.newest, bytes };
  }

  /** It decides without owners, and leaves them. */
  #withOwners(bytes: Uint8Array): Uint8Array {
    const state = JSON.parse(new TextDecoder().decode(bytes)) as StateJson;
    const now = stateOf(this)?.streams ?? [];
    const streams = state.streams.map((s) => ({
      ...s,
      owner: now.find((o) => o.stream === s.stream)?.owner ?? null,
    }));
    return new TextEncoder().encode(JSON.stringify({ ...state, streams }));
  }

  #keepsOwn(owner: number, bytes: Uint8Array): void {
    const { owners, leases } = JSON.parse(new TextDecoder().decode(bytes)) as StateJson;
    const mine = owners.filter((o) => o.instance.endsWith(`-o${owner}`));
    if (mine.length === 0) return void this.#own.delete(owner);
    this.#own.set(owner, {
      owners: mine,
      leases: leases.filter((l) => mine.some((o) => l.window.startsWith(`${o.instance} `))),
    });
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

export function stateOf({ newest }: Place): StateJson | null {
  return newest === null ? null : (JSON.parse(new TextDecoder().decode(newest.bytes)) as StateJson);
}

export function coveredIn(place: Place): Map<StreamKey, { readonly from: bigint; readonly next: bigint }[]> {
  const streams = stateOf(place)?.streams ?? [];
  return new Map(
    streams.map((s) => [
      s.stream,
      s.covered.map(([from, next]) => ({ from: BigInt(from), next: BigInt(next) })),
    ]),
  );
}

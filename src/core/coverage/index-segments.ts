/**
 * The index of raw files grows without end, the state object must not: the oldest entries move to immutable
 * segments, and many small segments become one of the next level. What a state names is durable before it does.
 */
import type { VersionedStore } from "../ports/versioned-store.ts";
import { type Change, mergeSegments, spill } from "./changes.ts";
import { corrupt } from "./json-place.ts";
import type { CoverageState, IndexEntry, SegmentRef } from "./state.ts";
import { encodeSegment, entryBytes, parseSegment } from "./state-json.ts";

/** Inline entries above this move to a segment, all but the newest few. */
const INLINE_BYTES = 64 * 1024;
const INLINE_KEPT = 16;
/** Segments of one level that become one of the next; the last level is left alone. */
const FAN_IN = 16;
const LAST_LEVEL = 2;
/** Far below the largest segment that is read. */
const WRITTEN_ENTRIES = 5_000;

export class IndexSegments {
  readonly #versions: VersionedStore;
  readonly #instance: string;
  #serial = 0;

  constructor(versions: VersionedStore, instance: string) {
    this.#versions = versions;
    this.#instance = instance;
  }

  /** Changes that keep the state small, their segments written already. */
  async tidy(state: CoverageState): Promise<readonly Change<void>[]> {
    return [await this.#spill(state), await this.#merge(state)].filter((c) => c !== null);
  }

  async holds(state: CoverageState, id: string): Promise<boolean> {
    for (const s of [...state.segments].reverse()) {
      if ((await this.entries(s)).some((e) => e.id === id)) return true;
    }
    return false;
  }

  /** Throws coverage.corrupt if the segment is missing or not the one that the state names. */
  async entries(ref: SegmentRef): Promise<readonly IndexEntry[]> {
    const at = { value: null, object: `${this.#versions.place} segment ${ref.name}`, path: "$" };
    const bytes = await this.#versions.getSegment(ref.name);
    if (bytes === null) throw corrupt(at, "no such object", "the segment that the state names");
    const entries = parseSegment(bytes, at.object);
    if (entries.length !== ref.entries) {
      throw corrupt(at, `${entries.length} entries`, `${ref.entries}, by the state`);
    }
    return entries;
  }

  /** Of each level, oldest first: all that the state names. */
  async all(state: CoverageState): Promise<readonly IndexEntry[]> {
    const index: IndexEntry[] = [];
    for (const s of state.segments) index.push(...(await this.entries(s)));
    return [...index, ...state.index];
  }

  /** Entries as segments of the last level, which nobody merges. */
  async write(entries: readonly IndexEntry[]): Promise<readonly SegmentRef[]> {
    const written: SegmentRef[] = [];
    for (let at = 0; at < entries.length; at += WRITTEN_ENTRIES)
      written.push(await this.#put(entries.slice(at, at + WRITTEN_ENTRIES), LAST_LEVEL));
    return written;
  }

  async #spill(state: CoverageState): Promise<Change<void> | null> {
    if (state.index.length <= INLINE_KEPT) return null;
    const bytes = state.index.reduce((n, e) => n + entryBytes(e), 0);
    if (bytes <= INLINE_BYTES) return null;
    const entries = state.index.slice(0, -INLINE_KEPT);
    return spill(await this.#put(entries, 0), new Set(entries.map((e) => e.id)));
  }

  async #merge(state: CoverageState): Promise<Change<void> | null> {
    for (let level = 0; level < LAST_LEVEL; level++) {
      const parts = state.segments.filter((s) => s.level === level).slice(0, FAN_IN);
      if (parts.length < FAN_IN) continue;
      const entries: IndexEntry[] = [];
      for (const p of parts) entries.push(...(await this.entries(p)));
      return mergeSegments(await this.#put(entries, level + 1), new Set(parts.map((p) => p.name)));
    }
    return null;
  }

  async #put(entries: readonly IndexEntry[], level: number): Promise<SegmentRef> {
    const name = `${this.#instance}-${this.#serial++}.${level}`;
    await this.#versions.putSegment(name, encodeSegment(entries));
    const sum = (of: (e: IndexEntry) => number) => entries.reduce((n, e) => n + of(e), 0);
    return {
      name,
      level,
      entries: entries.length,
      files: sum((e) => e.targets.length),
      rows: sum((e) => e.rows),
      bytes: sum((e) => e.bytes),
    };
  }
}

/**
 * The index of raw made anew from what lies there. Each file of a set says which set it is of, how many files that has, and
 * what it stands for; so a set is taken only where all of its files are there, and then what it stands for is covered. A set that
 * would say anything twice is left out, and so is one that is being published: whoever claims its streams brings that to its end.
 */
import type { Span, StreamKey } from "../records/stream.ts";
import type { Change } from "./changes.ts";
import { normalRanges, overlapsRange, type Ranges, subtractRanges, unionRanges } from "./ranges.ts";
import { type CoverageState, type IndexEntry, NEW_STREAM, type SegmentRef } from "./state.ts";

/** A file of a set as it says so itself. */
export interface SetFile {
  readonly key: string;
  readonly bytes: number;
  readonly rows: number;
  readonly set: string;
  /** How many files the set has. */
  readonly files: number;
  readonly spans: readonly Span[];
}

/** Sets of raw by what became of them. */
export interface Reindexed {
  /** The index from now on: what was found, in the order in which it was found, and `gone`. */
  readonly entries: readonly IndexEntry[];
  /** Sets that the index had not. */
  readonly added: readonly IndexEntry[];
  /** What they stand for and was not covered. */
  readonly covered: readonly Span[];
  /** Sets without all of their files. */
  readonly torn: readonly { readonly set: string; readonly found: number; readonly files: number }[];
  /** Sets that stand in part for what another one stands for. */
  readonly doubled: readonly string[];
  /** Sets of open intents. */
  readonly open: readonly string[];
  /** Sets of the index whose files are not there any more. */
  readonly gone: readonly IndexEntry[];
}

class Claimed {
  readonly #ranges = new Map<StreamKey, Ranges>();

  touches(spans: readonly Span[]): boolean {
    return spans.some((s) => overlapsRange(this.#ranges.get(s.stream) ?? [], s));
  }

  add(spans: readonly Span[]): void {
    for (const { stream, from, next } of spans)
      this.#ranges.set(stream, unionRanges(this.#ranges.get(stream) ?? [], normalRanges([{ from, next }])));
  }
}

/** `index`: the whole of it, oldest first. `files`: in the order in which they landed, as far as that is known. */
export function reindex(
  state: CoverageState,
  index: readonly IndexEntry[],
  files: readonly SetFile[],
): Reindexed {
  const known = new Map(index.map((e) => [e.id, e]));
  const claimed = new Claimed();
  const found: IndexEntry[] = [];
  const torn: { set: string; found: number; files: number }[] = [];
  const doubled: string[] = [];
  const open: string[] = [];
  for (const [set, parts] of Map.groupBy(files, (f) => f.set)) {
    const [first] = parts;
    if (first === undefined) continue;
    if (state.intents.has(set)) open.push(set);
    else if (parts.length < first.files) torn.push({ set, found: parts.length, files: first.files });
    else if (claimed.touches(first.spans)) doubled.push(set);
    else {
      claimed.add(first.spans);
      found.push(entryOf(set, parts));
    }
  }
  const there = new Set(found.map((e) => e.id));
  // What their records went into, where somebody put files together, is another set.
  const gone = index.filter((e) => !there.has(e.id) && !claimed.touches(e.spans));
  const added = found.filter((e) => !known.has(e.id));
  return { entries: [...gone, ...found], added, covered: news(state, found), torn, doubled, open, gone };
}

function entryOf(id: string, parts: readonly SetFile[]): IndexEntry {
  const targets = parts
    .map(({ key, bytes, rows }) => ({ key, bytes, rows }))
    .sort((a, b) => (a.key < b.key ? -1 : 1));
  const sum = (of: "rows" | "bytes") => parts.reduce((n, p) => n + p[of], 0);
  return { id, targets, spans: parts[0]!.spans, rows: sum("rows"), bytes: sum("bytes") };
}

function news({ streams }: CoverageState, found: readonly IndexEntry[]): Span[] {
  return found
    .flatMap((e) => e.spans)
    .flatMap(({ stream, from, next }) =>
      subtractRanges([{ from, next }], streams.get(stream)?.covered ?? []).map((r) => ({ stream, ...r })),
    );
}

/** `segments`: they hold all entries. */
export function reindexed(covered: readonly Span[], segments: readonly SegmentRef[]): Change<void> {
  return (state) => {
    const streams = new Map(state.streams);
    for (const { stream, from, next } of covered) {
      const s = streams.get(stream) ?? NEW_STREAM;
      streams.set(stream, { ...s, covered: unionRanges(s.covered, [{ from, next }]) });
    }
    return { state: { ...state, streams, index: [], segments }, answer: undefined };
  };
}

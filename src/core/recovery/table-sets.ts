/**
 * What is wanted of a raw table as sets that are read one after the other: stretches of streams that landed at about the same time,
 * as many as a set may hold. Of each it is known how many rows it had; what older versions landed has no such number.
 */
import { normalRanges, type Ranges, subtractRanges } from "../coverage/ranges.ts";
import type { IndexEntry } from "../coverage/state.ts";
import type { Span, StreamKey } from "../records/stream.ts";
import type { Wanted } from "./replay-order.ts";

/** Rows of a stretch of which no number is known. */
export const UNCOUNTED = -1;

export interface TableStretch extends Pick<Span, "stream" | "from" | "next"> {
  /** Or `UNCOUNTED`. */
  readonly rows: number;
  readonly bytes: number;
}

export interface SetBytes {
  /** Of a stretch of which no number is known. */
  readonly cut: number;
  /** Of a set. */
  readonly set: number;
}

/** `entries`: those that hold some of what is wanted, oldest first. `positionBytes`: of a position of a stream, about. */
export function tableSets(
  wanted: Wanted,
  entries: readonly TableStretch[],
  positionBytes: (stream: StreamKey) => number,
  { cut: cutBytes, set: maxBytes }: SetBytes,
): readonly IndexEntry[] {
  const byStream = Map.groupBy(entries, (e) => e.stream);
  const uncounted = [...wanted].flatMap(([stream, ranges]) => {
    const known = normalRanges(byStream.get(stream) ?? []);
    return cut(stream, subtractRanges(ranges, known), positionBytes(stream), cutBytes);
  });
  // Nothing tells when they landed: before what is counted.
  return packed([...uncounted, ...entries], maxBytes);
}

/** The rows that the set had of each of its spans, in the order of them. */
export function rowsOf({ targets }: IndexEntry): readonly number[] {
  return targets.map((t) => t.rows);
}

function cut(stream: StreamKey, ranges: Ranges, bytes: number, maxBytes: number): readonly TableStretch[] {
  const most = BigInt(Math.max(1, Math.floor(maxBytes / Math.max(1, bytes))));
  return ranges.flatMap(({ from: start, next: end }) => {
    const pieces: TableStretch[] = [];
    for (let from = start; from < end; from += most) {
      const next = from + most < end ? from + most : end;
      pieces.push({ stream, from, next, rows: UNCOUNTED, bytes: Math.ceil(Number(next - from) * bytes) });
    }
    return pieces;
  });
}

function packed(all: readonly TableStretch[], maxBytes: number): readonly IndexEntry[] {
  const sets: IndexEntry[] = [];
  let open: TableStretch[] = [];
  let bytes = 0;
  for (const stretch of all) {
    if (open.length > 0 && bytes + stretch.bytes > maxBytes) {
      sets.push(setOf(open));
      [open, bytes] = [[], 0];
    }
    open.push(stretch);
    bytes += stretch.bytes;
  }
  return open.length === 0 ? sets : [...sets, setOf(open)];
}

function setOf(stretches: readonly TableStretch[]): IndexEntry {
  // Positions of a stream rise from piece to piece of a set.
  const sorted = stretches.toSorted((a, b) =>
    a.stream === b.stream ? (a.from < b.from ? -1 : 1) : a.stream < b.stream ? -1 : 1,
  );
  const [first] = sorted;
  return {
    id: first === undefined ? "" : nameOf(first),
    targets: sorted.map((s) => ({ key: nameOf(s), bytes: s.bytes, rows: s.rows })),
    spans: sorted.map(({ stream, from, next }) => ({ stream, from, next })),
    rows: sorted.reduce((n, s) => n + Math.max(0, s.rows), 0),
    bytes: sorted.reduce((n, s) => n + s.bytes, 0),
  };
}

const nameOf = ({ stream, from, next }: TableStretch): string => `${stream} [${from}, ${next})`;

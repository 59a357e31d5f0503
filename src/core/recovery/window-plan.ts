/** Where the next window begins: what a sink lacks, in the order in which raw got it, bounded in bytes of raw files. */
import { intersectRanges } from "../coverage/ranges.ts";
import type { IndexEntry } from "../coverage/state.ts";
import { type Span, type StreamKey, streamParts } from "../records/stream.ts";
import type { Wanted } from "./replay-order.ts";
import { outside } from "./wanted.ts";

/**
 * One group of spans after the other, oldest first: one span a stream, of one incarnation of the topics, over sets of
 * `maxBytes` together, or over one that is larger. What no set has is in none.
 */
export function* planWindows(
  index: readonly IndexEntry[],
  lacks: Wanted,
  maxBytes: number,
): Generator<readonly Span[]> {
  let group = new Map<StreamKey, Span>();
  let bytes = 0;
  let incarnation = 0;
  for (const set of index) {
    const found = spansIn(set, lacks);
    if (found.length === 0) continue;
    const other = found.filter((s) => streamParts(s.stream).incarnation !== incarnation);
    if (group.size > 0 && (bytes + set.bytes > maxBytes || other.length > 0)) {
      yield [...group.values()];
      group = new Map();
      bytes = 0;
    }
    bytes += set.bytes;
    // A set of two incarnations is begun with the older one; the newer is left for the time after.
    incarnation = Math.min(...found.map((s) => streamParts(s.stream).incarnation));
    for (const s of found) if (streamParts(s.stream).incarnation === incarnation) widen(group, s);
  }
  if (group.size > 0) yield [...group.values()];
}

/** First around spans that others have, so that windows are as large as they may be; then over all, since those may be old by now. */
export function* planAround(
  index: readonly IndexEntry[],
  lacks: Wanted,
  held: readonly Span[],
  maxBytes: number,
): Generator<readonly Span[]> {
  if (held.length > 0) yield* planWindows(index, outside(lacks, held), maxBytes);
  yield* planWindows(index, lacks, maxBytes);
}

function spansIn(set: IndexEntry, lacks: Wanted): readonly Span[] {
  return set.spans.flatMap((s) => {
    const pieces = intersectRanges([{ from: s.from, next: s.next }], lacks.get(s.stream) ?? []);
    const [first] = pieces;
    const last = pieces.at(-1);
    return first === undefined || last === undefined
      ? []
      : [{ stream: s.stream, from: first.from, next: last.next }];
  });
}

function widen(group: Map<StreamKey, Span>, { stream, from, next }: Span): void {
  const known = group.get(stream);
  group.set(stream, {
    stream,
    from: known !== undefined && known.from < from ? known.from : from,
    next: known !== undefined && known.next > next ? known.next : next,
  });
}

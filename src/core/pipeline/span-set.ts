/** What the open files of a lane claim, and how a frame is cut around ranges that are covered already. */
import { normalRanges, subtractRanges } from "../coverage/ranges.ts";
import type { Span, StreamKey } from "../records/stream.ts";

interface OpenRange {
  from: bigint;
  next: bigint;
}

/** Spans by stream; a span that continues the last one of its stream grows it. */
export class SpanSet {
  readonly #byStream = new Map<StreamKey, OpenRange[]>();

  get empty(): boolean {
    return this.#byStream.size === 0;
  }

  add(stream: StreamKey, from: bigint, next: bigint): void {
    if (from >= next) return;
    const ranges = this.#byStream.get(stream);
    if (ranges === undefined) {
      this.#byStream.set(stream, [{ from, next }]);
      return;
    }
    const last = ranges[ranges.length - 1];
    if (last !== undefined && last.next === from) last.next = next;
    else ranges.push({ from, next });
  }

  /** The spans so far; the set keeps them until `clear`, so that a failed seal can be tried again. */
  take(): readonly Span[] {
    const spans: Span[] = [];
    for (const [stream, ranges] of this.#byStream) {
      for (const r of ranges) spans.push({ stream, from: r.from, next: r.next });
    }
    return spans;
  }

  clear(): void {
    this.#byStream.clear();
  }
}

/** What of the spans is in none of the others. */
export function withoutSpans(spans: readonly Span[], others: readonly Span[] = []): readonly Span[] {
  if (others.length === 0) return spans;
  return spans.flatMap((span) => {
    const { stream, from, next } = span;
    const own = normalRanges(others.filter((o) => o.stream === stream));
    return subtractRanges([{ from, next }], own).map((r) => ({ stream, ...r }));
  });
}

export interface Piece {
  readonly from: bigint;
  readonly next: bigint;
  readonly covered: boolean;
}

/** Cuts [from, next) at `skip` (sorted, disjoint): pieces in order that together are the whole. */
export function cutAround(
  span: { readonly from: bigint; readonly next: bigint },
  skip: readonly { readonly from: bigint; readonly next: bigint }[],
): readonly Piece[] {
  if (skip.length === 0) return [{ from: span.from, next: span.next, covered: false }];
  const pieces: Piece[] = [];
  let at = span.from;
  for (const s of skip) {
    if (s.next <= at) continue;
    if (s.from >= span.next) break;
    if (s.from > at) pieces.push({ from: at, next: s.from, covered: false });
    const from = s.from > at ? s.from : at;
    const next = s.next < span.next ? s.next : span.next;
    pieces.push({ from, next, covered: true });
    at = next;
  }
  if (at < span.next) pieces.push({ from: at, next: span.next, covered: false });
  return pieces;
}

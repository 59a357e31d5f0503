/** What is wanted of streams, as sets. */
import { intersectRanges, type Ranges, subtractRanges, unionRanges } from "../coverage/ranges.ts";
import type { Span, StreamKey } from "../records/stream.ts";
import type { Wanted } from "./replay-order.ts";

export function within(lacks: Wanted | undefined, bounds: Wanted): Wanted {
  const kept = [...(lacks ?? [])].map(
    ([stream, ranges]) => [stream, intersectRanges(ranges, bounds.get(stream) ?? [])] as const,
  );
  return new Map(kept.filter(([, ranges]) => ranges.length > 0));
}

export function outside(wanted: Wanted, spans: readonly Span[]): Wanted {
  const left = new Map(wanted);
  for (const { stream, from, next } of spans) {
    const ranges = left.get(stream);
    if (ranges !== undefined) left.set(stream, subtractRanges(ranges, [{ from, next }]));
  }
  return new Map([...left].filter(([, ranges]) => ranges.length > 0));
}

/** One span a stream, from its first position to its last. */
export function hulls(wanted: Wanted): readonly Span[] {
  return [...wanted].map(([stream, ranges]) => ({
    stream,
    from: ranges[0]!.from,
    next: ranges.at(-1)!.next,
  }));
}

export function unionOf(all: readonly Wanted[]): Wanted {
  const union = new Map<StreamKey, Ranges>();
  for (const wanted of all)
    for (const [stream, ranges] of wanted) union.set(stream, unionRanges(union.get(stream) ?? [], ranges));
  return union;
}

/** What becomes of the positions of rows that a sink refused: those that are kept nowhere stay holes of one in what is covered. */
import { normalRanges, subtractRanges } from "../coverage/ranges.ts";
import { type Failure, toWire } from "../failure/failure.ts";
import type { RefusedRows } from "../ports/lane.ts";
import type { RefusedOrigin } from "../ports/table-sink.ts";
import type { Span } from "../records/stream.ts";

/** The spans with a hole of one at each of the rows. */
export function withHoles(spans: readonly Span[], rows: readonly RefusedOrigin[]): readonly Span[] {
  return spans.flatMap(({ stream, from, next }) =>
    subtractRanges([{ from, next }], holesOf(stream, rows)).map((r) => ({ stream, ...r })),
  );
}

/** `failure`: why they are kept nowhere; null: they are durable with the set. */
export function leftOutRows(
  rows: readonly RefusedOrigin[],
  failure: Failure | null,
): { readonly leftOut?: RefusedRows } {
  if (rows.length === 0) return {};
  const codes = [...Map.groupBy(rows, (o) => o.code)].map(([code, all]) => [code, all.length] as const);
  const streams = failure === null ? [] : [...new Set(rows.map((o) => o.stream))];
  const uncovered = streams.flatMap((stream) => holesOf(stream, rows).map((r) => ({ stream, ...r })));
  return { leftOut: { codes, uncovered, failure: failure === null ? null : toWire(failure) } };
}

function holesOf(stream: string, rows: readonly RefusedOrigin[]) {
  const own = rows.filter((o) => o.stream === stream);
  return normalRanges(own.map(({ offset }) => ({ from: offset, next: offset + 1n })));
}

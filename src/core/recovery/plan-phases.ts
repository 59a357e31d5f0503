/**
 * What sinks lack, parted by the plan that its records are decoded by: what goes together has one plan, and of each stream it lies in
 * one epoch of its sink, so that no window reaches over the end of one.
 */
import { intersectRanges, type Ranges, unionRanges } from "../coverage/ranges.ts";
import type { StreamKey } from "../records/stream.ts";
import type { Wanted } from "./replay-order.ts";

/** From there on, to the next one's, records are decoded by it. */
export interface PlanPiece {
  readonly from: bigint;
  /** Its name; null: the plan of now. */
  readonly plan: string | null;
}

/** By sink and stream, ascending. What is before the first, and what is in none, is decoded by the plan of now. */
export type PlanPieces = ReadonlyMap<string, ReadonlyMap<StreamKey, readonly PlanPiece[]>>;

export interface Phase {
  readonly plan: string | null;
  /** By sink. */
  readonly lacks: ReadonlyMap<string, Wanted>;
}

interface Segment extends PlanPiece {
  readonly next: bigint;
  /** How many of the stream have the same plan and are before it. */
  readonly turn: number;
}

/** Behind every position. */
const END = 2n ** 63n - 1n;

/** Each position that is lacking is in one phase. */
export function planPhases(lacks: ReadonlyMap<string, Wanted>, pieces: PlanPieces): readonly Phase[] {
  const phases = new Map<string, { plan: string | null; lacks: Map<string, Map<StreamKey, Ranges>> }>();
  for (const [sink, wanted] of lacks)
    for (const [stream, ranges] of wanted)
      for (const { from, next, plan, turn } of segments(pieces.get(sink)?.get(stream) ?? [])) {
        const part = intersectRanges(ranges, [{ from, next }]);
        if (part.length === 0) continue;
        const key = `${turn} ${plan}`;
        const phase = phases.get(key) ?? { plan, lacks: new Map() };
        phases.set(key, phase);
        phase.lacks.set(sink, (phase.lacks.get(sink) ?? new Map<StreamKey, Ranges>()).set(stream, part));
      }
  return [...phases.values()];
}

/** Neighbours of one plan are one. */
function segments(pieces: readonly PlanPiece[]): readonly Segment[] {
  const joined: PlanPiece[] = pieces[0]?.from === 0n ? [] : [{ from: 0n, plan: null }];
  for (const p of pieces) if (joined.length === 0 || joined.at(-1)!.plan !== p.plan) joined.push(p);
  const turns = new Map<string | null, number>();
  return joined.map(({ from, plan }, i) => {
    const turn = turns.get(plan) ?? 0;
    turns.set(plan, turn + 1);
    return { from, next: joined[i + 1]?.from ?? END, plan, turn };
  });
}

export interface RangeOfPlan {
  readonly ranges: Ranges;
  readonly plan: string | null;
}

/** The plans of ranges of a stream, in the order in which they come first. */
export function plansOf(ranges: Ranges, pieces: readonly PlanPiece[]): readonly RangeOfPlan[] {
  const found = new Map<string | null, Ranges>();
  for (const { from, next, plan } of segments(pieces)) {
    const part = intersectRanges(ranges, [{ from, next }]);
    if (part.length > 0) found.set(plan, unionRanges(found.get(plan) ?? [], part));
  }
  return [...found].map(([plan, of]) => ({ plan, ranges: of }));
}

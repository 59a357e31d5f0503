/** What recovery leases of a sink and fills, as events. */
import type { LeasedWindow } from "../ports/coverage.ts";
import type { Observer } from "../ports/observer.ts";
import { streamParts } from "../records/stream.ts";
import type { Wanted } from "./replay-order.ts";

/** Of one sink in one job. */
export interface Share {
  readonly windows: readonly LeasedWindow[];
  /** What of them is to be filled. */
  readonly wanted: Wanted;
}

const MOST_SHOWN = 20;

export function tellLeased(observer: Observer | undefined, sink: string, { windows, wanted }: Share): void {
  if (windows.length === 0) return;
  const at = windows.slice(0, MOST_SHOWN).map(({ stream, range }) => {
    const { topic, partition } = streamParts(stream);
    return `${topic}/${partition} [${range.from}, ${range.next})`;
  });
  const told = { windows: windows.length, positions: positions(wanted), at };
  observer?.emit({ e: "recovery.leased", sink, ...told });
}

/** `filled`: positions of what was wanted that are covered now. */
export function tellFilled(
  observer: Observer | undefined,
  sink: string,
  { windows, wanted }: Share,
  filled: bigint,
  ms: number,
): void {
  if (windows.length === 0) return;
  const told = { windows: windows.length, positions: filled, wanted: positions(wanted), ms };
  observer?.emit({ e: "recovery.filled", sink, ...told });
}

export function positions(wanted: Wanted): bigint {
  return [...wanted.values()].flat().reduce((n, r) => n + (r.next - r.from), 0n);
}

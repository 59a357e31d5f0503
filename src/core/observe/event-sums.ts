/** Warnings of one kind and place that were left out of the log, as one event: what they count is summed, the rest is the last one's. */
import type { TwgEvent } from "./events.ts";

export function summed(sum: TwgEvent, next: TwgEvent): TwgEvent {
  if (sum.e === "records.undecodable" && next.e === sum.e)
    return { ...next, records: sum.records + next.records };
  if (sum.e === "records.duplicate" && next.e === sum.e)
    return { ...next, records: sum.records + next.records };
  if (sum.e !== "sink.gap" || next.e !== sum.e) return next;
  const from = sum.from < next.from ? sum.from : next.from;
  const end = sum.next > next.next ? sum.next : next.next;
  return { ...next, from, next: end, positions: missing(sum) + missing(next) };
}

function missing({ from, next, positions }: Extract<TwgEvent, { readonly e: "sink.gap" }>): bigint {
  return positions ?? next - from;
}

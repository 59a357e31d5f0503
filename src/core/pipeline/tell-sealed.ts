/** A sealed set as events: its sizes, and rows that the sink left out. */
import type { SealedSet } from "../ports/lane.ts";
import type { Observer } from "../ports/observer.ts";

export function tellSealed(observer: Observer, sink: string, set: SealedSet): void {
  const { id, rows, bytes, reason, sealMs: ms, targets, leftOut } = set;
  observer.emit({ e: "set.sealed", sink, id, rows, bytes, files: targets.length, ms, reason });
  if (leftOut === undefined) return;
  const { codes, failure } = leftOut;
  for (const [code, records] of codes)
    observer.emit({ e: "records.refused", sink, code, records, kept: failure === null });
  if (failure !== null) observer.emit({ e: "sink.rejects_failed", sink, failure });
}

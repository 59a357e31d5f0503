/** What became of sets of a sink, as events: sizes, rows that were left out, positions that it let go by. */
import type { SealedSet } from "../ports/lane.ts";
import type { Observer } from "../ports/observer.ts";
import { type Span, streamParts } from "../records/stream.ts";

export function tellSealed(observer: Observer, sink: string, set: SealedSet): void {
  const { id, rows, bytes, reason, sealMs: ms, targets, leftOut } = set;
  observer.emit({ e: "set.sealed", sink, id, rows, bytes, files: targets.length, ms, reason });
  if (leftOut === undefined) return;
  const { codes, failure } = leftOut;
  for (const [code, records] of codes)
    observer.emit({ e: "records.refused", sink, code, records, kept: failure === null });
  if (failure !== null) observer.emit({ e: "sink.rejects_failed", sink, failure });
}

/** Positions that a sink let go by. */
export function tellGap(observer: Observer, sink: string, spans: readonly Span[]): void {
  for (const { stream, from, next } of spans) {
    const { topic, partition } = streamParts(stream);
    observer.emit({ e: "sink.gap", sink, topic, partition, from, next });
  }
}

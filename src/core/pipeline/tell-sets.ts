/** What became of sets of a sink, as events: sizes, rows that were left out, positions that it let go by. */
import type { FromBranch, SealedSet } from "../ports/lane.ts";
import type { Observer } from "../ports/observer.ts";
import { type Span, streamParts } from "../records/stream.ts";

export function tellSealed(observer: Observer, sink: string, set: SealedSet): void {
  const { id, rows, bytes, reason, sealMs: ms, targets, there, leftOut } = set;
  observer.emit({ e: "set.sealed", sink, id, rows, bytes, files: targets.length, ms, reason });
  if (there !== undefined) observer.emit({ e: "records.there", sink, id, records: there });
  if (leftOut === undefined) return;
  const { codes, failure } = leftOut;
  for (const [code, records] of codes)
    observer.emit({ e: "records.refused", sink, code, records, kept: failure === null });
  if (failure !== null) observer.emit({ e: "sink.rejects_failed", sink, failure });
}

/** Records that are not among the rows of a sink. */
export function tellRecords(
  observer: Observer,
  sink: string,
  m: Extract<FromBranch, { readonly t: "undecodable" | "duplicates" }>,
): void {
  if (m.t === "duplicates") {
    const { topic, records } = m;
    observer.emit({ e: "records.duplicate", sink, topic, records });
  } else for (const of of m.refused) observer.emit({ e: "records.undecodable", ...of });
}

/** Positions that a sink let go by. */
export function tellGap(observer: Observer, sink: string, spans: readonly Span[]): void {
  for (const { stream, from, next } of spans) {
    const { topic, partition } = streamParts(stream);
    observer.emit({ e: "sink.gap", sink, topic, partition, from, next });
  }
}

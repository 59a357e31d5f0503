/**
 * The events of runs over raw, told apart from those of live ingest: their positions are no lag, their lanes no lanes of the
 * pipeline, and an outage that they meet is one of recovery.
 */
import type { TwgEvent } from "../core/observe/events.ts";
import type { Observer } from "../core/ports/observer.ts";
import { REPLAYED } from "./recover-parts.ts";

export function recoveryEvents(inner: Observer): Observer {
  return {
    emit: (e) => {
      const told = translated(e);
      if (told !== null) inner.emit(told);
    },
  };
}

/** Null: it is no news of recovery. */
function translated(event: TwgEvent): TwgEvent | null {
  switch (event.e) {
    case "bundle.consumed":
      return { e: "recovery.replayed", rows: event.rows, bytes: event.rawBytes };
    case "set.covered": {
      const { sink, id, rows, bytes, files, ms } = event;
      return sink === REPLAYED ? null : { e: "recovery.covered", sink, id, rows, bytes, files, ms };
    }
    case "set.refused":
      return event.sink === REPLAYED ? null : event;
    case "sink.troubled":
    case "sink.detached":
      return { e: "recovery.troubled", sink: event.sink, failure: event.failure };
    case "lane.died":
    case "source.troubled":
    case "failure":
      return { e: "recovery.troubled", sink: null, failure: event.failure };
    case "intent.settled":
    case "schema.learned":
    case "records.undecodable":
    case "records.refused":
    case "sink.rejects_failed":
    case "sink.lacks":
    case "connection.opened":
    case "connection.closed":
    case "request.done":
      return event;
    default:
      return event.e.startsWith("recovery.") ? event : null;
  }
}

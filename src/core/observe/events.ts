/**
 * The catalogue of telemetry events: every log line, counter and health change comes from one of these. An event
 * has a stable name, typed fields and no secrets. Code elsewhere never formats a log line.
 *
 * To add one: add its shape to the union and its row to `EVENTS` below (the compiler asks for it). Counters are in
 * `event-meters.ts`, health in `event-health.ts`; an event need not appear there.
 */
import type { FailureWire } from "../failure/failure.ts";
import { failureText, named, refusedText, stallText, thereText, undecodableText } from "./event-texts.ts";
import { type ProgressSnapshot, progressLine } from "./progress-line.ts";
import { formatBytes, formatCount, formatDuration } from "./quantities.ts";
import { RECOVERY_ROWS, type RecoveryEvent } from "./recovery-events.ts";

export type Level = "debug" | "info" | "warn" | "error";

/** One partition of a topic, as operators know it. */
export interface StreamPlace {
  readonly topic: string;
  readonly partition: number;
}

/** Positions of one stream within a bundle. `positions` counts offsets passed, holes of compaction included. */
export interface DeliveredPart extends StreamPlace {
  readonly next: bigint;
  readonly positions: number;
  readonly bytes: number;
}

/** Of one stream: all that the primary sink has of it lies in [from, next). */
export interface LackedPart extends StreamPlace {
  readonly from: bigint;
  readonly next: bigint;
  readonly missing: readonly { readonly from: bigint; readonly next: bigint }[];
}

export interface AcknowledgedMark extends StreamPlace {
  readonly next: bigint;
}

type PipelineEvent =
  /** The primary raw sink is open and the coverage store is ours: both count as working from here on. */
  | {
      readonly e: "pipeline.started";
      readonly pipeline: string;
      readonly version: string;
      readonly lanes: number;
    }
  /** The one way to learn the port where 0 was asked for. */
  | { readonly e: "http.listening"; readonly url: string }
  | { readonly e: "pipeline.stopping"; readonly reason: string }
  | { readonly e: "pipeline.stopped"; readonly rows: number; readonly reason: string }
  | { readonly e: "secrets.reread"; readonly secrets: number; readonly changed: number }
  | ({ readonly e: "progress" } & ProgressSnapshot)
  | { readonly e: "failure"; readonly scope: string; readonly failure: FailureWire };

type SourceEvent =
  | { readonly e: "source.healthy" }
  | { readonly e: "source.troubled"; readonly failure: FailureWire }
  /** `why`: committed, covered, earliest, latest, offset, accepted gap: which clause of the start rule decided. */
  | ({
      readonly e: "stream.begun";
      readonly position: bigint;
      readonly lane: number;
      readonly why: string;
    } & StreamPlace)
  | ({ readonly e: "stream.watermark"; readonly start: bigint; readonly end: bigint } & StreamPlace)
  | ({
      readonly e: "stream.rewound";
      readonly position: bigint;
      readonly attempt: number;
      /** Positions that a lane had already, and that are read once more. */
      readonly again: number;
      readonly why: string;
    } & StreamPlace)
  /** The stream is no longer ours (revoked, topic deleted): it leaves lag and the status page. */
  | ({ readonly e: "stream.ended"; readonly why: string } & StreamPlace)
  | { readonly e: "source.acknowledged"; readonly marks: readonly AcknowledgedMark[]; readonly ms: number }
  /** Something of the membership of a consumer group: a join, an assignment, a loss. */
  | { readonly e: "group.told"; readonly group: string; readonly text: string }
  /** Records are safe, only the broker does not know it yet. The next acknowledgement carries them. */
  | { readonly e: "source.acknowledge_failed"; readonly failure: FailureWire }
  | ({
      readonly e: "records.skipped";
      readonly from: bigint;
      readonly next: bigint;
      readonly records: number;
    } & StreamPlace)
  | ({
      readonly e: "records.lost";
      readonly from: bigint;
      readonly next: bigint;
      readonly reason: string;
    } & StreamPlace);

type LaneEvent =
  | { readonly e: "lane.started"; readonly lane: number }
  | { readonly e: "lane.died"; readonly lane: number; readonly failure: FailureWire }
  | { readonly e: "lane.restarted"; readonly lane: number; readonly restarts: number }
  | {
      readonly e: "bundle.delivered";
      readonly lane: number;
      readonly bytes: number;
      readonly parts: readonly DeliveredPart[];
    }
  | {
      readonly e: "bundle.consumed";
      readonly lane: number;
      /** Bytes of the bundle as fetched, and of its records unpacked. */
      readonly bytes: number;
      readonly rawBytes: number;
      readonly rows: number;
      readonly filtered: number;
      readonly decodeMs: number;
      readonly writeMs: number;
      /** Bytes in memory of the lane's open files. */
      readonly held: number;
    }
  | {
      readonly e: "budget.exhausted";
      readonly owner: string;
      readonly inFlight: number;
      readonly budget: number;
    }
  | { readonly e: "budget.released"; readonly owner: string; readonly ms: number };

/** Sizes of a set and the time that its step took. */
interface SetStep {
  readonly sink: string;
  readonly id: string;
  readonly rows: number;
  readonly bytes: number;
  readonly files: number;
  readonly ms: number;
}

type SinkEvent =
  | ({ readonly e: "set.sealed"; readonly reason: string } & SetStep)
  | ({ readonly e: "set.intended" } & SetStep)
  | ({ readonly e: "set.published" } & SetStep)
  /** `endToEndMs`: from the arrival of the oldest record of the set to here. */
  | ({ readonly e: "set.covered"; readonly endToEndMs: number } & SetStep)
  | {
      readonly e: "set.refused";
      readonly sink: string;
      readonly id: string;
      readonly reason: string;
      readonly detail: string;
    }
  /** An intent left by an earlier process was completed or given up at the claim. */
  | { readonly e: "intent.settled"; readonly id: string; readonly outcome: string; readonly files: number }
  | { readonly e: "staging.swept"; readonly removed: number }
  /** Columns of a topic's records that have no schema were fixed, or added to those that were. */
  | {
      readonly e: "schema.learned";
      readonly topic: string;
      readonly version: number;
      readonly added: readonly string[];
      readonly place: string;
    }
  | { readonly e: "sink.troubled"; readonly sink: string; readonly failure: FailureWire }
  | { readonly e: "sink.recovered"; readonly sink: string; readonly ms: number }
  /** A sink beside the primary one takes nothing in this lane for a while. */
  | {
      readonly e: "sink.detached";
      readonly sink: string;
      readonly lane: number;
      readonly failure: FailureWire;
      readonly pauseMs: number;
    }
  | { readonly e: "sink.attached"; readonly sink: string; readonly lane: number }
  /** The primary sink got these positions and this one did not. */
  | ({
      readonly e: "sink.gap";
      readonly sink: string;
      readonly from: bigint;
      readonly next: bigint;
      /** Of several gaps told as one: those that are missing between `from` and `next`. */
      readonly positions?: bigint;
    } & StreamPlace)
  /** What a sink beside the primary one lacks of what that has, what is on its way included; the largest parts. */
  | {
      readonly e: "sink.lacks";
      readonly sink: string;
      readonly gaps: number;
      readonly positions: bigint;
      /** Of the oldest; null: none. */
      readonly oldestMs: number | null;
      /** Raw of the oldest is removed soon. */
      readonly expiring: boolean;
      readonly parts: readonly LackedPart[];
    }
  /** Raw that the sink lacks is removed soon, by the retention that is configured. */
  | {
      readonly e: "sink.gap_expiring";
      readonly sink: string;
      readonly leftMs: number;
      readonly positions: bigint;
    }
  /** Of one batch; their bytes are in the raw sink, and with the reason in a sink of rejects. */
  | {
      readonly e: "records.undecodable";
      readonly code: string;
      readonly records: number;
      readonly topic: string;
      /** The first of them, as topic/partition@offset, and where in its value; empty: the value as a whole. */
      readonly first: string;
      readonly path: string;
    }
  /** Of one batch: left out of the sink since an earlier record has their natural key. */
  | {
      readonly e: "records.duplicate";
      readonly sink: string;
      readonly topic: string;
      readonly records: number;
    }
  /** Rows of one set that the sink refused while it took the rest. `kept`: they are durable among its rejects. */
  | {
      readonly e: "records.refused";
      readonly sink: string;
      readonly code: string;
      readonly records: number;
      readonly kept: boolean;
    }
  /** Rows of one set that the sink had already, each the same: they were not written again. */
  | { readonly e: "records.there"; readonly sink: string; readonly id: string; readonly records: number }
  /** Rows that a sink refused are kept nowhere, or where they are kept is away: their positions stay uncovered. */
  | { readonly e: "sink.rejects_failed"; readonly sink: string; readonly failure: FailureWire }
  | { readonly e: "coverage.healthy" }
  /** An owner of whom this machine knows nothing is given the lease time to show that it lives. */
  | { readonly e: "coverage.waiting"; readonly owner: string; readonly ms: number }
  | { readonly e: "coverage.troubled"; readonly failure: FailureWire }
  | { readonly e: "coverage.fenced"; readonly failure: FailureWire };

type WatchEvent =
  | {
      readonly e: "stall.detected";
      readonly ms: number;
      readonly lag: number;
      readonly bytesInFlight: number;
    }
  /** The same for longer, while source and sinks work: a restart is the only help left. */
  | { readonly e: "stall.fatal"; readonly ms: number; readonly lag: number; readonly bytesInFlight: number }
  | { readonly e: "stall.cleared"; readonly ms: number }
  | {
      readonly e: "connection.opened";
      readonly address: string;
      readonly purpose: string;
      readonly tls: boolean;
    }
  | {
      readonly e: "connection.closed";
      readonly address: string;
      readonly purpose: string;
      readonly error: string | null;
    }
  | {
      readonly e: "request.done";
      readonly api: string;
      readonly broker: string;
      /** Broker id; null where only its address is known. */
      readonly node: number | null;
      /** From sending to the answer. */
      readonly ms: number;
      /** Bytes on the wire. */
      readonly sent: number;
      readonly received: number;
      readonly error: string | null;
    };

export type TwgEvent = PipelineEvent | SourceEvent | LaneEvent | SinkEvent | RecoveryEvent | WatchEvent;
export type EventName = TwgEvent["e"];
export type EventOf<K extends EventName> = Extract<TwgEvent, { readonly e: K }>;

/** `level` null: feeds metrics only, never a log line (it comes many times a second). */
export interface EventRow<K extends EventName> {
  readonly level: Level | null;
  readonly text: (e: EventOf<K>) => string;
}

const at = (p: StreamPlace): string => `${p.topic}/${p.partition}`;

function stepText(verb: string, s: SetStep): string {
  const size = `${formatCount(s.rows)} rows, ${formatBytes(s.bytes)}, ${s.files} ${s.files === 1 ? "file" : "files"}`;
  return `${s.sink}: set ${s.id} ${verb} (${size}) in ${formatDuration(s.ms)}`;
}

export const EVENTS: { readonly [K in EventName]: EventRow<K> } = {
  "pipeline.started": {
    level: "info",
    text: (e) => `pipeline ${e.pipeline} started, twg ${e.version}, ${e.lanes} lanes`,
  },
  "http.listening": { level: "info", text: (e) => `health, metrics and status at ${e.url}` },
  "pipeline.stopping": { level: "info", text: (e) => `stopping: ${e.reason}` },
  "pipeline.stopped": {
    level: "info",
    text: (e) => `stopped after ${formatCount(e.rows)} rows: ${e.reason}`,
  },
  "secrets.reread": { level: "info", text: (e) => `${e.secrets} secrets read again, ${e.changed} changed` },
  progress: { level: "info", text: progressLine },
  failure: { level: "error", text: (e) => `${e.scope}: ${failureText(e.failure)}` },

  "source.healthy": { level: "info", text: () => "source is reachable" },
  "source.troubled": { level: "warn", text: (e) => `source: ${failureText(e.failure)}` },
  "stream.begun": {
    level: "info",
    text: (e) => `${at(e)} begins at ${e.position} (${e.why}) in lane ${e.lane}`,
  },
  "stream.watermark": { level: null, text: (e) => `${at(e)} holds ${e.start} to ${e.end}` },
  "stream.rewound": {
    level: "warn",
    text: (e) =>
      `${at(e)} goes back to ${e.position}, ${e.again} positions are read again: ${e.why} (attempt ${e.attempt})`,
  },
  "stream.ended": { level: "info", text: (e) => `${at(e)} ended: ${e.why}` },
  "group.told": { level: "info", text: (e) => `group ${e.group}: ${e.text}` },
  "source.acknowledged": {
    level: "debug",
    text: (e) =>
      `acknowledged ${e.marks.map((m) => `${at(m)}@${m.next}`).join(" ")} in ${formatDuration(e.ms)}`,
  },
  "source.acknowledge_failed": {
    level: "warn",
    text: (e) => `acknowledgement failed: ${failureText(e.failure)}`,
  },
  "records.skipped": {
    level: "info",
    text: (e) => `${at(e)}: ${e.records} records from ${e.from} up to ${e.next} are covered already, skipped`,
  },
  "records.lost": {
    level: "error",
    text: (e) => `${at(e)}: records from ${e.from} up to ${e.next} will never be in the sink (${e.reason})`,
  },

  "lane.started": { level: "debug", text: (e) => `lane ${e.lane} started` },
  "lane.died": { level: "error", text: (e) => `lane ${e.lane} died: ${failureText(e.failure)}` },
  "lane.restarted": { level: "warn", text: (e) => `lane ${e.lane} restarted (${e.restarts} times so far)` },
  "bundle.delivered": { level: null, text: (e) => `${formatBytes(e.bytes)} to lane ${e.lane}` },
  "bundle.consumed": {
    level: null,
    text: (e) => `lane ${e.lane} read ${e.rows} rows of ${formatBytes(e.bytes)}`,
  },
  "budget.exhausted": {
    level: "debug",
    text: (e) => `lane ${e.owner} is full: ${formatBytes(e.inFlight)} of ${formatBytes(e.budget)} in flight`,
  },
  "budget.released": {
    level: "debug",
    text: (e) => `lane ${e.owner} takes data again after ${formatDuration(e.ms)}`,
  },

  "set.sealed": { level: "debug", text: (e) => `${stepText("sealed", e)} (${e.reason})` },
  "set.intended": { level: "debug", text: (e) => stepText("intended", e) },
  "set.published": { level: "debug", text: (e) => stepText("published", e) },
  "set.covered": {
    level: "debug",
    text: (e) => `${stepText("covered", e)}, ${formatDuration(e.endToEndMs)} end to end`,
  },
  "set.refused": { level: "warn", text: (e) => `${e.sink}: set ${e.id} refused (${e.reason}): ${e.detail}` },
  "intent.settled": {
    level: "info",
    text: (e) => `intent ${e.id} of an earlier run: ${e.outcome} (${e.files} files)`,
  },
  "staging.swept": { level: "info", text: (e) => `${e.removed} unfinished files of an earlier run removed` },
  "schema.learned": {
    level: "info",
    text: (e) =>
      `${e.topic}: ${e.added.length} ${e.added.length === 1 ? "column" : "columns"} learned from records, version ${e.version} in ${e.place}: ${named(e.added)}`,
  },
  "sink.troubled": { level: "warn", text: (e) => `${e.sink}: ${failureText(e.failure)}` },
  "sink.recovered": { level: "info", text: (e) => `${e.sink}: works again after ${formatDuration(e.ms)}` },
  "sink.detached": {
    level: "warn",
    text: (e) =>
      `${e.sink}: lane ${e.lane} goes on without it for ${formatDuration(e.pauseMs)}: ${failureText(e.failure)}`,
  },
  "sink.attached": { level: "info", text: (e) => `${e.sink}: lane ${e.lane} writes to it again` },
  "sink.gap": {
    level: "warn",
    text: (e) => {
      const some = e.positions === undefined ? "is" : `has ${e.positions} positions that are`;
      return `${e.sink}: ${at(e)} from ${e.from} up to ${e.next} ${some} missing in it and safe in the primary sink`;
    },
  },
  "sink.lacks": { level: null, text: (e) => `${e.sink}: ${e.positions} positions in ${e.gaps} gaps` },
  "sink.gap_expiring": {
    level: "warn",
    text: (e) =>
      `${e.sink} lacks ${e.positions} positions, and the raw files of the oldest are removed in ${formatDuration(e.leftMs)}: fill the gap with \`twg recover\``,
  },
  "records.undecodable": {
    level: "warn",
    text: undecodableText,
  },
  "records.duplicate": { level: "debug", text: (e) => `${e.sink}: ${e.records} duplicates of ${e.topic}` },
  "records.refused": { level: "warn", text: refusedText },
  "records.there": { level: "info", text: thereText },
  "sink.rejects_failed": { level: "warn", text: (e) => `${e.sink}: kept nowhere: ${failureText(e.failure)}` },
  "coverage.healthy": { level: "info", text: () => "coverage store works again" },
  "coverage.waiting": {
    level: "warn",
    text: (e) => `waiting up to ${formatDuration(e.ms)} to see whether the former owner lives: ${e.owner}`,
  },
  "coverage.troubled": { level: "warn", text: (e) => `coverage store: ${failureText(e.failure)}` },
  "coverage.fenced": { level: "error", text: (e) => `another process took over: ${failureText(e.failure)}` },

  ...RECOVERY_ROWS,

  "stall.detected": { level: "warn", text: stallText },
  "stall.fatal": { level: "error", text: (e) => `${stallText(e)}; the process reports itself as not alive` },
  "stall.cleared": { level: "info", text: (e) => `progress again after ${formatDuration(e.ms)}` },
  "connection.opened": {
    level: "debug",
    text: (e) => `connected to ${e.address} (${e.purpose}${e.tls ? ", TLS" : ""})`,
  },
  "connection.closed": {
    level: "debug",
    text: (e) => `closed ${e.address} (${e.purpose})${e.error === null ? "" : `: ${e.error}`}`,
  },
  "request.done": {
    level: null,
    text: (e) =>
      `${e.api} at ${e.broker} in ${formatDuration(e.ms)}${e.error === null ? "" : `: ${e.error}`}`,
  },
};

/** Which warnings an event ends: what was left out of them is told with it, not half a minute later. */
export const ENDS: { readonly [K in EventName]?: EventName } = {
  "source.healthy": "source.troubled",
  "source.acknowledged": "source.acknowledge_failed",
  "sink.recovered": "sink.troubled",
  "coverage.healthy": "coverage.troubled",
};

const ORDER: readonly Level[] = ["debug", "info", "warn", "error"];

/** True if `level` is to be shown where `least` is the lowest level asked for. */
export function atLeast(level: Level, least: Level): boolean {
  return ORDER.indexOf(level) >= ORDER.indexOf(least);
}

/** The row of an event's own name. The cast is sound: the table is keyed by the name that selects the shape. */
export function eventRow(event: TwgEvent): EventRow<EventName> {
  return EVENTS[event.e] as unknown as EventRow<EventName>;
}

export function eventText(event: TwgEvent): string {
  return eventRow(event).text(event);
}

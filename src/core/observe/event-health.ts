/** Which event changes which part of the health tree. An event that is absent changes none. */
import type { FailureWire } from "../failure/failure.ts";
import type { EventName, EventOf, TwgEvent } from "./events.ts";
import type { HealthTree } from "./health.ts";

/** Where a sink hangs: only the primary raw sink gates readiness. */
export interface HealthRoles {
  readonly primaryRaw: string;
}

type Rows = { readonly [K in EventName]?: (h: HealthTree, e: EventOf<K>, roles: HealthRoles) => void };

/** Scopes whose failure ends the run. */
const ENDS: ReadonlySet<string> = new Set(["pipeline", "source"]);

const why = (f: FailureWire): string => (f.at === null ? f.message : `${f.message} (at ${f.at})`);

function sinkFailed(h: HealthTree, sink: string, f: FailureWire, roles: HealthRoles): void {
  if (sink === roles.primaryRaw) h.failed("primary_raw", f.code, why(f));
  else h.failed("sinks", f.code, why(f), sink);
}

function sinkOk(h: HealthTree, sink: string, roles: HealthRoles): void {
  if (sink === roles.primaryRaw) h.ok("primary_raw");
  else h.ok("sinks", sink);
}

const ROWS: Rows = {
  "pipeline.started": (h) => {
    for (const part of ["pipeline", "primary_raw", "coverage"] as const) h.ok(part);
  },
  "pipeline.stopping": (h, e) => h.degraded("pipeline", "draining", e.reason),
  "pipeline.stopped": (h, e) => h.failed("pipeline", "stopped", e.reason),
  // Others, such as secrets that could not be read again, change nothing of what runs.
  failure: (h, e) => {
    if (ENDS.has(e.scope)) h.failed("pipeline", e.failure.code, `${e.scope}: ${why(e.failure)}`);
  },

  "source.healthy": (h) => h.ok("source"),
  "source.troubled": (h, e) => h.failed("source", e.failure.code, why(e.failure)),
  "source.acknowledged": (h) => h.ok("committer"),
  "source.acknowledge_failed": (h, e) => h.degraded("committer", e.failure.code, why(e.failure)),

  "lane.started": (h, e) => h.ok("lanes", String(e.lane)),
  "lane.restarted": (h, e) => h.ok("lanes", String(e.lane)),
  "lane.died": (h, e) => h.failed("lanes", e.failure.code, why(e.failure), String(e.lane)),

  "set.covered": (h, e, roles) => {
    sinkOk(h, e.sink, roles);
    h.ok("coverage");
  },
  "sink.troubled": (h, e, roles) => sinkFailed(h, e.sink, e.failure, roles),
  "sink.recovered": (h, e, roles) => sinkOk(h, e.sink, roles),
  "sink.detached": (h, e) => h.degraded("sinks", e.failure.code, why(e.failure), e.sink),
  "sink.attached": (h, e) => h.ok("sinks", e.sink),
  "coverage.healthy": (h) => h.ok("coverage"),
  "coverage.troubled": (h, e) => h.failed("coverage", e.failure.code, why(e.failure)),
  "coverage.fenced": (h, e) => h.failed("coverage", e.failure.code, why(e.failure)),

  "recovery.looked": (h, e) => {
    h.ok("recovery");
    if (e.behind === 0n) h.forgetChildren("recovery");
  },
  "recovery.blind": (h, e) => h.failed("recovery", e.failure.code, why(e.failure)),
  "recovery.troubled": (h, e) => h.degraded("recovery", e.failure.code, why(e.failure), e.sink ?? "lane"),
  "recovery.rests": (h, e) => {
    if (e.failure === null) h.ok("recovery", "round");
    else h.degraded("recovery", e.failure.code, why(e.failure), "round");
  },
  "recovery.filled": (h, e) => {
    if (e.positions > 0n) for (const child of ["lane", e.sink]) h.ok("recovery", child);
  },

  "stall.detected": (h) => h.degraded("progress", "internal.stalled", "work is waiting and nothing moves"),
  "stall.fatal": (h) =>
    h.failed(
      "progress",
      "internal.stalled",
      "work is waiting, nothing moves and nothing outside explains it",
    ),
  "stall.cleared": (h) => h.ok("progress"),
};

export function applyHealth(health: HealthTree, event: TwgEvent, roles: HealthRoles): void {
  // Sound: the row is looked up by the name that selects the event's shape.
  const row = ROWS[event.e] as ((h: HealthTree, e: TwgEvent, roles: HealthRoles) => void) | undefined;
  row?.(health, event, roles);
}

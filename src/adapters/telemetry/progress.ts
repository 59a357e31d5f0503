/**
 * Progress: on a terminal one live line, drawn twice a second; otherwise a `progress` event every ten seconds. It
 * reads the view, so it costs the hot path nothing.
 */
import type { TwgEvent } from "../../core/observe/events.ts";
import type { HealthTree } from "../../core/observe/health.ts";
import type { PipelineView } from "../../core/observe/pipeline-view.ts";
import { type ProgressSnapshot, progressLine } from "../../core/observe/progress-line.ts";
import type { Clock } from "../../core/time/clock.ts";

export const LIVE_MS = 500;
export const LOG_MS = 10_000;
/** The live line's rates are over this much, so that digits stand still long enough to be read. */
const RATE_WINDOW_MS = 3_000;

export interface ProgressParts {
  readonly clock: Clock;
  readonly view: PipelineView;
  readonly health: HealthTree;
  readonly inFlight: () => number;
  /** Set on a terminal: draws the line. */
  readonly live: ((text: string | null) => void) | null;
  readonly emit: (event: TwgEvent) => void;
}

interface Mark {
  readonly at: number;
  readonly records: number;
  readonly bytes: number;
}

export class Progress {
  readonly #p: ProgressParts;
  #marks: Mark[];
  #shownAt: number;

  constructor(parts: ProgressParts) {
    this.#p = parts;
    this.#shownAt = parts.clock.monotonic();
    this.#marks = [this.#mark()];
  }

  /** Called often; shows something when its time has come. */
  tick(): void {
    const now = this.#p.clock.monotonic();
    const every = this.#p.live === null ? LOG_MS : LIVE_MS;
    if (now - this.#shownAt < every) return;
    this.#shownAt = now;
    const window = this.#p.live === null ? LOG_MS : RATE_WINDOW_MS;
    while (now - (this.#marks[1]?.at ?? now) >= window) this.#marks.shift();
    const snapshot = this.snapshot();
    if (this.#p.live === null) this.#p.emit({ e: "progress", ...snapshot });
    else this.#p.live(progressLine(snapshot));
    this.#marks.push(this.#mark());
  }

  /** Removes the live line. */
  close(): void {
    this.#p.live?.(null);
  }

  snapshot(): ProgressSnapshot {
    const { view, clock } = this.#p;
    const first = this.#marks[0];
    const ms = first === undefined ? 0 : clock.monotonic() - first.at;
    const per = (total: number, before: number): number => (ms > 0 ? ((total - before) * 1000) / ms : 0);
    const state = this.#state();
    const troubled = state === "degraded" || state === "failed";
    return {
      state,
      reason: troubled ? this.#p.health.trouble() : null,
      recordsPerSecond: per(view.records, first?.records ?? 0),
      bytesPerSecond: per(view.bytes, first?.bytes ?? 0),
      lag: view.lag(),
      bytesInFlight: this.#p.inFlight(),
      sinks: [...view.sinks].map(([sink, s]) => ({ sink, rows: s.rows, files: s.files })),
    };
  }

  #mark(): Mark {
    return { at: this.#p.clock.monotonic(), records: this.#p.view.records, bytes: this.#p.view.bytes };
  }

  #state(): ProgressSnapshot["state"] {
    const { view, health } = this.#p;
    if (view.stopped) return "stopped";
    if (view.stopping) return "draining";
    if (!view.started || health.starting) return "starting";
    const state = health.overall();
    return state === "ok" ? "running" : state;
  }
}

/** What a run is told and what it is made of. */
import type { CommitListener, SetCommitter } from "../delivery/committer.ts";
import type { CrashHook } from "../delivery/crash-points.ts";
import type { Ledger } from "../delivery/ledger.ts";
import type { RawRetention, StreamCoverage } from "../ports/coverage.ts";
import type { LanePort } from "../ports/lane.ts";
import type { Observer } from "../ports/observer.ts";
import type { Source } from "../ports/source.ts";
import type { Clock } from "../time/clock.ts";
import type { Admission } from "./admission.ts";
import type { BufferPool } from "./buffer-pool.ts";
import type { SecondarySpec } from "./secondary-parts.ts";
import type { StartRules } from "./stream-table.ts";

export interface RunnerOptions {
  readonly sink: string;
  readonly lanes: number;
  readonly rules: StartRules;
  /** Ends by itself once everything that was there at the start is committed. */
  readonly untilCaughtUp: boolean;
  readonly heartbeatMs: number;
  /** Longest wait for open files at a stop. */
  readonly drainMs: number;
}

export interface RunnerParts {
  readonly clock: Clock;
  readonly source: Source;
  readonly coverage: StreamCoverage;
  /** Built by the runner, which is its listener. */
  readonly committer: (listener: CommitListener) => SetCommitter;
  readonly spawnLane: (lane: number) => LanePort;
  readonly ledger: Ledger;
  readonly admission: Admission;
  readonly buffers: BufferPool;
  readonly observer: Observer;
  /** Removes staged objects that no open intent names; called once, before the first lane writes. */
  readonly sweep: () => Promise<void>;
  /** Sinks beside the primary one; by default there are none. */
  readonly secondaries?: readonly SecondarySpec[];
  /** Of what the primary sink writes; absent: nobody removes it, or it is not known when. */
  readonly retention?: RawRetention;
  /** Passed at the named points of delivery. */
  readonly hook?: CrashHook;
}

export interface RunSummary {
  readonly rows: number;
  readonly reason: string;
}

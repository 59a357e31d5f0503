/** What a batch job is told, what it is built of, and what it tells of itself. */
import type { CommitListener, SetCommitter } from "../delivery/committer.ts";
import type { BatchLanePort, CutterPort, FileWork, RejectSample } from "../ports/batch-lane.ts";
import type { StreamCoverage } from "../ports/coverage.ts";
import type { Observer } from "../ports/observer.ts";
import type { Clock } from "../time/clock.ts";

export interface BatchRunnerOptions {
  readonly sink: string;
  readonly lanes: number;
  /** Pieces that the cutter may have made and no lane has finished. */
  readonly credits: number;
  readonly heartbeatMs: number;
  readonly maxRejects: number;
  /** A later file's rows replace an earlier one's: files have an order that is remembered. */
  readonly ranked: boolean;
  readonly blockBytes: number;
  /** Columns of the files, for blank lines of one-column files. */
  readonly columnsOf: (work: FileWork) => number;
}

export interface BatchRunnerParts {
  readonly clock: Clock;
  readonly coverage: StreamCoverage;
  readonly committer: (listener: CommitListener) => SetCommitter;
  readonly sweep: () => Promise<void>;
  readonly spawnLane: (lane: number) => BatchLanePort;
  readonly spawnCutter: () => CutterPort;
  readonly digestOf: (parts: Uint8Array) => string;
  readonly observer: Observer;
  readonly onSample: (sample: RejectSample) => void;
}

export interface BatchProgress {
  readonly files: number;
  readonly filesDone: number;
  readonly filesSkipped: number;
  /** Bytes of files as they are stored, all and done. */
  readonly bytes: number;
  readonly bytesDone: number;
  /** Rows given to the sink, refused and covered by earlier runs; of them covered by now. */
  readonly rows: number;
  readonly rejected: number;
  readonly skippedRows: number;
  readonly landed: number;
  readonly sets: number;
}

export interface BatchResult extends BatchProgress {
  /** Names of files whose content another file of the job has too. */
  readonly twins: readonly { readonly file: string; readonly of: string }[];
  readonly stopped: boolean;
}

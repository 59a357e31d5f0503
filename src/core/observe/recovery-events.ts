/** Events of recovery: what it sees, leases and fills. Part of the catalogue in events.ts. */
import type { FailureWire } from "../failure/failure.ts";
import { formatBytes, formatCount, formatDuration } from "./quantities.ts";

/** A window that recovery fills, or the head of live ingest (`next` null), as it was seen in a sink's coverage. */
export interface LeaseSeen {
  readonly sink: string;
  readonly holder: string;
  readonly topic: string;
  readonly partition: number;
  readonly from: bigint;
  readonly next: bigint | null;
  /** How long its holder has written nothing, by the clock of whoever looks; null: seen for the first time. */
  readonly silentMs: number | null;
}

export type RecoveryEvent =
  /** `free`: positions that it may fill now. `behind`: those with what others of its kind are at. The largest leases. */
  | {
      readonly e: "recovery.looked";
      readonly free: bigint;
      readonly behind: bigint;
      readonly leases: readonly LeaseSeen[];
    }
  /** What is behind cannot be seen now. */
  | { readonly e: "recovery.blind"; readonly failure: FailureWire }
  | { readonly e: "recovery.began"; readonly positions: bigint }
  /** It holds no connection and no lane until it looks again. */
  | {
      readonly e: "recovery.rests";
      readonly filled: bigint;
      readonly failure: FailureWire | null;
      readonly ms: number;
    }
  | {
      readonly e: "recovery.leased";
      readonly sink: string;
      readonly windows: number;
      /** What of them is to be filled. */
      readonly positions: bigint;
      /** `topic/partition [from, next)` of each. */
      readonly at: readonly string[];
    }
  | {
      readonly e: "recovery.filled";
      readonly sink: string;
      readonly windows: number;
      /** Of `wanted`. */
      readonly positions: bigint;
      readonly wanted: bigint;
      readonly ms: number;
    }
  /** A set of what was read again is durable in the sink, and covered. */
  | {
      readonly e: "recovery.covered";
      readonly sink: string;
      readonly id: string;
      readonly rows: number;
      readonly bytes: number;
      readonly files: number;
      readonly ms: number;
    }
  /** A lane has read a set of raw files. */
  | { readonly e: "recovery.replayed"; readonly rows: number; readonly bytes: number }
  /** `sink` null: a lane, or raw. */
  | { readonly e: "recovery.troubled"; readonly sink: string | null; readonly failure: FailureWire }
  /** Live ingest falls behind: recovery waits for it. */
  | { readonly e: "recovery.yields"; readonly backlog: number }
  | { readonly e: "recovery.resumes"; readonly ms: number };

type Rows = {
  readonly [K in RecoveryEvent["e"]]: {
    readonly level: "debug" | "info" | "warn" | null;
    readonly text: (e: Extract<RecoveryEvent, { readonly e: K }>) => string;
  };
};

function failureText({ code, message, at, hint }: FailureWire): string {
  return `${code}: ${message}${at === null ? "" : ` (at ${at})`}${hint === null ? "" : `. ${hint}`}`;
}

export const RECOVERY_ROWS: Rows = {
  "recovery.looked": { level: null, text: (e) => `recovery: ${e.free} of ${e.behind} positions are free` },
  "recovery.blind": { level: "warn", text: (e) => `recovery: ${failureText(e.failure)}` },
  "recovery.began": { level: "info", text: (e) => `recovery: ${e.positions} positions to fill` },
  "recovery.rests": {
    level: "info",
    text: (e) =>
      `recovery: ${e.filled} positions filled in ${formatDuration(e.ms)}${e.failure === null ? "" : `; ${failureText(e.failure)}`}`,
  },
  "recovery.leased": {
    level: "debug",
    text: (e) => `${e.sink}: leased ${e.at.join(", ")}, ${e.positions} positions to fill`,
  },
  "recovery.filled": {
    level: "debug",
    text: (e) =>
      `${e.sink}: ${e.positions} of ${e.wanted} positions filled in ${e.windows} ${e.windows === 1 ? "window" : "windows"}, in ${formatDuration(e.ms)}`,
  },
  "recovery.covered": {
    level: "debug",
    text: (e) =>
      `${e.sink}: set ${e.id} of recovery covered (${formatCount(e.rows)} rows, ${formatBytes(e.bytes)}) in ${formatDuration(e.ms)}`,
  },
  "recovery.replayed": {
    level: null,
    text: (e) => `recovery read ${formatCount(e.rows)} rows of ${formatBytes(e.bytes)}`,
  },
  "recovery.troubled": {
    level: "warn",
    text: (e) => `recovery${e.sink === null ? "" : ` of ${e.sink}`}: ${failureText(e.failure)}`,
  },
  "recovery.yields": {
    level: "info",
    text: (e) => `recovery waits: live records are ${formatCount(e.backlog)} behind`,
  },
  "recovery.resumes": { level: "info", text: (e) => `recovery goes on after ${formatDuration(e.ms)}` },
};

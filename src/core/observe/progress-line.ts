/** The progress line: how a moment of the pipeline reads on a terminal and in the log. Pure. */
import { formatBytes, formatCount } from "./quantities.ts";

export interface SinkProgress {
  readonly sink: string;
  /** Covered rows and files since the start: they count only once durable and recorded. */
  readonly rows: number;
  readonly files: number;
}

/** What the line shows. Rates are per second over the time since the line before. */
export interface ProgressSnapshot {
  readonly state: "starting" | "running" | "degraded" | "failed" | "draining" | "stopped";
  /** The part that is not ok and its reason, null where all are. */
  readonly reason: string | null;
  readonly recordsPerSecond: number;
  readonly bytesPerSecond: number;
  /** Positions not yet acknowledged, over all streams; null as long as no end is known. */
  readonly lag: number | null;
  readonly bytesInFlight: number;
  readonly sinks: readonly SinkProgress[];
}

/** Decimal megabytes, as networks are counted. */
function megabytes(bytesPerSecond: number): string {
  const mb = bytesPerSecond / 1e6;
  return mb < 99.95 ? mb.toFixed(1) : mb.toFixed(0);
}

function sinkPart(s: SinkProgress): string {
  return `${s.sink} ${formatCount(s.rows)} rows ${formatCount(s.files)} ${s.files === 1 ? "file" : "files"}`;
}

/** `degraded (committer: net.refused) | 1.25M rec/s | 312 MB/s | lag 4.00M | in flight 24.0 MiB | raw 12.0M rows 48 files` */
export function progressLine(p: ProgressSnapshot): string {
  const lag = p.lag === null ? "?" : formatCount(p.lag);
  return [
    p.reason === null ? p.state : `${p.state} (${p.reason})`,
    `${formatCount(Math.round(p.recordsPerSecond))} rec/s`,
    `${megabytes(p.bytesPerSecond)} MB/s`,
    `lag ${lag}`,
    `in flight ${formatBytes(p.bytesInFlight)}`,
    ...p.sinks.map(sinkPart),
  ].join(" | ");
}

/** Cut to the width of the terminal, so that redrawing with a carriage return never wraps. Sinks go first. */
export function fitLine(line: string, columns: number): string {
  const room = Math.max(1, columns - 1);
  if (line.length <= room) return line;
  return room <= 3 ? line.slice(0, room) : `${line.slice(0, room - 3)}...`;
}

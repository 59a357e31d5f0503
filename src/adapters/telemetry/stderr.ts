/** Standard error as telemetry sees it: where lines go, whether a person is looking, and whether colour is wanted. */
import type { Clock } from "../../core/time/clock.ts";
import { descriptorWrite, type LineWriter, QueuedLines } from "./line-writer.ts";
import type { Terminal } from "./screen.ts";

const STDERR = 2;
const DEFAULT_COLUMNS = 80;

export interface StderrOutput {
  readonly out: LineWriter;
  readonly terminal: Terminal | null;
  readonly color: boolean;
}

/** `stream` and `env` are the process's own; given so that tests need no terminal. NO_COLOR counts if not empty. */
export function stderrOutput(
  clock: Clock,
  stream: { readonly isTTY?: boolean; readonly columns?: number } = process.stderr,
  env: Readonly<Record<string, string | undefined>> = process.env,
): StderrOutput {
  const out = new QueuedLines(descriptorWrite(STDERR), (ms, fn) => clock.after(ms, fn));
  // "dumb" terminals cannot erase a line.
  const person = stream.isTTY === true && env["TERM"] !== "dumb";
  return {
    out,
    terminal: person ? { columns: () => stream.columns ?? DEFAULT_COLUMNS } : null,
    color: person && (env["NO_COLOR"] ?? "") === "",
  };
}

/** Resident memory and CPU time of this process, all threads. */
export function processUsage(): { readonly residentBytes: number; readonly cpuSeconds: number } {
  const { user, system } = process.cpuUsage();
  return { residentBytes: process.memoryUsage.rss(), cpuSeconds: (user + system) / 1e6 };
}

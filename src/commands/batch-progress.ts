/** The progress line of a batch job: how far, how fast, and when it will be done. Pure. */
import { formatBytes, formatCount, formatDuration } from "../core/observe/quantities.ts";
import type { BatchProgress } from "../core/pipeline/batch-runner-parts.ts";

const BAR = 24;

/** `[=======>      ] 31% 12 of 40 files | 1.2M rows | 210 MiB/s | about 40 s left` */
export function progressText(p: BatchProgress, ms: number): string {
  const share = p.bytes === 0 ? 1 : Math.min(1, p.bytesDone / p.bytes);
  const filled = Math.round(share * BAR);
  const bar = `[${"=".repeat(filled)}${" ".repeat(BAR - filled)}]`;
  const files = `${p.filesDone} of ${p.files} ${p.files === 1 ? "file" : "files"}`;
  const rate = ms > 0 ? `${formatBytes((1000 * p.bytesDone) / ms)}/s` : "";
  const left = share > 0.01 && share < 1 ? `about ${formatDuration((ms * (1 - share)) / share)} left` : "";
  const refused = p.rejected === 0 ? "" : `${formatCount(p.rejected)} refused`;
  return [`${bar} ${Math.floor(100 * share)}% ${files}`, `${formatCount(p.rows)} rows`, refused, rate, left]
    .filter((t) => t !== "")
    .join(" | ");
}

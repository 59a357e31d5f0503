/** What `/stats` answers: the digest of the last half minute, health, memory. Snake case, like the configuration. */
import type { DigestReport } from "../../core/observe/digest.ts";
import type { HealthReport } from "../../core/observe/health.ts";
import type { RecoveryDigest } from "../../core/observe/recovery-view.ts";

export interface Stats extends DigestReport {
  readonly pipeline: string;
  readonly version: string;
  readonly uptime_ms: number;
  readonly bytes_in_flight: number;
  /** Null where no budget is watched. */
  readonly budget_bytes: number | null;
  readonly resident_bytes: number;
  readonly cpu_seconds: number;
  readonly health: HealthReport;
  /** Of a process that recovers. */
  readonly recovery?: RecoveryDigest;
}

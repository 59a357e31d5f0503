/** How fast recovery may read raw again: as configured, moderately while somebody writes live, and not at all while those fall behind. */
import { RECOVERY_BESIDE_BYTES_PER_S, type RecoverySection } from "../config/sections.ts";
import { allOf, type RateLimit, rateLimit } from "../delivery/rate-limit.ts";
import type { Clock } from "../time/clock.ts";

export interface LiveParts {
  /** A pipeline writes raw, as far as it is known. */
  readonly isLive: () => boolean;
  /** Of the process of live ingest itself; null: that is another one. */
  readonly waits: RateLimit | null;
}

export function recoveryLimit(
  { max_bytes_per_s, max_records_per_s }: Pick<RecoverySection, "max_bytes_per_s" | "max_records_per_s">,
  clock: Clock,
  { isLive, waits }: LiveParts,
): RateLimit {
  const configured = rateLimit(clock, {
    ...(max_bytes_per_s === undefined ? {} : { bytesPerSecond: max_bytes_per_s }),
    ...(max_records_per_s === undefined ? {} : { recordsPerSecond: max_records_per_s }),
  });
  const beside = whileLive(rateLimit(clock, { bytesPerSecond: RECOVERY_BESIDE_BYTES_PER_S }), isLive);
  return allOf([
    configured,
    ...(max_bytes_per_s === undefined ? [beside] : []),
    ...(waits === null ? [] : [waits]),
  ]);
}

/** What was read while nobody wrote is not held against whoever reads later. */
function whileLive(limit: RateLimit, isLive: () => boolean): RateLimit {
  return {
    room: (recordBytes) => (isLive() ? limit.room(recordBytes) : Number.POSITIVE_INFINITY),
    spend: (records, bytes) => {
      if (isLive()) limit.spend(records, bytes);
    },
    waitMs: () => (isLive() ? limit.waitMs() : 0),
  };
}

/** What lanes may take of a source, by the limits and the budget of `[pipeline]`. */
import { systemClock } from "../adapters/system/clock.ts";
import type { Budget } from "../core/delivery/budget.ts";
import { rateLimit } from "../core/delivery/rate-limit.ts";
import { SizeEstimate } from "../core/delivery/size-estimate.ts";
import { Admission } from "../core/pipeline/admission.ts";
import type { ResolvedConfig } from "./config-file.ts";

export function admissionOf(
  {
    max_records_per_s: records,
    max_bytes_per_s: bytes,
    record_size_est_bytes: size,
  }: ResolvedConfig["pipeline"],
  budget: Budget,
): Admission {
  const limit = rateLimit(systemClock, {
    ...(records === undefined ? {} : { recordsPerSecond: records }),
    ...(bytes === undefined ? {} : { bytesPerSecond: bytes }),
  });
  return new Admission(systemClock, budget, limit, new SizeEstimate(size));
}

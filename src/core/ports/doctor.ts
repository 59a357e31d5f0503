/**
 * What `twg doctor` asks of an adapter: to try, without leaving a trace, what the pipeline is about to rest on, and to
 * say what it saw. A checkup never throws for what it looks for: a fault is a finding.
 */
import type { Code } from "../failure/codes.ts";
import type { Failure } from "../failure/failure.ts";
import type { Clock } from "../time/clock.ts";

/** `warning`: the pipeline runs, and somebody should know. `skipped`: not looked at, and why. */
export type Verdict = "ok" | "warning" | "failed" | "skipped";

export interface Finding {
  /** Stable name: area and what was looked at, such as `kafka.topic`. */
  readonly check: string;
  /** Which one: an address, a topic, a folder. */
  readonly at: string;
  readonly verdict: Verdict;
  /** What was seen; never a secret. */
  readonly seen: string;
  /** What to do about it; null where there is nothing to do. */
  readonly advice: string | null;
  /** Of the failure behind it. */
  readonly code: Code | null;
}

export interface DoctorContext {
  readonly clock: Clock;
  /** Aborts when the time is over: requests under way end. */
  readonly signal: AbortSignal;
  /** Findings count from here on, even if the checkup does not come to its end. */
  report(finding: Finding): void;
}

export interface Checkup {
  /** Area: the finding for a checkup that takes too long has it. */
  readonly name: string;
  readonly at: string;
  run(context: DoctorContext): Promise<void>;
}

export function ok(check: string, at: string, seen: string): Finding {
  return { check, at, verdict: "ok", seen, advice: null, code: null };
}

export function warning(check: string, at: string, seen: string, advice: string): Finding {
  return { check, at, verdict: "warning", seen, advice, code: null };
}

export function failed(check: string, at: string, seen: string, advice: string): Finding {
  return { check, at, verdict: "failed", seen, advice, code: null };
}

export function skipped(check: string, at: string, why: string): Finding {
  return { check, at, verdict: "skipped", seen: why, advice: null, code: null };
}

export function failedBy(check: string, at: string, failure: Failure): Finding {
  const place = failure.at === null || at.includes(failure.at) ? "" : ` (at ${failure.at})`;
  return {
    check,
    at,
    verdict: "failed",
    seen: `${failure.message}${place}`,
    advice: failure.hint,
    code: failure.code,
  };
}

/** Beyond this S3-alikes refuse signatures (15 minutes); TLS and tokens go wrong before. */
const SKEW_FAILED_MS = 10 * 60_000;
const SKEW_WARNING_MS = 5_000;

/**
 * Compares a server's clock with ours. `theirs`: what it said, ms since 1970, with steps of `stepMs`; `before` and
 * `after`: our clock around the question, so that a slow answer is no skew.
 */
export function clockSkew(
  check: string,
  at: string,
  theirs: number,
  before: number,
  after: number,
  stepMs: number,
): Finding {
  const ahead = theirs - after;
  const behind = before - (theirs + stepMs);
  const off = Math.max(ahead, behind, 0);
  const seen =
    off === 0
      ? "the clocks agree"
      : `our clock is ${(off / 1000).toFixed(1)} s ${ahead > 0 ? "behind" : "ahead"}`;
  const advice = "Let both machines follow a time server (NTP)";
  if (off >= SKEW_FAILED_MS) return failed(check, at, seen, advice);
  return off >= SKEW_WARNING_MS ? warning(check, at, seen, advice) : ok(check, at, seen);
}

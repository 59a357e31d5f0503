/** Which failures are waited out, with everything kept, once the work has begun, and how. */
import { asFailure, type Failure } from "../failure/failure.ts";
import { type Clock, settledWithin } from "../time/clock.ts";

/** First and longest pause between two tries during an outage, ms. */
const RETRY_FIRST_MS = 100;
const RETRY_LONGEST_MS = 5_000;
/** Longest that whoever leaves a store waits for it. */
export const LEAVE_MS = 5_000;

/**
 * An outage, or something around us (rights, space) that people mend while we run. Not what says that another
 * process or another version has the word now: waiting would only hide that.
 */
export function passes(failure: Failure): boolean {
  if (
    ["coverage.fenced", "coverage.owned", "coverage.newer_version", "coverage.no_links"].includes(
      failure.code,
    )
  ) {
    return false;
  }
  return isOutage(failure);
}

/** An outage, or something around us, whoever says so. */
export function isOutage(failure: Failure): boolean {
  return failure.retry || failure.kind === "environment";
}

export interface Outage {
  /** Resolves after so many ms; what it rejects with ends the wait, since whoever waits is closed. */
  readonly pause: (ms: number) => Promise<void>;
  /** Told of each failure that is waited out; null: it is over. */
  readonly trouble: (failure: Failure | null) => void;
}

/**
 * For calls in whose middle the caller can do nothing but try again: waits an outage out until it ends or the
 * pause is refused. What is repeated must be safe to repeat. A failure that is not `passing` is thrown.
 */
export async function waitedOut<T>(
  { pause, trouble }: Outage,
  fn: () => Promise<T>,
  passing: (failure: Failure) => boolean = passes,
): Promise<T> {
  let troubled = false;
  for (let ms = RETRY_FIRST_MS; ; ms = Math.min(2 * ms, RETRY_LONGEST_MS)) {
    try {
      const value = await fn();
      if (troubled) trouble(null);
      return value;
    } catch (e) {
      const failure = asFailure(e);
      if (!passing(failure)) throw failure;
      troubled = true;
      trouble(failure);
      await pause(ms);
    }
  }
}

/** Leaves the store. Where it gives no answer others follow after the lease, or at once on this machine. */
export function leaveStore(clock: Clock, store: { close(): Promise<void> }): Promise<void> {
  return settledWithin(clock, LEAVE_MS, store.close());
}

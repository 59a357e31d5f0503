/** Which failures are waited out, with everything kept, once the work has begun, and how. */
import { asFailure, type Failure } from "../failure/failure.ts";
import { type Clock, sleep } from "../time/clock.ts";

/** First and longest pause between two tries during an outage, ms. */
const RETRY_FIRST_MS = 100;
const RETRY_LONGEST_MS = 5_000;

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
  return failure.retry || failure.kind === "environment";
}

export interface Outage {
  readonly clock: Clock;
  /** Ends the wait: whoever waits is closed. */
  readonly closed: AbortSignal;
  /** Told of each failure that is waited out; null: it is over. */
  readonly trouble: (failure: Failure | null) => void;
}

/**
 * For calls in whose middle the caller can do nothing but try again: waits an outage out until it ends or the
 * store is closed. What is repeated must be safe to repeat. A failure that is not `passing` is thrown.
 */
export async function waitedOut<T>(
  { clock, closed, trouble }: Outage,
  fn: () => Promise<T>,
  passing: (failure: Failure) => boolean = passes,
): Promise<T> {
  let troubled = false;
  for (let pause = RETRY_FIRST_MS; ; pause = Math.min(2 * pause, RETRY_LONGEST_MS)) {
    try {
      const value = await fn();
      if (troubled) trouble(null);
      return value;
    } catch (e) {
      const failure = asFailure(e);
      if (!passing(failure)) throw failure;
      troubled = true;
      trouble(failure);
      await sleep(clock, pause, closed);
    }
  }
}

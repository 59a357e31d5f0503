/** Time as a port: the whole pipeline runs under a simulated clock in tests. */
export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Wall time, milliseconds since the epoch. For stamps only, never for intervals. */
  now(): number;
  /** Milliseconds on a clock that never goes back. For intervals, time-outs and leases. */
  monotonic(): number;
  /** Runs `fn` once after `ms` milliseconds unless cancelled. */
  after(ms: number, fn: () => void): Timer;
}

/** Resolves after `ms`, or rejects with the signal's reason as soon as it aborts. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const onAbort = () => {
      timer.cancel();
      reject(signal?.reason);
    };
    const timer = clock.after(ms, () => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    });
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}

/**
 * As the work settles, but after `ms` in any case: then it goes on by itself, and what comes of it is nobody's. For what is done
 * for others on the way out.
 */
export function settledWithin(clock: Clock, ms: number, work: Promise<unknown>): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = clock.after(ms, resolve);
    const settled = () => timer.cancel();
    work.finally(settled).then(() => resolve(), reject);
  });
}

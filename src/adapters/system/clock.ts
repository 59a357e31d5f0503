/** The machine's clock behind the time port. The only place outside tests that reads it. */
import type { Clock } from "../../core/time/clock.ts";

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(ms, fn) {
    const timer = setTimeout(fn, ms);
    return { cancel: () => clearTimeout(timer) };
  },
};

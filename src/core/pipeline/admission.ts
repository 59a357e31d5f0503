/** What a lane's source may fetch now: the tightest of the byte budget and the rate limits. */
import type { Budget } from "../delivery/budget.ts";
import { RateGate, type RateLimit } from "../delivery/rate-limit.ts";
import type { SizeEstimate } from "../delivery/size-estimate.ts";
import type { Clock } from "../time/clock.ts";

export class Admission {
  readonly #budget: Budget;
  readonly #limit: RateLimit;
  readonly #estimate: SizeEstimate;
  readonly #gate: RateGate;

  constructor(clock: Clock, budget: Budget, limit: RateLimit, estimate: SizeEstimate) {
    this.#budget = budget;
    this.#limit = limit;
    this.#estimate = estimate;
    this.#gate = new RateGate(clock, limit);
  }

  room(lane: number): number {
    return Math.floor(Math.min(this.#budget.room(lane), this.#limit.room(this.#estimate.bytes)));
  }

  /** Calls back once when there may be room; the caller looks at `room` again. */
  whenRoom(lane: number, wake: () => void): void {
    this.#budget.whenRoom(lane, () => this.#gate.whenOpen(wake));
  }

  delivered(lane: number, bytes: number): void {
    this.#budget.take(lane, bytes);
  }

  /** What a fetch held is known only after the lane has read it; the limit goes into debt until then. */
  consumed(lane: number, bytes: number, rows: number, rawBytes: number): void {
    this.#budget.give(lane, bytes);
    this.#limit.spend(rows, rawBytes);
    if (rows > 0) this.#estimate.observe(rows, rawBytes);
  }

  laneDied(lane: number): void {
    this.#budget.giveAll(lane);
  }

  get inFlight(): number {
    return this.#budget.used;
  }

  close(): void {
    this.#gate.close();
  }
}

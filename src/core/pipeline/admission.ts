/** What a lane's source may fetch now: the tightest of the byte budget and the rate limits. */
import type { Budget } from "../delivery/budget.ts";
import { RateGate, type RateLimit } from "../delivery/rate-limit.ts";
import type { SizeEstimate } from "../delivery/size-estimate.ts";
import type { Clock } from "../time/clock.ts";

export interface Charge {
  readonly records: number;
  readonly bytes: number;
}

const NOTHING: Charge = { records: 0, bytes: 0 };

export class Admission {
  readonly #budget: Budget;
  readonly #limit: RateLimit;
  readonly #estimate: SizeEstimate;
  readonly #gate: RateGate;
  /** By lane: what was charged for bundles that it has not read yet, oldest first. */
  readonly #charged = new Map<number, Charge[]>();

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

  /** `held`: bytes of memory. `charge`: what the bundle seems to hold, since a slow lane must not let more than that in. */
  delivered(lane: number, held: number, charge: Charge): void {
    this.#budget.take(lane, held);
    this.#limit.spend(charge.records, charge.bytes);
    const charged = this.#charged.get(lane);
    if (charged === undefined) this.#charged.set(lane, [charge]);
    else charged.push(charge);
  }

  /** What a bundle held is known only after the lane has read it: the rest is charged, or given back. */
  consumed(lane: number, held: number, rows: number, rawBytes: number): void {
    this.#budget.give(lane, held);
    const { records, bytes } = this.#charged.get(lane)?.shift() ?? NOTHING;
    this.#limit.spend(rows - records, rawBytes - bytes);
    if (rows < records || rawBytes < bytes) this.#gate.eased();
    if (rows > 0) this.#estimate.observe(rows, rawBytes);
  }

  laneDied(lane: number): void {
    this.#budget.giveAll(lane);
    for (const { records, bytes } of this.#charged.get(lane) ?? []) this.#limit.spend(-records, -bytes);
    this.#charged.delete(lane);
    this.#gate.eased();
  }

  get inFlight(): number {
    return this.#budget.used;
  }

  close(): void {
    this.#gate.close();
  }
}

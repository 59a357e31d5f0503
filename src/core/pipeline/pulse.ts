/** Tells others at an interval that we live, and hears by the answer whether we still may. */
import { asFailure, type Failure, toWire } from "../failure/failure.ts";
import type { StreamCoverage } from "../ports/coverage.ts";
import type { Observer } from "../ports/observer.ts";
import type { Clock, Timer } from "../time/clock.ts";

export interface PulseParts {
  readonly clock: Clock;
  readonly coverage: StreamCoverage;
  readonly observer: Observer;
  /** What else is told at the same interval. Never rejects. */
  readonly beside?: () => Promise<void>;
}

export class Pulse {
  readonly #p: PulseParts;
  readonly #everyMs: number;
  readonly #fenced: (failure: Failure) => void;
  #timer: Timer | null = null;
  #stopped = false;

  /** `fenced`: another process took over; called once, then the pulse is over. */
  constructor(everyMs: number, parts: PulseParts, fenced: (failure: Failure) => void) {
    this.#everyMs = everyMs;
    this.#p = parts;
    this.#fenced = fenced;
  }

  start(): void {
    this.#timer = this.#p.clock.after(this.#everyMs, () => void this.#beat());
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  async #beat(): Promise<void> {
    const { coverage, observer } = this.#p;
    try {
      await coverage.heartbeat();
      observer.emit({ e: "coverage.healthy" });
    } catch (e) {
      observer.emit({ e: "coverage.troubled", failure: toWire(asFailure(e)) });
    }
    void this.#p.beside?.();
    if (this.#stopped) return;
    if (coverage.fenced === null) return this.start();
    observer.emit({ e: "coverage.fenced", failure: toWire(coverage.fenced) });
    this.#fenced(coverage.fenced);
  }
}

/**
 * One outage of the sink is met by every lane and by the committer. It is told by each of them (the log leaves out
 * what repeats), and it is over, once, when the last of them is out of it.
 */
import type { FailureWire } from "../failure/failure.ts";
import type { Observer } from "../ports/observer.ts";
import type { Clock } from "../time/clock.ts";

export interface SinkTroubleParts {
  readonly clock: Clock;
  readonly observer: Observer;
}

export class SinkTrouble {
  readonly #sink: string;
  readonly #p: SinkTroubleParts;
  readonly #who = new Set<string>();
  /** Monotonic time at which the outage began; null: there is none. */
  #since: number | null = null;

  constructor(sink: string, parts: SinkTroubleParts) {
    this.#sink = sink;
    this.#p = parts;
  }

  /** `failure` null: it works again for `who`. */
  tell(who: string, failure: FailureWire | null): void {
    if (failure === null) {
      if (this.#who.delete(who)) this.#over();
      return;
    }
    this.#who.add(who);
    this.#since ??= this.#p.clock.monotonic();
    this.#p.observer.emit({ e: "sink.troubled", sink: this.#sink, failure });
  }

  /** It was stopped, so it will not say how it went: the next set that lands does. */
  silent(who: string): void {
    this.#who.delete(who);
  }

  /** A set was published and covered. */
  landed(): void {
    this.#over();
  }

  #over(): void {
    if (this.#since === null || this.#who.size > 0) return;
    const ms = this.#p.clock.monotonic() - this.#since;
    this.#since = null;
    this.#p.observer.emit({ e: "sink.recovered", sink: this.#sink, ms });
  }
}

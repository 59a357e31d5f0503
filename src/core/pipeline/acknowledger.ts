/**
 * Tells the source what is durable. One acknowledgement is under way at a time; what becomes durable meanwhile
 * goes with the next. A failed one is no loss: the records are safe and the next call carries the same marks.
 */
import type { CrashHook } from "../delivery/crash-points.ts";
import type { Ledger } from "../delivery/ledger.ts";
import { asFailure, toWire } from "../failure/failure.ts";
import type { Observer } from "../ports/observer.ts";
import type { AckMark, Source } from "../ports/source.ts";
import { streamParts } from "../records/stream.ts";
import type { Clock, Timer } from "../time/clock.ts";

/** Pause before a failed acknowledgement is sent again when nothing else becomes durable, ms. */
const RETRY_MS = 1_000;

export interface AcknowledgerParts {
  readonly clock: Clock;
  readonly source: Source;
  readonly ledger: Ledger;
  readonly observer: Observer;
  readonly hook?: CrashHook;
}

export class Acknowledger {
  readonly #p: AcknowledgerParts;
  /** The end of the line: one goes out at a time, each with all that is durable when its turn comes. Null: none does. */
  #line: Promise<unknown> | null = null;
  #busy = false;
  #again = false;
  #closed = false;
  #retry: Timer | null = null;

  constructor(parts: AcknowledgerParts) {
    this.#p = parts;
  }

  /** Something was committed. */
  kick(): void {
    if (this.#closed) return;
    if (this.#busy) {
      this.#again = true;
      return;
    }
    this.#busy = true;
    void this.#rounds();
  }

  /** Waits for what is under way, then sends what is left once more. Never waits for retries, nor for what becomes durable meanwhile. */
  async flush(): Promise<void> {
    await this.#inTurn();
  }

  /** No more retries. */
  close(): void {
    this.#closed = true;
    this.#retry?.cancel();
  }

  async #rounds(): Promise<void> {
    try {
      do {
        this.#again = false;
        if (!(await this.#inTurn())) return this.#retryLater();
      } while (this.#again);
    } finally {
      // On the same turn as the last look at `again`, so that no kick falls between two rounds.
      this.#busy = false;
    }
  }

  #inTurn(): Promise<boolean> {
    const turn = this.#line === null ? this.#send() : this.#line.then(() => this.#send());
    const line = turn
      .catch(() => {})
      .then(() => {
        if (this.#line === line) this.#line = null;
      });
    this.#line = line;
    return turn;
  }

  /** One timer, however many acknowledgements fail during an outage: each would start a chain of its own. */
  #retryLater(): void {
    if (this.#closed || this.#retry !== null) return;
    this.#retry = this.#p.clock.after(RETRY_MS, () => {
      this.#retry = null;
      this.kick();
    });
  }

  async #send(): Promise<boolean> {
    const marks = this.#p.ledger.pending();
    if (marks.length === 0) return true;
    const start = this.#p.clock.monotonic();
    // Before: by the time it is answered a stream may be somebody else's.
    const names = new Map(marks.map((m) => [m.stream, this.#named(m.stream)]));
    let told: readonly AckMark[];
    try {
      await this.#p.hook?.("before_acknowledge");
      told = await this.#p.source.acknowledge(marks);
      await this.#p.hook?.("after_acknowledge");
    } catch (e) {
      this.#p.observer.emit({ e: "source.acknowledge_failed", failure: toWire(asFailure(e)) });
      return false;
    }
    // What was left out stays pending: it goes with the next call, once its stream is read.
    if (told.length === 0) return true;
    this.#p.ledger.acknowledge(told);
    const ms = this.#p.clock.monotonic() - start;
    const named = told.map(({ stream, next }) => ({ ...names.get(stream)!, next }));
    this.#p.observer.emit({ e: "source.acknowledged", marks: named, ms });
    return true;
  }

  #named(stream: number): { topic: string; partition: number } {
    const { topic, partition } = streamParts(this.#p.ledger.state(stream).key);
    return { topic, partition };
  }
}

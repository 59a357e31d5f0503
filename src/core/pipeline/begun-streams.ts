/**
 * What has to be durable of streams before a record of theirs is given to a sink, tried until it is: also while the sink itself is
 * away, since what it misses then was live at this time, too.
 */
import { asFailure, type Failure } from "../failure/failure.ts";
import type { Clock, Timer } from "../time/clock.ts";
import type { PlacedStream, SecondarySpec } from "./secondary-parts.ts";

const RETRY_MS = 2_000;

export interface BegunStreamsParts {
  readonly clock: Clock;
  /** Null: it works. */
  readonly says: (failure: Failure | null) => void;
  /** More of them have begun. */
  readonly moved: () => void;
}

export class BegunStreams {
  readonly #begin: NonNullable<SecondarySpec["begin"]> | null;
  readonly #p: BegunStreamsParts;
  /** Those that have not, by number. */
  readonly #waiting = new Map<number, PlacedStream>();
  #busy = false;
  #retry: Timer | null = null;
  #closed = false;

  constructor(begin: SecondarySpec["begin"], parts: BegunStreamsParts) {
    this.#begin = begin ?? null;
    this.#p = parts;
  }

  /** Streams that are ours now, or that begin anew. */
  add(streams: readonly PlacedStream[]): void {
    if (this.#begin === null || this.#closed) return;
    for (const s of streams) this.#waiting.set(s.stream, s);
    // They need not wait with those that could not.
    this.#retry?.cancel();
    this.#retry = null;
    void this.#run(this.#begin);
  }

  has(stream: number): boolean {
    return !this.#waiting.has(stream);
  }

  forget(streams: readonly number[]): void {
    for (const s of streams) this.#waiting.delete(s);
  }

  close(): void {
    this.#closed = true;
    this.#waiting.clear();
    this.#retry?.cancel();
  }

  async #run(begin: NonNullable<SecondarySpec["begin"]>): Promise<void> {
    if (this.#busy || this.#retry !== null || this.#waiting.size === 0) return;
    this.#busy = true;
    const failure = await this.#begun(begin);
    this.#busy = false;
    if (this.#closed) return;
    // Of those that went elsewhere meanwhile nothing need be said.
    this.#p.says(this.#waiting.size === 0 ? null : failure);
    if (failure === null) return void this.#run(begin);
    this.#retry = this.#p.clock.after(RETRY_MS, () => {
      this.#retry = null;
      if (this.#waiting.size === 0) this.#p.says(null);
      void this.#run(begin);
    });
  }

  /** Why some of them have not. */
  async #begun(begin: NonNullable<SecondarySpec["begin"]>): Promise<Failure | null> {
    const now = [...this.#waiting.values()];
    try {
      const failed = await begin(now);
      for (const s of now)
        if (!failed.has(s.key) && this.#waiting.get(s.stream) === s) this.#waiting.delete(s.stream);
      if (failed.size < now.length) this.#p.moved();
      const [why] = failed.values();
      return why ?? null;
    } catch (e) {
      return asFailure(e);
    }
  }
}

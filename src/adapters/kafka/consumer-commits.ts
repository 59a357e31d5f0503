/**
 * When a consumer tells its group what is done. A commit per batch would wait for the broker each time, so positions are
 * gathered and told once an interval; what was not told yet is told before its partition goes and before the consumer ends.
 * A position is given to `done` when its batch is, so what is told may lag and never leads.
 */
import type { AckMark } from "../../core/ports/source.ts";
import type { Clock, Timer } from "../../core/time/clock.ts";

export interface ConsumerCommitParts {
  readonly clock: Clock;
  /** Resolves when the broker has them. */
  readonly commit: (marks: readonly AckMark[]) => Promise<unknown>;
  /** Between the beginnings of two commits; 0: each position is told before `done` resolves. */
  readonly intervalMs: number;
}

export class ConsumerCommits {
  readonly #p: ConsumerCommitParts;
  #marks = new Map<number, bigint>();
  #running: Promise<void> | null = null;
  #timer: Timer | null = null;
  #begunAt = Number.NEGATIVE_INFINITY;
  #stopped = false;

  constructor(parts: ConsumerCommitParts) {
    this.#p = parts;
  }

  /** Everything of the stream below `next` is done. Null: there is nothing to wait for. */
  done(stream: number, next: bigint): Promise<void> | null {
    this.#marks.set(stream, next);
    if (this.#p.intervalMs === 0) return this.flush();
    this.#later();
    return null;
  }

  /** Nothing is told of them any more. */
  forget(streams: readonly number[]): void {
    for (const stream of streams) this.#marks.delete(stream);
  }

  /** Resolves when everything that was done by now was told, or could not be. Never rejects. */
  async flush(): Promise<void> {
    if (this.#running !== null) await this.#running;
    // One that began meanwhile has everything.
    if (this.#running !== null) await this.#running;
    else if (this.#marks.size > 0) await this.#commit();
  }

  /** Nothing is told by itself any more. */
  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#timer = null;
  }

  #later(): void {
    if (this.#stopped || this.#timer !== null || this.#running !== null) return;
    const wait = this.#begunAt + this.#p.intervalMs - this.#p.clock.monotonic();
    if (wait <= 0) {
      void this.#commit();
      return;
    }
    this.#timer = this.#p.clock.after(wait, () => {
      this.#timer = null;
      if (this.#running === null) void this.#commit();
    });
  }

  #commit(): Promise<void> {
    const told = this.#marks;
    this.#marks = new Map();
    this.#begunAt = this.#p.clock.monotonic();
    const marks = [...told].map(([stream, next]) => ({ stream, next }));
    const again = () => {
      this.#begunAt = this.#p.clock.monotonic();
      // A later position says the same and more.
      for (const [stream, next] of told) if (!this.#marks.has(stream)) this.#marks.set(stream, next);
    };
    const running = this.#p
      .commit(marks)
      .catch(again)
      .then(() => {
        this.#running = null;
        if (this.#marks.size > 0 && this.#p.intervalMs > 0) this.#later();
      });
    this.#running = running;
    return running;
  }
}

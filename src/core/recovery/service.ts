/**
 * Recovery for as long as a process runs: it looks at what sinks lack, fills what it may have, and rests. While it rests
 * it holds nothing: whatever a look or a round opens it closes again. One that finds nothing to do looks less often.
 */
import { asFailure, Failure, toWire } from "../failure/failure.ts";
import type { Observer } from "../ports/observer.ts";
import type { Chance } from "../time/chance.ts";
import { type Clock, sleep } from "../time/clock.ts";

export interface Outlook {
  /** Positions that a round could fill now. */
  readonly free: bigint;
  /** Those that are nobody's to bring but recovery's; with `free` those that others of its kind are at. */
  readonly behind: bigint;
  /** Sinks whose coverage cannot be read now. */
  readonly away: ReadonlyMap<string, Failure>;
}

export interface Round {
  readonly filled: bigint;
  /** What kept the rest from being filled; null: nothing is left, or others are at it. */
  readonly failure: Failure | null;
}

export interface ServiceOptions {
  /** Before the first look. */
  readonly firstMs: number;
  readonly pollMs: number;
  readonly mostMs: number;
  /** Ends once nothing is behind, or where a round brings nothing. */
  readonly untilRecovered: boolean;
}

export interface ServiceParts<L extends Outlook> {
  readonly clock: Clock;
  readonly chance: Chance;
  readonly observer: Observer;
  readonly look: () => Promise<L>;
  /** Until what the outlook has is filled, or cannot be. */
  readonly fill: (outlook: L) => Promise<Round>;
}

/** Of a pause, by chance to either side: processes that were started together do not look together for ever. */
const JITTER = 0.2;

export class RecoveryService<L extends Outlook> {
  readonly #o: ServiceOptions;
  readonly #p: ServiceParts<L>;
  readonly #life = new AbortController();
  /** Looks in a row of which nothing came. */
  #quiet = 0;

  constructor(options: ServiceOptions, parts: ServiceParts<L>) {
    this.#o = options;
    this.#p = parts;
  }

  /** Begins nothing more. A round that is under way is ended by whoever runs it. */
  stop(): void {
    this.#life.abort(new Failure("internal.cancelled", "recovery was stopped"));
  }

  /** Rejects only where it is to end by itself and cannot fill what is behind. */
  async run(): Promise<void> {
    await this.#rest(this.#o.firstMs);
    while (!this.#life.signal.aborted) {
      const ended = await this.#turn();
      if (ended) return;
      if (this.#quiet === 0) continue;
      const ms = Math.min(this.#o.mostMs, this.#o.pollMs * 2 ** Math.min(this.#quiet - 1, 30));
      await this.#rest(ms * (1 - JITTER + 2 * JITTER * this.#p.chance.next()));
    }
  }

  /** True: it has come to its end. */
  async #turn(): Promise<boolean> {
    const outlook = await this.#look();
    if (outlook === null || this.#life.signal.aborted) return false;
    if (outlook.free > 0n) return this.#fill(outlook);
    this.#quiet++;
    return this.#isDone(outlook);
  }

  #isDone({ behind, away }: Outlook): boolean {
    if (!this.#o.untilRecovered || behind > 0n) return false;
    const [unseen] = away.values();
    // What nobody can see is not there.
    if (unseen !== undefined) throw unseen;
    return true;
  }

  /** Null: it failed, which is told. */
  async #look(): Promise<L | null> {
    try {
      return await this.#p.look();
    } catch (e) {
      const failure = asFailure(e);
      if (this.#o.untilRecovered && !failure.retry) throw failure;
      this.#p.observer.emit({ e: "recovery.blind", failure: toWire(failure) });
      this.#quiet++;
      return null;
    }
  }

  async #fill(outlook: L): Promise<boolean> {
    const { observer, clock, fill } = this.#p;
    const begun = clock.monotonic();
    observer.emit({ e: "recovery.began", positions: outlook.free });
    const { filled, failure } = await fill(outlook).catch((e) => ({ filled: 0n, failure: asFailure(e) }));
    const told = failure === null ? null : toWire(failure);
    observer.emit({ e: "recovery.rests", filled, failure: told, ms: clock.monotonic() - begun });
    if (filled > 0n) this.#quiet = 0;
    else this.#quiet++;
    if (filled === 0n && failure !== null && this.#o.untilRecovered && !this.#life.signal.aborted)
      throw failure;
    return false;
  }

  async #rest(ms: number): Promise<void> {
    if (ms > 0) await sleep(this.#p.clock, ms, this.#life.signal).catch(() => {});
  }
}

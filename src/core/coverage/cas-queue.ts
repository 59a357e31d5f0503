/**
 * Turns changes of the coverage state into compare-and-swaps of its object. Calls made while a write is under way
 * go together in the next one. A write that was lost is repeated on the newer state. One whose outcome is not
 * known is settled by the ring of writers' tags; if its tag is not there the changes are applied once more, which
 * they bear (see changes.ts), also when the first write lands late.
 *
 * A caller is answered only by the round that settled its change: an answer or refusal that was worked out on a
 * state that turned out old is forgotten with it.
 */
import { xxh32 } from "../compression/xxh32.ts";
import { asFailure, Failure } from "../failure/failure.ts";
import type { VersionedStore } from "../ports/versioned-store.ts";
import { type Clock, sleep } from "../time/clock.ts";
import type { Change } from "./changes.ts";
import { type CoverageState, EMPTY_STATE, WRITERS_KEPT } from "./state.ts";
import { encodeState, parseState } from "./state-json.ts";

export interface CasQueueOptions {
  readonly instance: string;
  /** Shortest time between two writes of the object, ms. */
  readonly minIntervalMs: number;
  readonly versions: VersionedStore;
  readonly clock: Clock;
}

interface Pending {
  /** Applies the change and keeps its answer; throws to refuse. */
  readonly apply: (state: CoverageState) => Applied;
  readonly fail: (f: Failure) => void;
}

interface Applied {
  readonly state: CoverageState;
  readonly done: () => void;
}

interface Round {
  readonly next: CoverageState;
  readonly finish: () => void;
}

/** Writes that are lost in a row, with a newer state every time, before something must be wrong. */
const MAX_ROUNDS = 100;
/**
 * A writer who has lost so often in a row is one of many: it steps aside after each further loss, for a while of its own,
 * up to so many times as long as the lost round took. Else most of what many write at the same time is lost, and the slowest
 * of them for ever. Not sooner: of a few writers each gets through soon, and a pause would only hold their sets up.
 */
const ASIDE_AFTER = 8;
const MOST_ASIDE = 8;
const LONGEST_ASIDE_MS = 1_000;

export class CasQueue {
  readonly #o: CasQueueOptions;
  #state: CoverageState = EMPTY_STATE;
  #version: number | null = null;
  #queue: Pending[] = [];
  #writing = false;
  #lastWrite = Number.NEGATIVE_INFINITY;
  #serial = 0;

  constructor(options: CasQueueOptions) {
    this.#o = options;
  }

  /** The state as this process last saw or wrote it. */
  get state(): CoverageState {
    return this.#state;
  }

  /** Resolves when the change is durable, or with what it answers where it changes nothing. */
  change<T>(change: Change<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#queue.push({
        apply: (state) => {
          const { state: next, answer } = change(state);
          return { state: next, done: () => resolve(answer) };
        },
        fail: reject,
      });
      if (!this.#writing) void this.#writeAll();
    });
  }

  async reload(): Promise<void> {
    const found = await this.#o.versions.read();
    this.#version = found?.version ?? null;
    this.#state = found === null ? EMPTY_STATE : parseState(found.bytes, found.name, found.version);
  }

  async #writeAll(): Promise<void> {
    this.#writing = true;
    while (this.#queue.length > 0) await this.#writeBatch();
    this.#writing = false;
  }

  async #writeBatch(): Promise<void> {
    let batch: Pending[] = [];
    try {
      await this.#pace();
      batch = this.#queue.splice(0);
      await this.#rounds(batch);
    } catch (e) {
      const failure = asFailure(e);
      for (const p of batch) p.fail(failure);
    }
  }

  async #pace(): Promise<void> {
    const wait = this.#lastWrite + this.#o.minIntervalMs - this.#o.clock.monotonic();
    if (wait > 0) await sleep(this.#o.clock, wait);
  }

  /** Ms. Chance by the writer's name and count, so that a simulated run is the same each time. */
  #aside(lostMs: number): number {
    const tag = new TextEncoder().encode(`${this.#o.instance}.${this.#serial}`);
    const most = Math.min(LONGEST_ASIDE_MS, lostMs * MOST_ASIDE);
    return (xxh32(tag, 0, tag.length) / 2 ** 32) * most;
  }

  async #rounds(batch: readonly Pending[]): Promise<void> {
    /** Writes of this batch that may have been applied, by tag. */
    const unknown = new Map<string, Round>();
    let lostMs = 0;
    for (let n = 0; n < MAX_ROUNDS; n++) {
      if (n > ASIDE_AFTER) await sleep(this.#o.clock, this.#aside(lostMs));
      if (n > 0) await this.#pace();
      const landed = [...unknown].find(([tag]) => this.#state.writers.includes(tag));
      if (landed !== undefined) return landed[1].finish();
      const round = applyAll(this.#state, batch);
      if (round.next === this.#state) return round.finish();
      const tag = `${this.#o.instance}.${this.#serial++}`;
      const begun = this.#o.clock.monotonic();
      const outcome = await this.#swap(round.next, tag);
      if (outcome === "won") return round.finish();
      if (outcome === "unknown") unknown.set(tag, round);
      await this.reload();
      lostMs = this.#o.clock.monotonic() - begun;
    }
    throw new Failure("coverage.unavailable", `${MAX_ROUNDS} writes in a row were lost to others`, {
      at: this.#o.versions.place,
    });
  }

  async #swap(next: CoverageState, tag: string): Promise<"won" | "lost" | "unknown"> {
    const serial = (this.#version ?? 0) + 1;
    // Every write is a sign of life.
    const owners = next.owners.map((o) => (o.instance === this.#o.instance ? { ...o, beat: o.beat + 1 } : o));
    const written = { ...next, serial, owners, writers: [...next.writers, tag].slice(-WRITERS_KEPT) };
    const outcome = await this.#o.versions.write(this.#version, encodeState(written), tag);
    this.#lastWrite = this.#o.clock.monotonic();
    if (outcome === "won") {
      this.#state = written;
      this.#version = serial;
    }
    return outcome;
  }
}

/** A change that is refused (it throws) fails alone and leaves no trace; the others go on. */
function applyAll(state: CoverageState, batch: readonly Pending[]): Round {
  let next = state;
  const finish: (() => void)[] = [];
  for (const p of batch) {
    try {
      const applied = p.apply(next);
      next = applied.state;
      finish.push(applied.done);
    } catch (e) {
      const failure = asFailure(e);
      finish.push(() => p.fail(failure));
    }
  }
  return {
    next,
    finish: () => {
      for (const f of finish) f();
    },
  };
}

/**
 * A simulated folder of two-phase objects, shared by all processes of a world. Sealed bytes are durable; what is
 * not sealed when its process dies stays behind as a stray staged object until somebody sweeps it.
 */
import { Failure } from "../../src/core/failure/failure.ts";
import type { ObjectStore, StagedObject, Target, TargetState } from "../../src/core/ports/object-store.ts";
import type { SeededChance } from "./chance.ts";
import type { SimProcess, SimTime } from "./clock.ts";

interface Staged {
  chunks: Uint8Array[];
  bytes: number;
  sealed: boolean;
}

export interface StoreFaults {
  /** Probability that a call fails with a retryable failure and no effect. */
  fail: number;
  /** Probability that a call takes effect and then fails. */
  failAfter: number;
  /** Until this simulated time every append fails: a full disk. */
  fullUntil: number;
}

export class SimFolder {
  readonly staged = new Map<string, Staged>();
  readonly published = new Map<string, Uint8Array>();
  readonly faults: StoreFaults = { fail: 0, failAfter: 0, fullUntil: -1 };
  #serial = 0;
  readonly #time: SimTime;
  readonly #chance: SeededChance;

  constructor(time: SimTime, chance: SeededChance) {
    this.#time = time;
    this.#chance = chance;
  }

  /** The folder as one process sees it. Calls of a dead process never return. */
  handle(owner: SimProcess): ObjectStore {
    const call = <T>(effect: () => T): Promise<T> => this.#call(owner, effect);
    return {
      place: "sim:/lake",
      stage: (key) => call(() => this.#stage(key, call)),
      probe: (t) => call(() => this.#probe(t)),
      publish: (t) => call(() => this.#publish(t)),
      discard: (t) => call(() => void this.staged.delete(t.staging)),
      sweep: (keep) =>
        call(() => {
          const gone = [...this.staged.keys()].filter((name) => !keep.has(name));
          for (const name of gone) this.staged.delete(name);
          return gone;
        }),
    };
  }

  #call<T>(owner: SimProcess, effect: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      const clock = this.#time.clock(owner);
      clock.after(this.#chance.next() * 4, () => {
        if (this.#chance.next() < this.faults.fail) return reject(outage());
        let value: T;
        try {
          value = effect();
        } catch (e) {
          return reject(e);
        }
        const lostAnswer = this.#chance.next() < this.faults.failAfter;
        clock.after(this.#chance.next() * 4, () => (lostAnswer ? reject(outage()) : resolve(value)));
      });
    });
  }

  #stage(key: string, call: <T>(effect: () => T) => Promise<T>): StagedObject {
    const name = `staged-${this.#serial++}`;
    const object: Staged = { chunks: [], bytes: 0, sealed: false };
    this.staged.set(name, object);
    return {
      key,
      append: (bytes) => {
        // An append that fails has no effect here; the writer appends the same bytes again.
        const copy = bytes.slice();
        if (this.#time.nowMs < this.faults.fullUntil) return Promise.reject(full());
        object.chunks.push(copy);
        object.bytes += copy.length;
        return Promise.resolve();
      },
      seal: (rows) =>
        call(() => {
          object.sealed = true;
          return { key, staging: name, bytes: object.bytes, rows };
        }),
      abort: () => call(() => void this.staged.delete(name)),
    };
  }

  #probe(t: Target): TargetState {
    if (this.published.has(t.key)) return "published";
    return this.staged.get(t.staging)?.sealed ? "staged" : "absent";
  }

  #publish(t: Target): void {
    if (this.published.has(t.key)) return;
    const object = this.staged.get(t.staging);
    if (!object?.sealed) throw new Failure("store.absent", `neither ${t.key} nor its staged bytes are there`);
    const all = new Uint8Array(object.bytes);
    let at = 0;
    for (const c of object.chunks) {
      all.set(c, at);
      at += c.length;
    }
    this.published.set(t.key, all);
    this.staged.delete(t.staging);
  }
}

function outage(): Failure {
  return new Failure("store.unavailable", "the simulated store did not answer", { retry: true });
}

function full(): Failure {
  return new Failure("store.full", "the simulated disk is full", { retry: true });
}

/**
 * Since when the records of a stream are judged as they are now: one small object beside raw's coverage, changed by
 * compare-and-swap alone. What is written there is durable before a record is judged by it.
 */
import { Failure } from "../failure/failure.ts";
import type { VersionedStore } from "../ports/versioned-store.ts";
import type { StreamKey } from "../records/stream.ts";
import { type DedupBookState, encodeDedupBook, type PlanEpoch, parseDedupBook } from "./dedup-json.ts";

export interface DedupBookParts {
  readonly versions: VersionedStore;
  /** Unique to this process; part of its tags. */
  readonly instance: string;
  /** So many bytes of chance, in hexadecimal. */
  readonly secret: (bytes: number) => string;
}

export interface FoundEpoch {
  readonly since: bigint;
  readonly until: bigint | null;
  readonly secret: string;
}

/** Swaps that are lost in a row before something must be wrong. */
const MAX_ROUNDS = 100;
const SECRET_BYTES = 16;
/** Behind every position. */
const NEVER = 2n ** 63n - 1n;

interface Known {
  /** Null: nothing is stored. */
  readonly version: number | null;
  readonly state: DedupBookState;
}

export class DedupBook {
  readonly #p: DedupBookParts;
  #prepared = false;
  #serial = 0;
  #last: Promise<unknown> = Promise.resolve();

  constructor(parts: DedupBookParts) {
    this.#p = parts;
  }

  /**
   * The stream's records from here on are judged by this plan: durably, once this resolves. For its owner. `gone`: raw has
   * nothing any more of what is before it, so it counts no more; null: raw has what counts.
   */
  enter(stream: StreamKey, from: bigint, plan: string, gone: bigint | null): Promise<FoundEpoch> {
    const turn = this.#last.then(() => this.#enter(stream, from, plan, gone));
    this.#last = turn.catch(() => {});
    return turn;
  }

  /**
   * How the record at a position was, or will be judged. Before anything was, none is a duplicate. Throws dedup.other_plan
   * where it was by another plan.
   */
  async look(stream: StreamKey, from: bigint, plan: string): Promise<FoundEpoch> {
    const { state } = await this.#read();
    return found(state, stream, from, plan);
  }

  /** Where other epochs of each stream begin than at its first. */
  async cuts(): Promise<ReadonlyMap<StreamKey, readonly bigint[]>> {
    const { state } = await this.#read();
    return new Map([...state.streams].map(([stream, epochs]) => [stream, epochs.map((e) => e.from)]));
  }

  async #enter(stream: StreamKey, from: bigint, plan: string, gone: bigint | null): Promise<FoundEpoch> {
    if (!this.#prepared) await this.#p.versions.prepare();
    this.#prepared = true;
    // Never by what was known before: the stream may have been another's, with another plan, meanwhile.
    let now = await this.#read();
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const epochs = now.state.streams.get(stream) ?? [];
      const reach = reachOf(epochs, from, plan, gone);
      if (reach === null) return found(now.state, stream, from, plan);
      // What an earlier life began further on, no sink has: live records come before any sink covers them.
      const before = epochs.filter((e) => e.from < from);
      const next = entered(now.state, stream, [...before, { from, reach, plan }]);
      const version = (now.version ?? 0) + 1;
      const tag = `${this.#p.instance}.d${this.#serial++}`;
      const outcome = await this.#p.versions.write(now.version, encodeDedupBook(next, version), tag);
      if (outcome === "won") return found(next, stream, from, plan);
      // Whether it was ours that landed or another's: what is there now is judged again.
      now = await this.#read();
    }
    throw new Failure("coverage.unavailable", `${MAX_ROUNDS} writes in a row were lost to others`, {
      at: this.#p.versions.place,
    });
  }

  async #read(): Promise<Known> {
    const stored = await this.#p.versions.read();
    if (stored === null)
      return { version: null, state: { secret: this.#p.secret(SECRET_BYTES), streams: new Map() } };
    const { version } = stored;
    return { version, state: parseDedupBook(stored.bytes, stored.name, version) };
  }
}

/** How far back an epoch reaches that has to begin at a position; null: the one that holds there goes on. */
function reachOf(
  epochs: readonly PlanEpoch[],
  from: bigint,
  plan: string,
  gone: bigint | null,
): bigint | null {
  const here = epochs.findLast((e) => e.from <= from);
  const isOfPlan = here === undefined || here.plan === plan;
  if (!isOfPlan || epochs.at(-1)?.plan !== plan) return from;
  return here === undefined || gone === null || gone <= here.reach ? null : gone;
}

function entered(state: DedupBookState, stream: StreamKey, epochs: readonly PlanEpoch[]): DedupBookState {
  return { ...state, streams: new Map([...state.streams, [stream, epochs]]) };
}

function found({ secret, streams }: DedupBookState, stream: StreamKey, at: bigint, plan: string): FoundEpoch {
  const epochs = streams.get(stream) ?? [];
  const i = epochs.findLastIndex((e) => e.from <= at);
  const [epoch, next] = [epochs[i], epochs[i + 1]];
  const until = next?.from ?? null;
  // Nothing was judged there: all passes.
  if (epoch === undefined) return { since: NEVER, until, secret };
  if (epoch.plan !== plan)
    throw new Failure(
      "dedup.other_plan",
      `records from ${epoch.from} on were judged by another natural key or window`,
      {
        at: stream,
        hint: "Recover them with the contract and the window of that time; records that come now are judged by those of now",
      },
    );
  return { since: epoch.reach, until, secret };
}

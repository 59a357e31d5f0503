/**
 * Since when the records of a stream are judged as they are now: one small object beside raw's coverage, changed by
 * compare-and-swap alone. What is written there is durable before a record is judged by it.
 */
import { Failure } from "../failure/failure.ts";
import type { StreamKey } from "../records/stream.ts";
import { type DedupBookState, encodeDedupBook, type PlanEpoch, parseDedupBook } from "./dedup-json.ts";
import { type BookParts, VersionedBook } from "./versioned-book.ts";

export interface DedupBookParts extends BookParts {
  /** So many bytes of chance, in hexadecimal. */
  readonly secret: (bytes: number) => string;
}

/** From a position on, a stream's records are judged by a plan. */
export interface BegunEpoch {
  readonly stream: StreamKey;
  readonly from: bigint;
  readonly plan: string;
}

export interface FoundEpoch {
  readonly since: bigint;
  readonly until: bigint | null;
  readonly secret: string;
}

const SECRET_BYTES = 16;
/** Behind every position. */
const NEVER = 2n ** 63n - 1n;

export class DedupBook {
  readonly #book: VersionedBook<DedupBookState>;

  constructor({ secret, ...parts }: DedupBookParts) {
    this.#book = new VersionedBook(parts, {
      empty: () => ({ secret: secret(SECRET_BYTES), streams: new Map() }),
      parse: parseDedupBook,
      encode: encodeDedupBook,
    });
  }

  /** As `enter`, of many at once, and with a reach as if raw had all that counts: how far it is, is said when one is entered. */
  async begin(all: readonly BegunEpoch[]): Promise<void> {
    await this.#book.change((now) => {
      const state = all.reduce((s, e) => begun(s, e, null) ?? s, now);
      return state === now ? null : state;
    });
  }

  /**
   * The stream's records from here on are judged by this plan: durably, once this resolves. For its owner. `gone`: raw has
   * nothing any more of what is before it, so it counts no more; null: raw has what counts.
   */
  async enter(stream: StreamKey, from: bigint, plan: string, gone: bigint | null): Promise<FoundEpoch> {
    const state = await this.#book.change((now) => begun(now, { stream, from, plan }, gone));
    return found(state, stream, from, plan);
  }

  /**
   * How the record at a position was, or will be judged. Before anything was, none is a duplicate. Throws dedup.other_plan
   * where it was by another plan.
   */
  async look(stream: StreamKey, from: bigint, plan: string): Promise<FoundEpoch> {
    return found(await this.#book.read(), stream, from, plan);
  }

  /** Where other epochs of each stream begin than at its first. */
  async cuts(): Promise<ReadonlyMap<StreamKey, readonly bigint[]>> {
    const { streams } = await this.#book.read();
    return new Map([...streams].map(([stream, epochs]) => [stream, epochs.map((e) => e.from)]));
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

/** Null: it stays as it is. */
function begun(
  state: DedupBookState,
  { stream, from, plan }: BegunEpoch,
  gone: bigint | null,
): DedupBookState | null {
  const epochs = state.streams.get(stream) ?? [];
  const reach = reachOf(epochs, from, plan, gone);
  if (reach === null) return null;
  // What an earlier life began further on, no sink has: live records come before any sink covers them.
  const before = epochs.filter((e) => e.from < from);
  return { ...state, streams: new Map([...state.streams, [stream, [...before, { from, reach, plan }]]]) };
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
        hint: "`twg recover` takes the contract of their time, where it is known, and not with --replan; the window must be that of their time. `twg inspect duplicates` shows from where on which plan holds",
      },
    );
  return { since: epoch.reach, until, secret };
}

/**
 * Since when the records of a stream are decoded for a sink as they are now: a book beside raw's coverage, with each plan as an
 * object of its own. An epoch is durable before a set is covered whose records were decoded by its plan, so its first position may
 * be lower than what landed, and is never higher.
 */
import type { StreamKey } from "../records/stream.ts";
import { encodePlanBook, type PlanBookState, type PlanSince, parsePlanBook } from "./plan-json.ts";
import { type BookParts, VersionedBook } from "./versioned-book.ts";

/** By which records are decoded. Whoever has the digest has the bytes. */
export interface StoredPlan {
  readonly digest: string;
  readonly bytes: Uint8Array;
}

export interface BegunStream {
  readonly stream: StreamKey;
  /** Of the first record that is decoded by it. */
  readonly from: bigint;
  readonly plan: StoredPlan;
}

/** Epochs of a stream that are remembered, of each sink. */
const MOST_EPOCHS = 100;

export class PlanBook {
  readonly #p: BookParts;
  readonly #book: VersionedBook<PlanBookState>;
  /** By digest: plans that are durable, or about to be. */
  readonly #stored = new Map<string, Promise<void>>();

  constructor(parts: BookParts) {
    this.#p = parts;
    this.#book = new VersionedBook(parts, {
      empty: () => new Map(),
      parse: parsePlanBook,
      encode: encodePlanBook,
    });
  }

  /** From there on records are decoded by these plans for the sink: durably, once this resolves. For the owner of the streams. */
  async enter(sink: string, streams: readonly BegunStream[]): Promise<void> {
    if (entered(await this.#book.read(), sink, streams) === null) return;
    await this.#book.prepare();
    // Before the book names them.
    for (const { plan } of streams) await this.#keep(plan);
    await this.#book.change((now) => entered(now, sink, streams));
  }

  async #keep({ digest, bytes }: StoredPlan): Promise<void> {
    const kept = this.#stored.get(digest) ?? this.#p.versions.putSegment(nameOf(digest), bytes);
    this.#stored.set(digest, kept);
    try {
      await kept;
    } catch (e) {
      this.#stored.delete(digest);
      throw e;
    }
  }

  async read(): Promise<PlanBookState> {
    return await this.#book.read();
  }

  /** Null: it is not there. */
  async plan(digest: string): Promise<Uint8Array | null> {
    return await this.#p.versions.getSegment(nameOf(digest));
  }
}

const nameOf = (digest: string): string => `plan-${digest}`;

/** Null: all of them go on as they are. */
function entered(now: PlanBookState, sink: string, begun: readonly BegunStream[]): PlanBookState | null {
  const streams = new Map(now.get(sink));
  let isNew = false;
  for (const { stream, from, plan } of begun) {
    const epochs = streams.get(stream) ?? [];
    const next = followed(epochs, from, plan.digest);
    if (same(epochs, next)) continue;
    isNew = true;
    streams.set(stream, next);
  }
  return isNew ? new Map([...now, [sink, streams]]) : null;
}

/** What an earlier life began further on, no sink has: live records come before any sink covers them. */
function followed(epochs: readonly PlanSince[], from: bigint, plan: string): readonly PlanSince[] {
  const before = epochs.filter((e) => e.from < from);
  if (before.at(-1)?.plan === plan) return before;
  const all = [...before, { from, plan }];
  return all.length > MOST_EPOCHS ? [{ from: all[0]!.from, plan: null }, ...all.slice(2)] : all;
}

function same(a: readonly PlanSince[], b: readonly PlanSince[]): boolean {
  return a.length === b.length && a.every((e, i) => e.from === b[i]!.from && e.plan === b[i]!.plan);
}

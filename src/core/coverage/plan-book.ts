/**
 * Since when the records of a stream are decoded for a sink as they are now: a book beside raw's coverage, with each plan as an
 * object of its own. An epoch is durable before a set is covered whose records were decoded by its plan, so its first position may
 * be lower than what landed, and is never higher.
 */
import type { Range } from "../ports/coverage.ts";
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
  /** Above it what is not: it was by who had the stream before. Ascending. */
  readonly skip: readonly Range[];
  /** Of the claim of the stream in raw. */
  readonly generation: number;
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
  for (const b of begun) {
    const known = streams.get(b.stream) ?? { generation: 0, epochs: [] };
    // Who had the stream before us, and is late.
    if (b.generation < known.generation) continue;
    const epochs = limited(followed(known.epochs, b));
    if (same(known.epochs, epochs)) continue;
    isNew = true;
    streams.set(b.stream, { generation: b.generation, epochs });
  }
  return isNew ? new Map([...now, [sink, streams]]) : null;
}

/** What is skipped was decoded by who had it: it keeps its plan, where one is known. */
function followed(
  epochs: readonly PlanSince[],
  { from, skip, plan: { digest: plan } }: BegunStream,
): readonly PlanSince[] {
  const next = epochs.filter((e) => e.from < from);
  let at = from;
  for (const s of skip.filter((r) => r.from >= from)) {
    const held = epochs.findLast((e) => e.from <= s.from);
    if (held === undefined) continue;
    next.push({ from: at, plan }, { from: s.from, plan: held.plan });
    next.push(...epochs.filter((e) => e.from > s.from && e.from < s.next));
    at = s.next;
  }
  return joined([...next, { from: at, plan }]);
}

/** Of two that begin at one position the later one holds; neighbours of one plan are one. */
function joined(epochs: readonly PlanSince[]): readonly PlanSince[] {
  const kept = epochs.filter((e, i) => epochs[i + 1]?.from !== e.from);
  return kept.filter((e, i) => i === 0 || kept[i - 1]!.plan !== e.plan);
}

function limited(epochs: readonly PlanSince[]): readonly PlanSince[] {
  if (epochs.length <= MOST_EPOCHS) return epochs;
  const kept = epochs.slice(epochs.length - MOST_EPOCHS + 1);
  return [{ from: epochs[0]!.from, plan: null }, ...kept];
}

function same(a: readonly PlanSince[], b: readonly PlanSince[]): boolean {
  return a.length === b.length && a.every((e, i) => e.from === b[i]!.from && e.plan === b[i]!.plan);
}

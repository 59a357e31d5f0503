/**
 * Since when the records of a stream are decoded for a sink as they are now: a book beside raw's coverage, with each plan as an
 * object of its own. An epoch is durable before a set is covered whose records were decoded by its plan, so its first position may
 * be lower than what landed, and is never higher.
 */
import { Failure } from "../failure/failure.ts";
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

/** Epochs of a stream that are remembered, of each sink; fewer where those of all streams have no room, down to the last two. */
const MOST_EPOCHS = 100;
const LEAST_EPOCHS = 2;

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
      encode: encodeFitting,
    });
  }

  /**
   * From there on records are decoded by these plans for the sink: durably, once this resolves. For the owner of the streams. A failure:
   * so many streams have no room; the book stays as it is, and what it says of them, or does not say, is that of before.
   */
  async enter(sink: string, streams: readonly BegunStream[]): Promise<Failure | null> {
    const now = await this.#book.read();
    if (entered(now, sink, streams) === null) return null;
    await this.#book.prepare();
    const named = namedIn(now);
    // Before the book names them.
    for (const { plan } of streams) if (!named.has(plan.digest)) await this.#keep(plan);
    try {
      await this.#book.change((state) => entered(state, sink, streams));
      return null;
    } catch (e) {
      if (isTooLarge(e)) return e;
      throw e;
    }
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

const isTooLarge = (e: unknown): e is Failure => e instanceof Failure && e.code === "coverage.too_large";

/** Plans that are durable, since the book names them. */
function namedIn(state: PlanBookState): ReadonlySet<string | null> {
  const streams = [...state.values()].flatMap((of) => [...of.values()]);
  return new Set(streams.flatMap(({ epochs }) => epochs.map((e) => e.plan)));
}

/** Of each stream as many epochs as all of them have room for. Throws coverage.too_large where two are too many. */
function encodeFitting(state: PlanBookState, serial: number): Uint8Array {
  for (let most = MOST_EPOCHS; ; most = Math.max(LEAST_EPOCHS, Math.floor(most / 2)))
    try {
      return encodePlanBook(withMost(state, most), serial);
    } catch (e) {
      if (most === LEAST_EPOCHS || !isTooLarge(e)) throw e;
    }
}

const withMost = (state: PlanBookState, most: number): PlanBookState =>
  new Map(
    [...state].map(([sink, streams]) => {
      const fewer = [...streams].map(
        ([stream, of]) => [stream, { ...of, epochs: limited(of.epochs, most) }] as const,
      );
      return [sink, new Map(fewer)];
    }),
  );

/** Null: all of them go on as they are. */
function entered(now: PlanBookState, sink: string, begun: readonly BegunStream[]): PlanBookState | null {
  const streams = new Map(now.get(sink));
  let isNew = false;
  for (const b of begun) {
    const known = streams.get(b.stream) ?? { generation: 0, epochs: [] };
    // Who had the stream before us, and is late.
    if (b.generation < known.generation) continue;
    const epochs = limited(followed(known.epochs, b), MOST_EPOCHS);
    // A claim alone is written down, too: nobody from before it may change anything any more.
    if (b.generation === known.generation && same(known.epochs, epochs)) continue;
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
    const inside = epochs.filter((e) => e.from > s.from && e.from < s.next);
    if (held === undefined && inside.length === 0) continue;
    next.push({ from: at, plan });
    if (held !== undefined) next.push({ from: s.from, plan: held.plan });
    next.push(...inside);
    at = s.next;
  }
  return joined([...next, { from: at, plan }]);
}

/** Of two that begin at one position the later one holds; neighbours of one plan are one. */
function joined(epochs: readonly PlanSince[]): readonly PlanSince[] {
  const kept = epochs.filter((e, i) => epochs[i + 1]?.from !== e.from);
  return kept.filter((e, i) => i === 0 || kept[i - 1]!.plan !== e.plan);
}

function limited(epochs: readonly PlanSince[], most: number): readonly PlanSince[] {
  if (epochs.length <= most) return epochs;
  const kept = epochs.slice(epochs.length - most + 1);
  return [{ from: epochs[0]!.from, plan: null }, ...kept];
}

function same(a: readonly PlanSince[], b: readonly PlanSince[]): boolean {
  return a.length === b.length && a.every((e, i) => e.from === b[i]!.from && e.plan === b[i]!.plan);
}

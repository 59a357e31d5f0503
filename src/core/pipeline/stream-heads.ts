/**
 * From where on each stream of a sink is live ingest's own: below it all that the primary sink has is settled here,
 * covered or given up, and recovery may have what is missing (decision 0033).
 */
import { normalRanges, type Ranges, subtractRanges, unionRanges } from "../coverage/ranges.ts";
import type { Span, StreamKey } from "../records/stream.ts";

interface Progress {
  /** Everything below was settled at the claim, or is of no concern here. */
  floor: bigint;
  /** Landed in the primary sink, from the floor on. */
  landed: Ranges;
  /** Covered here, or missed. */
  settled: Ranges;
}

export class StreamHeads {
  readonly #streams = new Map<StreamKey, Progress>();

  /** The stream was claimed and is read from `position` on. */
  begin(stream: StreamKey, position: bigint): void {
    this.#streams.set(stream, { floor: position, landed: [], settled: [] });
  }

  forget(streams: Iterable<StreamKey>): void {
    for (const s of streams) this.#streams.delete(s);
  }

  /** The primary sink has covered them. */
  landed(spans: readonly Span[]): void {
    for (const s of spans) {
      const of = this.#streams.get(s.stream);
      if (of === undefined) continue;
      const above = subtractRanges(normalRanges([s]), [{ from: 0n, next: of.floor }]);
      of.landed = unionRanges(of.landed, above);
    }
  }

  /** They are covered here, or will never be by us. */
  settled(spans: readonly Span[]): void {
    for (const s of spans) {
      const of = this.#streams.get(s.stream);
      if (of !== undefined) of.settled = unionRanges(of.settled, normalRanges([s]));
    }
  }

  /** A set that holds them waits for its end: what was missed before was given once more. */
  open(spans: readonly Span[]): void {
    for (const s of spans) {
      const of = this.#streams.get(s.stream);
      if (of !== undefined) of.settled = subtractRanges(of.settled, normalRanges([s]));
    }
  }

  /** Of the streams that were claimed since they began, as far as they are settled by now. What is below is forgotten. */
  take(claimed: ReadonlySet<StreamKey>): ReadonlyMap<StreamKey, bigint> {
    const mine = [...this.#streams].filter(([stream]) => claimed.has(stream));
    return new Map(mine.map(([stream, of]) => [stream, headOf(of)]));
  }
}

function headOf(of: Progress): bigint {
  const [first] = subtractRanges(of.landed, of.settled);
  const top = of.landed.at(-1)?.next ?? of.floor;
  const head = first?.from ?? top;
  if (head <= of.floor) return of.floor;
  of.floor = head;
  const below = [{ from: 0n, next: head }];
  of.landed = subtractRanges(of.landed, below);
  of.settled = subtractRanges(of.settled, below);
  return head;
}

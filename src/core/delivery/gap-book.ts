/**
 * What each sink beside the primary one lacks, and since when, while it is at work: for metrics and the status page. What is on its
 * way counts too; it is young. What was there before this process counts from when the process met it.
 */
import { normalRanges, type Ranges, subtractRanges, unionRanges } from "../coverage/ranges.ts";
import type { Span, StreamKey } from "../records/stream.ts";

/** Of one stream what a sink lacks. */
export interface StreamGaps {
  readonly stream: StreamKey;
  /** From the first to the last position that the primary sink has. */
  readonly from: bigint;
  readonly next: bigint;
  readonly ranges: Ranges;
}

export interface SinkGaps {
  readonly gaps: number;
  readonly positions: bigint;
  /** How long the oldest of them has been in the primary sink; null: there is none. */
  readonly oldestMs: number | null;
  /** The largest first. */
  readonly streams: readonly StreamGaps[];
}

interface Mark {
  next: bigint;
  readonly at: number;
}

interface Known {
  covered: Ranges;
  /** When the primary sink came to a position, ascending in both. */
  marks: Mark[];
  /** Landings within so many ms have one mark, of the first of them. */
  resolutionMs: number;
  /** The first position that some sink lacks, of those that were asked for since `told`; null: none was. */
  lacked: bigint | null;
  /** End of what was there when it began, and when that was. */
  before: bigint;
  begunAt: number;
}

/** Of a stream; where there are more they are made coarser, so that ages are too old by little and never too young. */
const MOST_MARKS = 64;

export class GapBook {
  readonly #streams = new Map<StreamKey, Known>();

  /** A stream that is known already keeps what is known. `at`: monotonic, ms. */
  begin(stream: StreamKey, at: number): void {
    if (this.#streams.has(stream)) return;
    this.#streams.set(stream, {
      ...{ covered: [], marks: [], resolutionMs: 0, lacked: null, before: 0n, begunAt: at },
    });
  }

  /** What the primary sink had of a stream when it began. */
  had(stream: StreamKey, covered: Ranges): void {
    const known = this.#streams.get(stream);
    if (known === undefined) return;
    known.covered = unionRanges(known.covered, normalRanges(covered));
    if (known.before === 0n) known.before = covered.at(-1)?.next ?? 0n;
  }

  landed(spans: readonly Span[], at: number): void {
    for (const { stream, from, next } of spans) {
      const known = this.#streams.get(stream);
      if (known === undefined) continue;
      known.covered = unionRanges(known.covered, [{ from, next }]);
      mark(known, { next, at });
      if (known.marks.length <= MOST_MARKS) continue;
      const { marks } = known;
      known.resolutionMs = Math.max(2 * known.resolutionMs, (4 * (at - marks[0]!.at)) / MOST_MARKS);
      known.marks = [];
      for (const m of marks) mark(known, m);
    }
  }

  /** It is known better how long the primary sink has had what was there before. */
  older(stream: StreamKey, since: number): void {
    const known = this.#streams.get(stream);
    if (known !== undefined) known.begunAt = Math.min(known.begunAt, since);
  }

  /** Whether the position was there before this process met the stream. */
  wasThere(stream: StreamKey, position: bigint): boolean {
    return position < (this.#streams.get(stream)?.before ?? 0n);
  }

  /** All sinks were asked for: nobody will ask how old positions are that all of them have. */
  told(): void {
    for (const known of this.#streams.values()) {
      const { lacked } = known;
      if (lacked !== null) known.marks = known.marks.filter((m) => m.next > lacked);
      if (known.marks.length <= 1) known.resolutionMs = 0;
      known.lacked = null;
    }
  }

  forget(stream: StreamKey): void {
    this.#streams.delete(stream);
  }

  /** `has`: what the sink has of a stream; null: it is not known. */
  of(has: (stream: StreamKey) => Ranges | null, now: number): SinkGaps {
    const streams: StreamGaps[] = [];
    let oldest: number | null = null;
    for (const [stream, known] of this.#streams) {
      const { covered, marks } = known;
      const own = has(stream);
      if (own === null || covered.length === 0) continue;
      const ranges = subtractRanges(covered, own);
      const [first] = ranges;
      const lacked = first?.from ?? covered.at(-1)!.next;
      known.lacked = known.lacked === null || lacked < known.lacked ? lacked : known.lacked;
      if (first === undefined) continue;
      streams.push({ stream, from: covered[0]!.from, next: covered.at(-1)!.next, ranges });
      const marked = marks.find((m) => m.next > first.from)?.at ?? now;
      const since = first.from < known.before ? known.begunAt : marked;
      oldest = oldest === null ? since : Math.min(oldest, since);
    }
    streams.sort((a, b) => Number(sizeOf(b.ranges) - sizeOf(a.ranges)));
    return {
      gaps: streams.reduce((n, s) => n + s.ranges.length, 0),
      positions: streams.reduce((n, s) => n + sizeOf(s.ranges), 0n),
      oldestMs: oldest === null ? null : now - oldest,
      streams,
    };
  }
}

const sizeOf = (ranges: Ranges): bigint => ranges.reduce((n, r) => n + (r.next - r.from), 0n);

function mark({ marks, resolutionMs }: Known, { next, at }: Mark): void {
  const last = marks.at(-1);
  if (last !== undefined && last.next >= next) return;
  if (last !== undefined && at - last.at < resolutionMs) last.next = next;
  else marks.push({ next, at });
}

/**
 * When a set of one sink may become visible: once what it stands for is covered in every sink that it comes after. Sinks
 * are numbers. Positions that such a sink will never have, as far as this run can tell, are remembered too: a set
 * that waits for one of them waits for nothing.
 */
import { normalRanges, overlapsRange, type Ranges, subtractRanges, unionRanges } from "../coverage/ranges.ts";
import type { Span, StreamKey } from "../records/stream.ts";

export type GateAnswer = "open" | "shut" | "never";

class SinkRanges {
  readonly #ranges = new Map<StreamKey, Ranges>();

  of(stream: StreamKey): Ranges {
    return this.#ranges.get(stream) ?? [];
  }

  known(stream: StreamKey): Ranges | undefined {
    return this.#ranges.get(stream);
  }

  add(stream: StreamKey, ranges: Ranges): void {
    this.#ranges.set(stream, unionRanges(this.of(stream), normalRanges(ranges)));
  }

  forget(stream: StreamKey): void {
    this.#ranges.delete(stream);
  }
}

export class CoverageGate {
  readonly #covered = new Map<number, SinkRanges>();
  readonly #missed = new Map<number, SinkRanges>();

  /** [from, next) is durable in the sink. */
  cover(sink: number, spans: readonly Span[]): void {
    for (const s of spans) this.#of(this.#covered, sink).add(s.stream, [s]);
  }

  /** The sink let it go by. */
  miss(sink: number, spans: readonly Span[]): void {
    for (const s of spans) this.#of(this.#missed, sink).add(s.stream, [s]);
  }

  /** What is covered in the sink, as its store says; what it missed is read again. */
  begin(sink: number, stream: StreamKey, covered: Ranges): void {
    this.forget(sink, stream);
    this.#of(this.#covered, sink).add(stream, covered);
  }

  forget(sink: number, stream: StreamKey): void {
    this.#of(this.#covered, sink).forget(stream);
    this.#of(this.#missed, sink).forget(stream);
  }

  /** Null: the sink was not claimed yet, or lost the stream. */
  coveredIn(sink: number, stream: StreamKey): Ranges | null {
    return this.#covered.get(sink)?.known(stream) ?? null;
  }

  answer(after: readonly number[], spans: readonly Span[]): GateAnswer {
    let open = true;
    for (const sink of after) {
      for (const s of spans) {
        const left = subtractRanges([s], this.#of(this.#covered, sink).of(s.stream));
        if (left.length === 0) continue;
        open = false;
        const missed = this.#of(this.#missed, sink).of(s.stream);
        if (left.some((l) => overlapsRange(missed, l))) return "never";
      }
    }
    return open ? "open" : "shut";
  }

  #of(map: Map<number, SinkRanges>, sink: number): SinkRanges {
    const known = map.get(sink) ?? new SinkRanges();
    map.set(sink, known);
    return known;
  }
}

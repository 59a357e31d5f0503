/**
 * Raw that is about to be removed while a sink still lacks it. What was there before this process is as old as its file says,
 * which is asked once for each oldest gap, of one stream at a time: an answer may take all of the index.
 */
import type { GapBook, SinkGaps } from "../delivery/gap-book.ts";
import type { RawRetention } from "../ports/coverage.ts";
import type { Observer } from "../ports/observer.ts";
import type { Clock } from "../time/clock.ts";

/** Of the retention, that is left when it is told. */
const LEFT = 1 / 4;

export class Expiry {
  readonly #retention: RawRetention;
  readonly #book: GapBook;
  readonly #clock: Clock;
  readonly #observer: Observer;
  /** By sink and stream, the position that was asked for last; null: without an answer. */
  readonly #asked = new Map<string, bigint | null>();
  #asking = false;

  constructor(retention: RawRetention, book: GapBook, clock: Clock, observer: Observer) {
    this.#retention = retention;
    this.#book = book;
    this.#clock = clock;
    this.#observer = observer;
  }

  /** True if so, and then it is told. */
  look(sink: string, { oldestMs, positions, streams }: SinkGaps): boolean {
    this.#ask(sink, streams);
    const { retentionMs } = this.#retention;
    const leftMs = retentionMs - (oldestMs ?? 0);
    if (oldestMs === null || leftMs > retentionMs * LEFT) return false;
    this.#observer.emit({ e: "sink.gap_expiring", sink, leftMs: Math.max(0, leftMs), positions });
    return true;
  }

  #ask(sink: string, streams: SinkGaps["streams"]): void {
    if (this.#asking) return;
    const open = streams
      .map(({ stream, ranges }) => ({ stream, position: ranges[0]?.from ?? 0n, key: `${sink}\n${stream}` }))
      .filter((o) => this.#book.wasThere(o.stream, o.position) && this.#asked.get(o.key) !== o.position);
    const next = open.find((o) => !this.#asked.has(o.key)) ?? open[0];
    if (next === undefined) return;
    const { stream, position, key } = next;
    this.#asking = true;
    const answered = (known: bigint | null) => {
      this.#asked.set(key, known);
      this.#asking = false;
    };
    void this.#retention.ageOf(stream, position).then(
      (age) => {
        if (age !== null) this.#book.older(stream, this.#clock.monotonic() - age);
        answered(position);
      },
      () => answered(null),
    );
  }
}

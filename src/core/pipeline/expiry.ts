/**
 * Raw that is about to be removed while a sink still lacks it. What was there before this process is as old as its file says,
 * which is asked once for each oldest gap.
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
  readonly #asked = new Set<string>();

  constructor(retention: RawRetention, book: GapBook, clock: Clock, observer: Observer) {
    this.#retention = retention;
    this.#book = book;
    this.#clock = clock;
    this.#observer = observer;
  }

  /** True if so, and then it is told. */
  look(sink: string, { oldestMs, positions, streams }: SinkGaps): boolean {
    for (const { stream, ranges } of streams) this.#ask(stream, ranges[0]?.from ?? 0n);
    const { retentionMs } = this.#retention;
    const leftMs = retentionMs - (oldestMs ?? 0);
    if (oldestMs === null || leftMs > retentionMs * LEFT) return false;
    this.#observer.emit({ e: "sink.gap_expiring", sink, leftMs: Math.max(0, leftMs), positions });
    return true;
  }

  #ask(stream: string, position: bigint): void {
    const asked = `${stream}@${position}`;
    if (!this.#book.wasThere(stream, position) || this.#asked.has(asked)) return;
    this.#asked.add(asked);
    void this.#retention.ageOf(stream, position).then(
      (age) => {
        if (age !== null) this.#book.older(stream, this.#clock.monotonic() - age);
      },
      () => this.#asked.delete(asked),
    );
  }
}

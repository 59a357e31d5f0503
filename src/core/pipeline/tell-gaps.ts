/** What a sink lacks as an event: bounded, whatever there is. */
import type { SinkGaps } from "../delivery/gap-book.ts";
import type { Observer } from "../ports/observer.ts";
import { streamParts } from "../records/stream.ts";

const MOST_STREAMS = 100;
const MOST_RANGES = 50;

export function tellGaps(
  observer: Observer,
  sink: string,
  { streams, ...sums }: SinkGaps,
  expiring: boolean,
): void {
  const parts = streams.slice(0, MOST_STREAMS).map(({ stream, from, next, ranges }) => {
    const { topic, partition } = streamParts(stream);
    return { topic, partition, from, next, missing: ranges.slice(0, MOST_RANGES) };
  });
  observer.emit({ e: "sink.lacks", sink, ...sums, expiring, parts });
}

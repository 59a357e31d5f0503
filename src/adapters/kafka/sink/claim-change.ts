/** What a claim changes, once everybody who might write the streams has been fenced and the ranges were read: coverage.ts. */
import { claim } from "../../../core/coverage/changes.ts";
import { normalRanges } from "../../../core/coverage/ranges.ts";
import type { Authority, Claim, WriterIdentity } from "../../../core/ports/coverage.ts";
import type { StreamKey } from "../../../core/records/stream.ts";
import type { Decided } from "./lock.ts";
import { encodeLanded, type Landed, rangeKey, type SinkKey, type SinkState, united } from "./state.ts";
import { endedParts } from "./window-leases.ts";

export interface ClaimWish {
  readonly key: SinkKey;
  readonly instance: string;
  readonly streams: readonly StreamKey[];
  readonly groupEpoch: number | null;
  /** Under which each stream is written from now on. */
  readonly writers: readonly WriterIdentity[];
  /** As they were before the ranges were read. */
  readonly seen: SinkState;
  readonly landed: ReadonlyMap<StreamKey, ReadonlyMap<number, Landed>>;
  /** Ids of topics that are written to. */
  readonly targets: ReadonlyMap<string, string>;
}

export function claimChange(now: SinkState, wish: ClaimWish): Decided<readonly Claim[]> {
  const { key, streams, landed, seen } = wish;
  const { state, answer } = claim(streams, wish.groupEpoch, wish.instance)(now.coverage);
  const writers = new Map(now.writers);
  const ranges = new Map<string, string | null>();
  const generations = new Map(answer.map((a) => [a.kind === "generation" ? a.stream : "", a]));
  const claims = streams.map((stream, i): Claim => {
    const authority = generations.get(stream)!;
    const writer = wish.writers[i]!;
    writers.set(stream, writer.id);
    const parts: ReadonlyMap<number, Landed> = landed.get(stream) ?? new Map();
    // What lands under leases that are not over is left to those who have them.
    const ended = [...[...parts].filter(([n]) => n >= 0), ...endedParts(parts, seen)];
    if (authority.kind === "generation" && ended.length > 0) {
      for (const [n] of ended) ranges.set(rangeKey(key, stream, n), null);
      // Under the generation before, since the lane begins its own with what it lands itself.
      const one = united(ended.map(([, part]) => part));
      ranges.set(rangeKey(key, stream, authority.generation - 1), encodeLanded(one));
    }
    const { origin, staleCommit, lost } = state.streams.get(stream)!;
    return {
      stream,
      authority: { ...authority, writer } as Authority,
      covered: united(parts.values()).ranges,
      lost: normalRanges(lost),
      origin,
      staleCommit,
    };
  });
  const targets = new Map([...now.targets, ...wish.targets]);
  return { state: { ...now, coverage: state, writers, targets }, ranges, answer: claims };
}

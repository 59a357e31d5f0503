/**
 * Raw files as a source: what has landed is read again for the sinks that lack it. The broker is not asked.
 *
 * A bundle holds one set of files, each row group as a Parquet file of its own (`packGroups`), and a frame for each
 * stream that has come to the set. Frames reach over what is not wanted: lanes leave it out by their coverage.
 */
import type { Range } from "../ports/coverage.ts";
import type { AckMark, FoundStream, Source, SourceHost } from "../ports/source.ts";
import type { Frame } from "../records/frame.ts";
import { type StreamId, type StreamKey, streamKey } from "../records/stream.ts";
import { type PackedGroups, packedBytes, packGroups } from "./packed-groups.ts";
import type { ReplayOrder, ReplayStep } from "./replay-order.ts";

/** Reads the row groups of all files of a set. Throws recovery.raw_missing where one is not there any more. */
export type ReadSet = (set: ReplayStep["set"]) => Promise<Omit<PackedGroups, "serial">>;

export interface ReplayStream {
  readonly id: StreamId;
  /** From the first position that is wanted to the end of the last. */
  readonly span: Range;
}

export interface ReplayParts {
  readonly order: ReplayOrder;
  readonly read: ReadSet;
}

interface Place {
  readonly stream: number;
  readonly lane: number;
  position: bigint;
  attempt: number;
  /** How often it was sent elsewhere. */
  seeks: number;
}

export class ReplaySource implements Source {
  readonly #streams: readonly ReplayStream[];
  readonly #p: ReplayParts;
  readonly #places = new Map<StreamKey, Place>();
  readonly #keys = new Map<number, StreamKey>();
  #serial = 0;
  #closed = false;
  #paused = false;
  #wake: () => void = () => {};

  constructor(streams: readonly ReplayStream[], parts: ReplayParts) {
    this.#streams = streams;
    this.#p = parts;
  }

  async run(host: SourceHost): Promise<void> {
    const starts = await host.begin(this.#streams.map(found), null);
    for (const { id, stream, lane, position, attempt } of starts) {
      const key = streamKey(id);
      // A lane may have died while it was begun.
      if (!this.#places.has(key)) this.#place(key, { stream, lane, position, attempt, seeks: 0 });
    }
    host.healthy();
    while (!this.#closed) {
      const step = this.#paused ? null : this.#p.order.take();
      if (step === null) await this.#woken();
      else await this.#give(host, step);
    }
  }

  async #give(host: SourceHost, step: ReplayStep): Promise<void> {
    const seeks = new Map(step.parts.map((p) => [p.stream, this.#places.get(p.stream)?.seeks]));
    const packed = { ...(await this.#p.read(step.set)), serial: this.#serial++ };
    for (const lane of new Set(step.parts.map((p) => this.#places.get(p.stream)!.lane))) {
      while (!this.#closed && !this.#paused && host.room(lane) <= 0)
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
          host.whenRoom(lane, resolve);
        });
      if (this.#closed || this.#paused) return;
      const bytes = packedBytes(packed);
      // A stream that was sent elsewhere meanwhile may lack sets before this one: the order gives it anew.
      const parts = step.parts.filter((p) => this.#places.get(p.stream)!.seeks === seeks.get(p.stream));
      const frames = parts.flatMap((p) => this.#frame(p.stream, p.next, lane, bytes));
      if (frames.length === 0) continue;
      const buffer = host.takeBuffer(bytes);
      packGroups(packed, buffer);
      host.deliver(lane, { buffer, frames, receivedAt: 0 });
    }
  }

  #frame(stream: StreamKey, next: bigint, lane: number, end: number): Frame[] {
    const place = this.#places.get(stream)!;
    if (place.lane !== lane || next <= place.position) return [];
    const from = place.position;
    place.position = next;
    const { attempt } = place;
    return [{ stream: place.stream, attempt, from, next, start: 0, end, aborted: [], committedOnly: false }];
  }

  seek(stream: number, position: bigint, attempt: number): void {
    const key = this.#keys.get(stream);
    const place = key === undefined ? undefined : this.#places.get(key);
    if (key === undefined || place === undefined) return;
    place.position = position;
    place.attempt = attempt;
    place.seeks++;
    this.#p.order.seek(key, position);
    this.#wake();
  }

  #place(key: StreamKey, place: Place): void {
    this.#places.set(key, place);
    this.#keys.set(place.stream, key);
    this.#p.order.seek(key, place.position);
  }

  confirmation(): Promise<null> {
    return Promise.resolve(null);
  }

  /** Nobody waits for it. */
  acknowledge(marks: readonly AckMark[]): Promise<readonly AckMark[]> {
    return Promise.resolve(marks);
  }

  pause(): void {
    this.#paused = true;
    this.#wake();
  }

  close(): Promise<void> {
    this.#closed = true;
    this.#wake();
    return Promise.resolve();
  }

  #woken(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}

function found({ id, span }: ReplayStream): FoundStream {
  const { transport, cluster, topic, partition } = id;
  const { from: earliest, next: latest } = span;
  return { transport, cluster, topic, partition, topicId: null, committed: null, earliest, latest };
}

/**
 * What stands in the place of the primary sink while raw is read again: it has everything already, so nothing of it is
 * written, and only what is wanted is not covered.
 */
import { subtractRanges } from "../coverage/ranges.ts";
import { Failure } from "../failure/failure.ts";
import type { Authority, Claim, Range, StreamCoverage, TopicMemory } from "../ports/coverage.ts";
import type { RawWriter, SetFiles } from "../ports/lane-parts.ts";
import { int64At } from "../records/int64-at.ts";
import type { RawBatch } from "../records/raw-batch.ts";
import type { StreamKey } from "../records/stream.ts";
import type { Wanted } from "./replay-order.ts";

export class ReplayCoverage implements StreamCoverage {
  readonly fenced: Failure | null = null;
  readonly #wanted: Wanted;
  readonly #incarnation: number;

  /** Streams of one incarnation of their topics. */
  constructor(wanted: Wanted, incarnation: number) {
    this.#wanted = wanted;
    this.#incarnation = incarnation;
  }

  claim(streams: readonly StreamKey[]): Promise<readonly Claim[]> {
    return Promise.resolve(streams.map((stream) => this.#claim(stream)));
  }

  #claim(stream: StreamKey): Claim {
    const wanted = this.#wanted.get(stream) ?? [];
    const [first, last] = [wanted[0], wanted.at(-1)];
    if (first === undefined || last === undefined)
      throw new Failure("internal.bug", "a stream that nobody lacks", { at: stream });
    const covered = subtractRanges([{ from: first.from, next: last.next }], wanted);
    const authority: Authority = { kind: "generation", stream, generation: 1 };
    return { stream, authority, covered, lost: [], origin: first.from, staleCommit: null };
  }

  rememberTopic(): Promise<TopicMemory> {
    return this.topic();
  }

  topic(): Promise<TopicMemory> {
    return Promise.resolve({ topicId: "", incarnation: this.#incarnation });
  }

  covered(): Promise<readonly Range[]> {
    return Promise.resolve([]);
  }

  async open(): Promise<void> {}
  async recordLost(): Promise<void> {}
  async rememberOrigins(): Promise<void> {}
  async heartbeat(): Promise<void> {}
  async close(): Promise<void> {}

  lease(): Promise<Authority> {
    return Promise.reject(new Failure("internal.bug", "raw that is read again is nobody's to lease"));
  }
}

/** Positions that no batch lies on both sides of, ascending. */
type Cuts = ReadonlyMap<StreamKey, readonly bigint[]>;

/** Takes rows and keeps none. */
export class ReplayWriter implements RawWriter {
  readonly held = 0;
  readonly #cuts: Cuts;
  #bytes = 0;
  #rows = 0;

  constructor(cuts: Cuts = new Map()) {
    this.#cuts = cuts;
  }

  /** As the primary sink would have it: others close their sets where this one does. */
  get largest(): number {
    return this.#bytes;
  }

  open(_id: string): void {
    this.#clear();
  }

  write(batch: RawBatch): number {
    const { key, value } = batch;
    const rows = this.#upToCut(batch);
    this.#rows += rows;
    this.#bytes += key.offsets[rows]! - key.offsets[0]! + value.offsets[rows]! - value.offsets[0]!;
    return rows;
  }

  /** The lane reads on behind those that were taken. */
  #upToCut({ span, rows, offsets }: RawBatch): number {
    const cut = this.#cuts.get(span.stream)?.find((c) => c > span.from && c < span.next);
    if (cut === undefined) return rows;
    let taken = 0;
    while (taken < rows && int64At(offsets, taken) < cut) taken++;
    return taken;
  }

  async flush(): Promise<void> {}

  seal(): Promise<SetFiles> {
    const files = { targets: [], covered: true, rows: this.#rows, bytes: 0 };
    this.#clear();
    return Promise.resolve(files);
  }

  async abort(): Promise<void> {
    this.#clear();
  }

  #clear(): void {
    this.#bytes = 0;
    this.#rows = 0;
  }
}

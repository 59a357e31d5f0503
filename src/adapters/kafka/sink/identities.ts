/**
 * Under which identity each lane writes: got by InitProducerId, which fences whoever had the transactional id before.
 * Only a claim calls it; lanes use what they are given until it is of no use any more.
 */
import type { WriterIdentity } from "../../../core/ports/coverage.ts";
import type { StreamKey } from "../../../core/records/stream.ts";
import type { CallParts } from "../producer/coordinator-calls.ts";
import { Transactions } from "../producer/transactions.ts";
import type { SinkState } from "./state.ts";

export interface IdentityOptions {
  /** Beginning of every transactional id. */
  readonly idPrefix: string;
  readonly instance: string;
  /** Beside other members of a group: ids of its own in each run, where else they are the same. */
  readonly shared: boolean;
  readonly transactionTimeoutMs: number;
  /** Which thread a lane's number stands for now: one that was replaced writes under another identity. */
  readonly laneLife: (lane: number) => string;
}

/** What fencing gives: an identity that nobody uses yet. */
export type FencingIdentity = Omit<WriterIdentity, "life">;

const REQUEST_MS = 30_000;

export class WriterIdentities {
  readonly #o: IdentityOptions;
  readonly #calls: Omit<CallParts, "timeoutMs">;
  /** By transactional id; each was given to a lane, or will be. */
  readonly #mine = new Map<string, WriterIdentity>();
  /** Under which id each stream is written that was claimed here and not given up. */
  readonly #written = new Map<StreamKey, string>();

  constructor(options: IdentityOptions, calls: Omit<CallParts, "timeoutMs">) {
    this.#o = options;
    this.#calls = calls;
  }

  /** Fences everybody who may write one of the streams; answers under which identity each is written from now on. */
  async takeOver(
    streams: readonly StreamKey[],
    lanes: readonly number[],
    seen: SinkState,
    signal: AbortSignal,
  ): Promise<readonly WriterIdentity[]> {
    const mine = streams.map((_, i) => ({ id: this.#idOf(lanes[i] ?? 0), lane: lanes[i] ?? 0 }));
    const former = new Set(streams.flatMap((s) => this.#writerOf(s, seen) ?? []));
    for (const id of [...former, ...streams.flatMap((s) => this.#lostOf(s, seen) ?? [])])
      this.#mine.delete(id);
    for (const { id, lane } of mine) {
      const life = this.#o.laneLife(lane);
      if (this.#mine.get(id)?.life === life) continue;
      const got = await this.#initialise(id, REQUEST_MS, signal);
      this.#mine.set(id, { id, life, producerId: got.id, epoch: got.epoch });
      former.delete(id);
    }
    for (const id of former) await this.#initialise(id, REQUEST_MS, signal);
    for (const [i, stream] of streams.entries()) this.#written.set(stream, mine[i]!.id);
    return mine.map(({ id }) => this.#mine.get(id)!);
  }

  /** Id to be fenced before the stream is read; null: there is none. */
  #writerOf(stream: StreamKey, { writers, coverage }: SinkState): string | null {
    const id = writers.get(stream);
    if (id === undefined) return null;
    // An earlier process wrote it under an id that is ours by now: it was fenced when we took that over.
    const fenced = this.#mine.has(id) && coverage.streams.get(stream)?.owner !== this.#o.instance;
    return fenced ? null : id;
  }

  /** They were given up in good order: nobody fences us for them. */
  released(streams: readonly StreamKey[]): void {
    for (const s of streams) this.#written.delete(s);
  }

  /** Id of ours under which a stream was written that was taken away from us meanwhile: whoever did so has fenced it. */
  #lostOf(stream: StreamKey, { coverage }: SinkState): string | null {
    if (coverage.streams.get(stream)?.owner === this.#o.instance) return null;
    return this.#written.get(stream) ?? null;
  }

  /** Fences everybody who writes under the id: whatever was begun under it is aborted, or committed, when this is answered. */
  async fence(id: string, signal: AbortSignal): Promise<FencingIdentity> {
    this.#mine.delete(id);
    const { id: producerId, epoch } = await this.#initialise(id, REQUEST_MS, signal);
    return { id, producerId, epoch };
  }

  #idOf(lane: number): string {
    const { idPrefix, shared, instance } = this.#o;
    return shared ? `${idPrefix}.${instance}.${lane}` : `${idPrefix}.${lane}`;
  }

  /** Waits until a transaction that was open is aborted, or one that was being committed is. */
  #initialise(id: string, timeoutMs: number, signal: AbortSignal) {
    return new Transactions(id, this.#o.transactionTimeoutMs, { ...this.#calls, timeoutMs }).init(signal);
  }

  /** Ends what our lanes left open: until then readers of committed records would wait. */
  async end(timeoutMs: number, signal: AbortSignal): Promise<void> {
    for (const id of this.#mine.keys()) await this.#initialise(id, timeoutMs, signal);
    this.#mine.clear();
  }
}

/**
 * What a consumer has fetched and not read yet: frames in the order of their arrival, how many bytes they hold, and
 * the buffers that they stand in. A buffer goes back to the pool when nothing of it waits any more; without the pool
 * each answer would cost the page faults of new memory, more than reading it.
 */
import { BufferPool } from "../../core/pipeline/buffer-pool.ts";
import type { Frame, FrameBundle } from "../../core/records/frame.ts";

/** One answer of a broker. */
interface Answer {
  readonly bytes: Uint8Array;
  readonly buffer: ArrayBuffer;
  readonly receivedAt: number;
  /** Frames of it that wait. */
  left: number;
}

export interface Waiting {
  readonly answer: Answer;
  readonly frame: Frame;
}

export class ConsumerQueue {
  readonly #ahead: number;
  readonly #pool: BufferPool;
  #waiting: Waiting[] = [];
  #held = 0;
  #roomWaiters: (() => void)[] = [];

  /** `ahead`: bytes that may wait. */
  constructor(ahead: number) {
    this.#ahead = ahead;
    this.#pool = new BufferPool(ahead / 2);
  }

  get first(): Waiting | null {
    return this.#waiting[0] ?? null;
  }

  get room(): number {
    return Math.max(0, this.#ahead - this.#held);
  }

  whenRoom(wake: () => void): void {
    if (this.room > 0) wake();
    else this.#roomWaiters.push(wake);
  }

  take(bytes: number): ArrayBuffer {
    return this.#pool.take(bytes);
  }

  give(buffer: ArrayBuffer): void {
    this.#pool.give(buffer);
  }

  /** Frames of the bundle that are `wanted` wait from now on. True if there is one. */
  push({ buffer, frames, receivedAt }: FrameBundle, wanted: (frame: Frame) => boolean): boolean {
    const kept = frames.filter(wanted);
    const answer: Answer = { bytes: new Uint8Array(buffer), buffer, receivedAt, left: kept.length };
    for (const frame of kept) {
      this.#held += frame.end - frame.start;
      this.#waiting.push({ answer, frame });
    }
    if (kept.length === 0) this.#pool.give(buffer);
    return kept.length > 0;
  }

  /** Of the first that waits, everything below `next` was read. */
  advance(next: bigint): void {
    const first = this.#waiting[0]!;
    const { answer, frame } = first;
    if (frame.next > next) this.#waiting[0] = { answer, frame: { ...frame, from: next } };
    else this.#drop([this.#waiting.shift()!]);
  }

  /** What waits of these streams is not wanted any more. */
  forget(streams: readonly number[]): void {
    const dropped: Waiting[] = [];
    const kept: Waiting[] = [];
    for (const w of this.#waiting) (streams.includes(w.frame.stream) ? dropped : kept).push(w);
    this.#waiting = kept;
    this.#drop(dropped);
  }

  #drop(dropped: readonly Waiting[]): void {
    for (const { frame, answer } of dropped) {
      this.#held -= frame.end - frame.start;
      if (--answer.left === 0) this.#pool.give(answer.buffer);
    }
    for (const wake of this.#roomWaiters.splice(0)) wake();
  }
}

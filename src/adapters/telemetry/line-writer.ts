/**
 * Lines to a file descriptor without ever holding up the pipeline: a reader of the log that stands still costs log
 * lines, not data. One write is under way at a time, off the control thread; what waits is bounded, and lines beyond
 * the bound are dropped and counted.
 */
import { write } from "node:fs";

export const MAX_QUEUED_BYTES = 1024 * 1024;

export interface LineWriter {
  write(text: string): void;
  /** Resolves when everything queued so far is written or the descriptor is broken. */
  flush(): Promise<void>;
  /** Lines dropped so far. */
  readonly dropped: number;
}

/** The one system call, as a port for tests: calls back with the number of bytes taken. */
export type WriteCall = (bytes: Uint8Array, done: (error: Error | null, taken: number) => void) => void;

export function descriptorWrite(fd: number): WriteCall {
  return (bytes, done) => write(fd, bytes, 0, bytes.length, null, done);
}

export class QueuedLines implements LineWriter {
  readonly #call: WriteCall;
  readonly #wait: (ms: number, fn: () => void) => void;
  #queue: Buffer[] = [];
  #queued = 0;
  #busy = false;
  #broken = false;
  #idle: (() => void)[] = [];
  dropped = 0;

  /** `wait`: asks again later when a non-blocking descriptor is full (EAGAIN). */
  constructor(call: WriteCall, wait: (ms: number, fn: () => void) => void) {
    this.#call = call;
    this.#wait = wait;
  }

  write(text: string): void {
    const bytes = Buffer.from(text, "utf8");
    if (this.#broken || this.#queued + bytes.length > MAX_QUEUED_BYTES) {
      this.dropped++;
      return;
    }
    this.#queue.push(bytes);
    this.#queued += bytes.length;
    this.#pump();
  }

  flush(): Promise<void> {
    if (!this.#busy) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  #pump(): void {
    if (this.#busy) return;
    if (this.#queue.length === 0) {
      for (const done of this.#idle.splice(0)) done();
      return;
    }
    this.#busy = true;
    const bytes = this.#queue.length === 1 ? (this.#queue[0] as Buffer) : Buffer.concat(this.#queue);
    this.#queue = [];
    this.#send(bytes);
  }

  #send(bytes: Uint8Array): void {
    this.#call(bytes, (error, taken) => {
      if (error !== null && (error as NodeJS.ErrnoException).code === "EAGAIN") {
        this.#wait(50, () => this.#send(bytes));
        return;
      }
      if (error !== null) {
        // Nobody reads any more (EPIPE). There is no other place to say so.
        this.#broken = true;
        this.#queue = [];
        this.#queued = bytes.length;
      } else if (taken < bytes.length) {
        this.#queued -= taken;
        this.#send(bytes.subarray(taken));
        return;
      }
      this.#queued -= bytes.length;
      this.#busy = false;
      this.#pump();
    });
  }
}

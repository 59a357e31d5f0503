/**
 * Requests to one bucket: never more than so many under way, each with a deadline, those that may be repeated
 * repeated. A conditional write or a completion is sent once; who sends it settles what its answer leaves open.
 */
import { Failure } from "../../core/failure/failure.ts";
import type { Chance } from "../../core/time/chance.ts";
import { type Clock, sleep } from "../../core/time/clock.ts";
import { openS3, type S3Session } from "./s3-client.ts";
import type { S3Connection, S3Keys } from "./s3-connection.ts";
import { type S3Kind, s3Failure, s3Fault } from "./s3-failure.ts";

export interface S3Parts {
  readonly clock: Clock;
  readonly chance: Chance;
}

/** How often a request is sent before its caller is told; the callers wait outages out themselves. */
const ATTEMPTS = 4;
const PAUSE_FIRST_MS = 100;
const PAUSE_LONGEST_MS = 2_000;
const REPEATED: readonly S3Kind[] = ["busy", "cut", "conflict", "skewed"];
/** After an abort the handler may still be busy with the socket; it is not waited for longer than this. */
const ABORT_GRACE_MS = 1_000;

export interface RepeatOptions {
  /** Told of each answer that was lost: the request may have had its effect. */
  readonly unsure?: () => void;
  /** Ends the request and its repetitions. */
  readonly life?: AbortSignal;
  /** It carries a condition, so an answer that one failed is about it; else the request is sent again. */
  readonly conditional?: boolean;
}

type Call<T> = (session: S3Session, signal: AbortSignal) => Promise<T>;

export class S3Requests {
  #connection: S3Connection;
  readonly clock: Clock;
  readonly #chance: Chance;
  #session: Promise<S3Session> | null = null;
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(connection: S3Connection, parts: S3Parts) {
    this.#connection = connection;
    this.clock = parts.clock;
    this.#chance = parts.chance;
    this.#free = connection.maxRequests;
  }

  get connection(): S3Connection {
    return this.#connection;
  }

  /** Requests from now on are signed with these keys; those under way end as they began. True if they differ. */
  renew(keys: S3Keys | null): boolean {
    if (JSON.stringify(keys) === JSON.stringify(this.#connection.keys)) return false;
    this.#connection = { ...this.#connection, keys };
    this.#session = null;
    return true;
  }

  get bucket(): string {
    return this.connection.bucket;
  }

  /** The key below the configured prefix, as the store knows it. */
  keyOf(key: string): string {
    return this.connection.prefix === "" ? key : `${this.connection.prefix}/${key}`;
  }

  /** Without a leading slash, so that it can stand in messages behind `s3://bucket/`. */
  place(key = ""): string {
    return `s3://${this.bucket}/${this.keyOf(key)}`.replace(/\/$/, "");
  }

  /** Sent once; throws whatever the SDK throws. */
  async once<T>(call: Call<T>, life?: AbortSignal): Promise<T> {
    await this.#enter();
    try {
      life?.throwIfAborted();
      const session = await this.#open();
      return await this.#inTime((signal) => call(session, signal), life);
    } finally {
      this.#leave();
    }
  }

  /** Sent until it is answered for good, or ATTEMPTS are used up. Throws a Failure. */
  async repeated<T>(doing: string, key: string, call: Call<T>, options: RepeatOptions = {}): Promise<T> {
    const { unsure, life } = options;
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.once(call, life);
      } catch (e) {
        if (life?.aborted === true) throw new Failure("internal.cancelled", "the request was given up");
        const fault = s3Fault(e);
        if (!fault.noEffect) unsure?.();
        const again =
          REPEATED.includes(fault.kind) || (fault.kind === "refused" && options.conditional !== true);
        if (!again || attempt === ATTEMPTS) throw s3Failure(e, doing, this.place(key));
        await this.pause(attempt, life);
      }
    }
  }

  /** Exponential, with half of it by chance, so that lanes do not come back in step. */
  pause(attempt: number, signal?: AbortSignal): Promise<void> {
    const longest = Math.min(PAUSE_LONGEST_MS, PAUSE_FIRST_MS * 2 ** (attempt - 1));
    return sleep(this.clock, longest * (0.5 + this.#chance.next() / 2), signal);
  }

  #open(): Promise<S3Session> {
    this.#session ??= openS3(this.connection).catch((e) => {
      this.#session = null;
      throw e;
    });
    return this.#session;
  }

  async #inTime<T>(call: (signal: AbortSignal) => Promise<T>, life?: AbortSignal): Promise<T> {
    const { clock } = this;
    const ms = this.connection.requestTimeoutMs;
    const limit = new AbortController();
    let end: (e: Error) => void = () => {};
    const ended = new Promise<never>((_, reject) => {
      end = reject;
    });
    const stop = () => {
      limit.abort();
      timer = clock.after(ABORT_GRACE_MS, () => end(new TimedOut(ms)));
    };
    let timer = clock.after(ms, stop);
    life?.addEventListener("abort", stop, { once: true });
    const work = call(limit.signal);
    // Whichever loses the race must not end the process.
    work.catch(() => {});
    ended.catch(() => {});
    try {
      return await Promise.race([work, ended]);
    } finally {
      timer.cancel();
      life?.removeEventListener("abort", stop);
    }
  }

  async #enter(): Promise<void> {
    if (this.#free > 0) {
      this.#free--;
      return;
    }
    await new Promise<void>((go) => this.#waiting.push(go));
  }

  #leave(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free++;
    else next();
  }
}

class TimedOut extends Error {
  override readonly name = "TimeoutError";
  constructor(ms: number) {
    super(`no answer within ${ms} ms`);
  }
}

/** A key of the configuration or the stored state must stay below the prefix. */
export function checkedKey(key: string): string {
  const names = key.split("/");
  if (key === "" || names.some((n) => n === "" || n === "." || n === "..")) {
    throw new Failure("internal.bug", "a key leads out of the sink's prefix", { at: key });
  }
  return key;
}

/** One connection to a broker with promises on top: the session machine joined to the network and the clock. */
import { asFailure, Failure } from "../../core/failure/failure.ts";
import type { Connection, Net, TlsOptions } from "../../core/ports/net.ts";
import type { Observer } from "../../core/ports/observer.ts";
import type { Clock, Timer } from "../../core/time/clock.ts";
import { BrokerSession, type ConnectionSettings, type ResponseMemory } from "./session/connection.ts";
import type { BrokerAddress } from "./session/metadata-state.ts";
import type { RequestReport } from "./session/request-report.ts";
import type { ApiName, Draft, RequestOf, ResponseOf } from "./wire/protocol.ts";

export interface Answer<A extends ApiName> {
  readonly body: ResponseOf<A>;
  /** The response after its size; `records` fields are views on the same buffer. */
  readonly bytes: Uint8Array;
}

export interface RequestOptions {
  readonly signal: AbortSignal;
  /** Default: the client's `requestTimeoutMs`. */
  readonly timeoutMs?: number;
  readonly memory?: ResponseMemory;
}

export interface LinkParts {
  readonly net: Net;
  readonly clock: Clock;
  /** Told of connections and requests; absent: nobody watches. */
  readonly observer?: Observer;
}

export interface LinkSettings extends ConnectionSettings {
  readonly address: BrokerAddress;
  readonly tls: TlsOptions | null;
  /** What the connection is for: "control", "fetch", ... */
  readonly purpose: string;
  /** Broker id; null where only the address is known, at the start. */
  readonly node: number | null;
}

export function cancelled(what: string): Failure {
  return new Failure("internal.cancelled", `${what} was given up`);
}

export class BrokerLink {
  readonly at: string;
  readonly #settings: LinkSettings;
  readonly #clock: Clock;
  readonly #session: BrokerSession;
  #connection: Connection | null = null;
  #timer: Timer | null = null;
  #timerAt = 0;
  #lastUsed = 0;
  #onReady: () => void = () => {};
  #onEnd: (failure: Failure) => void = () => {};
  #observer: Observer | null = null;

  private constructor(settings: LinkSettings, clock: Clock) {
    this.#settings = settings;
    this.#clock = clock;
    this.at = settings.at;
    const { sasl } = settings;
    const armed: typeof sasl =
      sasl === null
        ? null
        : (ready) =>
            sasl((machine, now) => {
              ready(machine, now);
              this.#arm();
            });
    this.#session = new BrokerSession(
      { ...settings, sasl: armed },
      { write: (bytes) => this.#connection?.write(bytes), close: () => this.#drop() },
      {
        ready: () => this.#onReady(),
        done: (report) => this.#told(report),
        ended: (failure) => this.#onEnd(failure),
      },
    );
  }

  /** Resolves when versions are known and, with SASL, authenticated. */
  static async open(
    parts: LinkParts,
    settings: LinkSettings,
    signal: AbortSignal,
  ): Promise<{ link: BrokerLink } | { failure: Failure; negotiated: boolean }> {
    const link = new BrokerLink(settings, parts.clock);
    link.#observer = parts.observer ?? null;
    try {
      await link.#dial(parts.net, signal);
      link.#watch();
      return { link };
    } catch (e) {
      const failure = asFailure(e);
      link.#session.close(failure);
      return { failure, negotiated: link.#session.negotiated || link.#connection === null };
    }
  }

  /** From now on it counts as open. */
  #watch(): void {
    const observer = this.#observer;
    if (observer === null) return;
    const address = this.at;
    const { purpose, tls } = this.#settings;
    observer.emit({ e: "connection.opened", address, purpose, tls: tls !== null });
    this.#onEnd = (failure) =>
      observer.emit({ e: "connection.closed", address, purpose, error: failure.code });
  }

  #told({ api, ms, sentBytes, receivedBytes, error }: RequestReport): void {
    const { node } = this.#settings;
    const bytes = { sent: sentBytes, received: receivedBytes };
    this.#observer?.emit({ e: "request.done", api, broker: this.at, node, ms, ...bytes, error });
  }

  async #dial(net: Net, signal: AbortSignal): Promise<void> {
    const { address, tls, dialTimeoutMs } = this.#settings;
    const options = { ...address, tls, timeoutMs: dialTimeoutMs, signal };
    let early: Failure | "closed" | null = null;
    const connection = await net.dial(options, {
      data: (chunk) => {
        this.#session.receive(chunk, this.#clock.monotonic());
        this.#arm();
      },
      space: () => this.#session.space,
      placed: (bytes) => {
        this.#session.placed(bytes, this.#clock.monotonic());
        this.#arm();
      },
      close: (error) => {
        const failure = error === null ? null : asFailure(error, "net.closed");
        if (this.#connection === null) early = failure ?? "closed";
        else this.#session.lost(failure, this.#clock.monotonic());
        this.#disarm();
      },
    });
    if (signal.aborted) {
      connection.close();
      throw cancelled(`the connection to ${this.at}`);
    }
    this.#connection = connection;
    await new Promise<void>((resolve, reject) => {
      const onAbort = () => this.#session.close(cancelled(`the connection to ${this.at}`));
      signal.addEventListener("abort", onAbort, { once: true });
      this.#onReady = () => {
        signal.removeEventListener("abort", onAbort);
        this.#lastUsed = this.#clock.monotonic();
        // Authenticating again makes it ready once more: nobody waits for that.
        this.#onReady = () => {};
        this.#onEnd = () => {};
        resolve();
      };
      this.#onEnd = (failure) => {
        signal.removeEventListener("abort", onAbort);
        reject(failure);
      };
      this.#session.opened(this.#clock.monotonic());
      if (early !== null) this.#session.lost(early === "closed" ? null : early, this.#clock.monotonic());
      this.#arm();
    });
  }

  /** Why it ended, null while it is usable. */
  get failure(): Failure | null {
    return this.#session.failure;
  }

  /** Milliseconds since the last use, 0 while requests are under way. */
  get idleMs(): number {
    return this.#session.load > 0 ? 0 : this.#clock.monotonic() - this.#lastUsed;
  }

  /** The version in which `api` is to be sent. Throws kafka.unsupported_version. */
  version(api: ApiName, ceiling?: number): number {
    return this.#session.version(api, ceiling);
  }

  request<A extends ApiName>(
    api: A,
    version: number,
    body: Draft<RequestOf<A>>,
    options: RequestOptions,
  ): Promise<Answer<A>> {
    const { signal, memory = null, timeoutMs = this.#settings.requestTimeoutMs } = options;
    return new Promise((resolve, reject) => {
      if (signal.aborted) {
        reject(cancelled(`${api} to ${this.at}`));
        return;
      }
      let waiting = true;
      const settle = () => {
        const was = waiting;
        waiting = false;
        signal.removeEventListener("abort", onAbort);
        this.#lastUsed = this.#clock.monotonic();
        return was;
      };
      const onAbort = () => {
        if (settle()) reject(cancelled(`${api} to ${this.at}`));
      };
      signal.addEventListener("abort", onAbort, { once: true });
      this.#session.send(
        {
          api,
          version,
          body,
          timeoutMs,
          memory,
          wanted: () => waiting,
          answered: (answer, bytes) => {
            if (settle()) resolve({ body: answer, bytes });
            else memory?.give(bytes);
          },
          failed: (failure) => {
            if (settle()) reject(failure);
          },
        },
        this.#clock.monotonic(),
      );
      this.#arm();
    });
  }

  /** Sends what brokers do not answer (Produce with acks 0). Resolves once it was given to the connection. */
  tell<A extends ApiName>(api: A, version: number, body: Draft<RequestOf<A>>): Promise<void> {
    return new Promise((resolve, reject) => {
      const { requestTimeoutMs: timeoutMs } = this.#settings;
      const call = { api, version, body, timeoutMs, memory: null, wanted: () => true, answered: () => {} };
      this.#session.send({ ...call, failed: reject, written: resolve }, this.#clock.monotonic());
      this.#lastUsed = this.#clock.monotonic();
    });
  }

  /** Requests under way fail as if the broker had hung up, so that their callers try again elsewhere. */
  close(why: string): void {
    this.#session.close(new Failure("kafka.disconnected", `${this.at}: ${why}`, { at: this.at }));
  }

  #drop(): void {
    this.#disarm();
    this.#connection?.close();
  }

  #disarm(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }

  /** One timer for the earliest deadline; it is left to fire early rather than renewed with every request. */
  #arm(): void {
    const at = this.#session.wakeAt;
    if (at === null || this.#session.failure !== null) return;
    if (this.#timer !== null && this.#timerAt <= at) return;
    this.#disarm();
    this.#timerAt = at;
    this.#timer = this.#clock.after(Math.max(0, at - this.#clock.monotonic()), () => {
      this.#timer = null;
      this.#session.tick(this.#clock.monotonic());
      this.#arm();
    });
  }
}

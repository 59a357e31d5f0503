/**
 * The current token of a client credentials grant. It is fetched by the first login that needs one, shared by all
 * connections, and renewed ahead of its end, so that a login finds one even while the endpoint is away. However many
 * ask, one request is under way.
 */
import { asFailure, Failure } from "../../core/failure/failure.ts";
import type { Chance } from "../../core/time/chance.ts";
import type { Clock, Timer } from "../../core/time/clock.ts";
import { type FetchedToken, type OidcEndpoint, requestToken } from "./oidc-request.ts";

export type OidcSettings = OidcEndpoint;

/** Renewed after this share of its life, spread by chance, so that a fleet does not come in step. */
const EARLIEST = 0.7;
const SPREAD = 0.15;
/** Where nothing says how long a token lasts, it serves the logins of one start and no more. */
const UNKNOWN_LIFETIME_MS = 60_000;
/** A token with less than this left would end on its way to the broker. */
const LEAST_LEFT_MS = 1_000;
const RETRY_FIRST_MS = 1_000;
const RETRY_LONGEST_MS = 30_000;
/** Node's timers hold no more. */
const LONGEST_TIMER_MS = 2_000_000_000;

interface Held {
  readonly token: string;
  /** Monotonic ms. */
  readonly endsAt: number;
}

export class OidcTokens {
  readonly #settings: OidcSettings;
  readonly #clock: Clock;
  readonly #chance: Chance;
  readonly #life = new AbortController();
  #held: Held | null = null;
  #fetching: Promise<string> | null = null;
  #timer: Timer | null = null;
  #retries = 0;

  constructor(settings: OidcSettings, parts: { readonly clock: Clock; readonly chance: Chance }) {
    this.#settings = settings;
    this.#clock = parts.clock;
    this.#chance = parts.chance;
  }

  /** One that is good for a login now. Rejects with a Failure: oidc.*, net.*, sasl.credentials_invalid. */
  async token(): Promise<string> {
    if (this.#life.signal.aborted) throw asFailure(this.#life.signal.reason);
    const held = this.#held;
    if (held !== null && held.endsAt - this.#clock.monotonic() >= LEAST_LEFT_MS) return held.token;
    return await this.#fetch();
  }

  /** Somebody refused it: the next one who asks gets another, unless that has come already. */
  discard(token: string): void {
    if (this.#held?.token === token) this.#held = null;
  }

  close(reason: Failure): void {
    this.#life.abort(reason);
    this.#timer?.cancel();
    this.#timer = null;
  }

  #fetch(): Promise<string> {
    this.#fetching ??= this.#request().finally(() => {
      this.#fetching = null;
    });
    return this.#fetching;
  }

  async #request(): Promise<string> {
    const limit = new AbortController();
    const { timeoutMs, tokenUrl } = this.#settings;
    const timer = this.#clock.after(timeoutMs, () =>
      limit.abort(
        new Failure("oidc.unavailable", `the token endpoint did not answer within ${timeoutMs} ms`, {
          at: tokenUrl,
        }),
      ),
    );
    const signal = AbortSignal.any([limit.signal, this.#life.signal]);
    try {
      const fetched = await requestToken(this.#settings, signal, () => this.#clock.now());
      this.#retries = 0;
      this.#keep(fetched);
      return fetched.token;
    } finally {
      timer.cancel();
    }
  }

  #keep({ token, lifetimeMs }: FetchedToken): void {
    const life = lifetimeMs ?? UNKNOWN_LIFETIME_MS;
    this.#held = { token, endsAt: this.#clock.monotonic() + life };
    this.#renewIn(life * (EARLIEST + SPREAD * this.#chance.next()));
  }

  #renewIn(ms: number): void {
    this.#timer?.cancel();
    if (this.#life.signal.aborted) return;
    const wait = Math.min(LONGEST_TIMER_MS, Math.max(LEAST_LEFT_MS, ms));
    this.#timer = this.#clock.after(wait, () => {
      this.#fetch().catch(() => this.#tryLater());
    });
  }

  /** The held token serves until its end; after it whoever needs one hears why there is none. */
  #tryLater(): void {
    const pause = Math.min(RETRY_LONGEST_MS, RETRY_FIRST_MS * 2 ** Math.min(this.#retries++, 10));
    this.#renewIn(pause * (1 - 0.5 * this.#chance.next()));
  }
}

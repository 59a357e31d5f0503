/**
 * How long a login lasts (KIP-368): the broker says so, and wants another one on the same connection before it ends.
 * It ends a connection that goes on without, and refuses a login that follows another within a second.
 */
import type { Chance } from "../../../core/time/chance.ts";

/** Brokers take no new login earlier than this after the last one. */
const SHORTEST_MS = 1_000;
/** Share of the lifetime after which to log in again: spread by chance, so that a fleet does not come in step. */
const EARLIEST = 0.85;
const SPREAD = 0.1;

export class LoginTerm {
  readonly #chance: Chance;
  /** Monotonic ms; infinity: it lasts. */
  #dueAt = Number.POSITIVE_INFINITY;
  #endsAt = Number.POSITIVE_INFINITY;
  #sent = 0;

  constructor(chance: Chance) {
    this.#chance = chance;
  }

  /** A login succeeded. `lifetimeMs` 0: no limit, also where there was one before. */
  begin(lifetimeMs: number, now: number): void {
    this.#sent = 0;
    const limited = lifetimeMs > 0;
    this.#endsAt = limited ? now + lifetimeMs : Number.POSITIVE_INFINITY;
    const share = EARLIEST + SPREAD * this.#chance.next();
    this.#dueAt = limited ? now + Math.max(SHORTEST_MS, lifetimeMs * share) : Number.POSITIVE_INFINITY;
  }

  /** A request went out under this login. */
  used(): void {
    this.#sent++;
  }

  /** May requests go out, must a login come first, or is it over and too early for the next? */
  state(now: number): "good" | "due" | "over" {
    if (now < this.#dueAt) return now < this.#endsAt ? "good" : "over";
    // However short it is, a request goes through each: else nothing but logins would.
    return this.#sent > 0 || now >= this.#endsAt ? "due" : "good";
  }

  /** When a login that is over may be followed by another. */
  get dueAt(): number {
    return this.#dueAt;
  }
}

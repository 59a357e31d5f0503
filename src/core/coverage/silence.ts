/**
 * Which members that share a store have fallen silent for good. Those of other machines nobody can ask, and a fleet
 * whose processes come and go by new names would fill the state with the names of the dead. Only our own clock counts.
 * One that is judged wrongly (it hung for all that time) is told at its next write that it is out, and starts anew.
 */
import type { HostIdentity } from "../ports/host-identity.ts";
import type { Clock } from "../time/clock.ts";
import type { Owner } from "./state.ts";

/** Leases without a single write. */
const SILENT_LEASES = 40;

export class Silence {
  readonly #clock: Clock;
  readonly #host: HostIdentity;
  readonly #ms: number;
  #seen = new Map<string, { readonly beat: number; readonly since: number }>();

  constructor(clock: Clock, host: HostIdentity, leaseMs: number) {
    this.#clock = clock;
    this.#host = host;
    this.#ms = SILENT_LEASES * leaseMs;
  }

  /** Those that are gone, each with the beat at which it was judged. Call it at every heartbeat. */
  gone(owners: readonly Owner[], self: string): ReadonlyMap<string, number> {
    const now = this.#clock.monotonic();
    const seen = new Map<string, { readonly beat: number; readonly since: number }>();
    const gone = new Map<string, number>();
    for (const { instance, beat, host } of owners) {
      if (instance === self) continue;
      const before = this.#seen.get(instance);
      const since = before?.beat === beat ? before.since : now;
      seen.set(instance, { beat, since });
      const life = this.#host.isAlive(host);
      if (life === "dead" || (life === "unknown" && now - since >= this.#ms)) gone.set(instance, beat);
    }
    this.#seen = seen;
    return gone;
  }
}

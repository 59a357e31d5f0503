/**
 * Which members that share a store have fallen silent for good. Those of other machines nobody can ask, and a fleet
 * whose processes come and go by new names would fill the state with the names of the dead. Only our own clock counts.
 * One that is judged wrongly (it hung for all that time) is told at its next write that it is out, and starts anew.
 */
import type { HostIdentity } from "../ports/host-identity.ts";
import type { Clock } from "../time/clock.ts";
import type { Owner } from "./state.ts";
import { isRecovery } from "./windows.ts";

/** Leases without a single write. */
const SILENT_LEASES = 40;

export interface SilenceOptions {
  readonly clock: Clock;
  readonly host: HostIdentity;
  readonly leaseMs: number;
}

export class Silence {
  readonly #o: SilenceOptions;
  #seen = new Map<string, { readonly beat: number; readonly since: number }>();

  constructor(options: SilenceOptions) {
    this.#o = options;
  }

  /** Those that are gone, each with the beat at which it was judged. Call it at every heartbeat. */
  gone(owners: readonly Owner[], self: string): ReadonlyMap<string, number> {
    const now = this.#o.clock.monotonic();
    const seen = new Map<string, { readonly beat: number; readonly since: number }>();
    const gone = new Map<string, number>();
    for (const { instance, beat, host } of owners) {
      if (instance === self) continue;
      const before = this.#seen.get(instance);
      const since = before?.beat === beat ? before.since : now;
      seen.set(instance, { beat, since });
      const life = this.#o.host.isAlive(host);
      if (life === "dead" || now - since >= this.#longest(instance, life, self)) gone.set(instance, beat);
    }
    this.#seen = seen;
    return gone;
  }

  /** How long it has written nothing, as far as was seen, ms; null: it was not seen before. */
  silentMs(instance: string): number | null {
    const seen = this.#seen.get(instance);
    return seen === undefined ? null : this.#o.clock.monotonic() - seen.since;
  }

  /** How long an owner may write nothing, ms. */
  #longest(of: string, life: "alive" | "unknown", self: string): number {
    const { leaseMs } = this.#o;
    // Its windows are wanted by others: one that hangs has lost them, however alive the machine calls it.
    if (isRecovery(of) && isRecovery(self)) return leaseMs;
    if (life === "alive") return Number.POSITIVE_INFINITY;
    // Whom recovery misjudges claims its streams once more, and goes on.
    return isRecovery(self) ? leaseMs : SILENT_LEASES * leaseMs;
  }
}

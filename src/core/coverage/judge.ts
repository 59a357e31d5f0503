/** Whether the owners that a store names still live, before somebody takes their place. */
import { Failure } from "../failure/failure.ts";
import type { HostIdentity } from "../ports/host-identity.ts";
import { type Clock, sleep } from "../time/clock.ts";
import { ownerText } from "./changes.ts";
import type { Owner } from "./state.ts";
import { isRecovery } from "./windows.ts";

export interface Judge {
  /** Of the process that wants to enter. */
  readonly instance: string;
  readonly host: HostIdentity;
  readonly clock: Clock;
  /** An owner of whom nothing else is known is dead when its beat stood still this long on our clock. */
  readonly leaseMs: number;
  /** Where the store is, for messages. */
  readonly place: string;
  /** Ends the wait. */
  readonly signal: AbortSignal;
  /** The owners as the store names them now. */
  owners(): Promise<readonly Owner[]>;
  /** Told when an owner of unknown fate is being waited for. */
  readonly waiting: ((owner: string, ms: number) => void) | undefined;
}

/** Owners that are surely gone, with the beat at which that was found. Throws coverage.owned for a living one. */
export async function judgeOwners(j: Judge, found: readonly Owner[]): Promise<ReadonlyMap<string, number>> {
  const gone = new Map<string, number>();
  for (const o of found) {
    if (o.instance === j.instance) continue;
    const life = j.host.isAlive(o.host);
    if (life === "alive") throw owned(o, j.place);
    if (life === "unknown") await waitForBeat(j, o);
    gone.set(o.instance, o.beat);
  }
  return gone;
}

/** Only our own clock counts: an owner that writes nothing for the whole lease has lost it. */
async function waitForBeat(j: Judge, o: Owner): Promise<void> {
  const { leaseMs } = j;
  j.waiting?.(ownerText(o), leaseMs);
  const until = j.clock.monotonic() + leaseMs;
  for (let left = leaseMs; left > 0; left = until - j.clock.monotonic()) {
    await sleep(j.clock, Math.min(1000, leaseMs / 4, left), j.signal);
    const found = (await j.owners()).find((x) => x.instance === o.instance);
    if (found === undefined) return;
    if (found.beat !== o.beat) throw owned(found, j.place);
  }
}

function owned(o: Owner, place: string): Failure {
  return new Failure("coverage.owned", `another process works on this sink: ${ownerText(o)}`, {
    at: place,
    hint: "Stop it first, or give this pipeline another name or path",
  });
}

/** Those of the owners whose machine knows them to be dead, with their beats. */
export function surelyDead(owners: readonly Owner[], host: HostIdentity): ReadonlyMap<string, number> {
  const dead = owners.filter((o) => host.isAlive(o.host) === "dead");
  return new Map(dead.map((o) => [o.instance, o.beat]));
}

/**
 * Whose place somebody may take who enters. Recovery takes that of its like only: a grant takes live owners out, with what that
 * takes. `judged`: of those who read the source, for one who must be alone with them.
 */
export async function displacedOwners(
  me: { readonly instance: string; readonly shared: boolean; readonly host: HostIdentity },
  there: readonly Owner[],
  judged: (ingest: readonly Owner[]) => Promise<ReadonlyMap<string, number>>,
): Promise<ReadonlyMap<string, number>> {
  const recovery = there.filter((o) => isRecovery(o.instance));
  if (isRecovery(me.instance)) return surelyDead(recovery, me.host);
  if (me.shared) return surelyDead(there, me.host);
  const ingest = there.filter((o) => !isRecovery(o.instance));
  return new Map([...(await judged(ingest)), ...surelyDead(recovery, me.host)]);
}

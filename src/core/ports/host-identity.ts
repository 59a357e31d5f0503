/** Which process owns something, and whether it still runs, as far as this machine can tell. */

/** Enough to know a process again without mistaking a later one that got its pid. */
export interface HostId {
  readonly hostname: string;
  readonly pid: number;
  /** Changes with every boot of the machine; empty where it is not known. */
  readonly bootId: string;
  /** Pids are comparable only within one namespace (containers have their own); empty where not known. */
  readonly pidNamespace: string;
  /** Start of the process in clock ticks since boot, as text; empty where not known. */
  readonly startTime: string;
}

export type Life = "alive" | "dead" | "unknown";

export interface HostIdentity {
  readonly self: HostId;
  /** "unknown" unless the machine itself gives proof: another host or container is always unknown. */
  isAlive(other: HostId): Life;
}

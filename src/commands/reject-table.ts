/** A table of refused records as `inspect rejects` sees it, wherever it lies. One file a kind of target. */
import type { Failure } from "../core/failure/failure.ts";
import type { RejectGroup, RejectGroups } from "./reject-groups.ts";

/** At most so many bytes of a key or value are held and shown. */
export const MOST_SHOWN = 4096;

export interface RejectBytes {
  readonly length: number;
  /** The first of them. */
  readonly head: Uint8Array;
}

/** A record that is an example of its group. */
export interface RejectSample {
  readonly partition: number;
  readonly offset: bigint;
  /** ms since the epoch. */
  readonly ms: number | null;
  /** Within the value, exactly. */
  readonly path: string;
  readonly message: string;
  readonly key: RejectBytes | null;
  readonly value: RejectBytes | null;
}

export interface RejectTable {
  readonly groups: RejectGroups;
  /** Files that are read; null where there are none. */
  readonly files: number | null;
  /** Of files that cannot be read. */
  readonly failures: readonly Failure[];
  /** The first of each group, so many at most. */
  samples(of: readonly RejectGroup[]): Promise<ReadonlyMap<RejectGroup, readonly RejectSample[]>>;
}

export function rejectBytes(bytes: unknown): RejectBytes | null {
  if (!(bytes instanceof Uint8Array)) return null;
  return { length: bytes.length, head: bytes.slice(0, MOST_SHOWN) };
}

/** Numbers of 64 bits and instants beyond what a Date can tell are null. */
export function msOf(value: unknown): number | null {
  const ms = value instanceof Date ? value.getTime() : Number(value ?? Number.NaN);
  return Math.abs(ms) <= 8.64e15 ? ms : null;
}

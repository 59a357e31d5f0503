/**
 * One small object that changes only by compare-and-swap, and immutable segments beside it. Fit for a local
 * folder, memory and object stores with conditional writes; everything that coverage promises rests on `write`.
 */

export interface Versioned {
  /** Grows by one with every write that won. */
  readonly version: number;
  readonly bytes: Uint8Array;
  /** Name of the object that the bytes came from, for messages. */
  readonly name: string;
}

/**
 * won: this write, and no other, followed `expected`, and it is durable. lost: it has no effect and never will.
 * unknown: it may have had, or may still have, its effect; the caller reads again and looks for its tag.
 */
export type WriteOutcome = "won" | "lost" | "unknown";

export interface VersionedStore {
  /** Where it is, for messages. No secrets. */
  readonly place: string;
  /** Makes the place and proves that a second conditional write to the same version is refused there. */
  prepare(): Promise<void>;
  /** The newest version, durable when this resolves; null if nothing was ever written. */
  read(): Promise<Versioned | null>;
  /**
   * Writes the version after `expected` (null: the first). `tag` is unique to the attempt. A Failure that is
   * thrown means like "lost" that there is no effect and never will be; what is not sure is "unknown".
   */
  write(expected: number | null, bytes: Uint8Array, tag: string): Promise<WriteOutcome>;
  /** Durable when it resolves. Writing the same name with the same bytes again is allowed. */
  putSegment(name: string, bytes: Uint8Array): Promise<void>;
  getSegment(name: string): Promise<Uint8Array | null>;
  /**
   * Removes unfinished writes, and segments that `keep` does not name (null: none). Only for a sole owner; one that
   * others may join meanwhile keeps all segments, since theirs are not named yet.
   */
  sweep(keep: ReadonlySet<string> | null): Promise<void>;
}

/** Chance as a port, so that one seed replays a run. */
export interface Chance {
  /** A float in [0, 1). */
  next(): number;
  /** `n` random bytes. */
  bytes(n: number): Uint8Array;
}

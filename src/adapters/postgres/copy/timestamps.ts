/**
 * Timestamps of PostgreSQL: microseconds since 2000-01-01 UTC as int64, its ends meaning infinity. Computed in doubles
 * and int32 halves, since a BigInt per value costs more than the rest of a row.
 */

/** 2000-01-01 in milliseconds since 1970. */
const EPOCH_MS = 946_684_800_000;
/** 4713-11-24 BC in milliseconds since 1970: nothing earlier is a timestamp (Julian day 0). */
const FIRST_MS = -210_866_803_200_000;
/** Largest whole number of milliseconds that a double holds: in the year 287396, short of the server's own end. */
const LAST_MS = Number.MAX_SAFE_INTEGER;
const TWO_32 = 4_294_967_296;
const TWO_22 = 4_194_304;
const TWO_10 = 1024;

/** True if the milliseconds, as int32 halves, are beyond what a timestamp can be. */
export function isBeyond(high: number, low: number): boolean {
  const ms = high * TWO_32 + (low >>> 0);
  return ms < FIRST_MS || ms >= LAST_MS;
}

/** Writes the timestamp of so many milliseconds; beyond the ends: infinity of that side. */
export function putMilliseconds(view: DataView, at: number, high: number, low: number): void {
  const ms = high * TWO_32 + (low >>> 0);
  if (ms >= LAST_MS) putInfinity(view, at, true);
  else if (ms < FIRST_MS) putInfinity(view, at, false);
  else {
    // x * 1000 in 64 bits, from parts that a double holds exactly.
    const x = ms - EPOCH_MS;
    const xh = Math.floor(x / TWO_22);
    const a = xh * 1000;
    const ah = Math.floor(a / TWO_10);
    const sum = (a - ah * TWO_10) * TWO_22 + (x - xh * TWO_22) * 1000;
    const carry = Math.floor(sum / TWO_32);
    view.setInt32(at, ah + carry);
    view.setUint32(at + 4, sum - carry * TWO_32);
  }
}

/** The milliseconds that a timestamp stands for, down to whole ones. Of infinity there are none. */
export function millisecondsAt(view: DataView, at: number): number {
  const high = view.getInt32(at);
  // An int64 divided by 1000, from parts that a double holds exactly.
  const quotient = Math.floor(high / 1000);
  const rest = (high - quotient * 1000) * TWO_32 + view.getUint32(at + 4);
  return quotient * TWO_32 + Math.floor(rest / 1000) + EPOCH_MS;
}

export function putInfinity(view: DataView, at: number, positive: boolean): void {
  view.setUint32(at, positive ? 0x7fff_ffff : 0x8000_0000);
  view.setUint32(at + 4, positive ? 0xffff_ffff : 0);
}

/**
 * Which types of a column become which without a loss, and what that costs: the server's rules of ALTER COLUMN TYPE
 * (documentation, "ALTER TABLE"; the types' support functions decide whether a table is written anew). Spelled as
 * `format_type` does.
 *
 *   in place   varchar(n) to varchar and text, numeric of more digits before the point: the catalogue changes, no row does
 *   rewrite    smallint, integer to a larger one, real to double precision, numeric of more digits behind the point;
 *              date to timestamp, where that was asked for: every row and every index of the column is written anew
 *
 * Values of each of them take another number of bytes in a binary COPY, or the very same bytes, so rows for the old type
 * never pass for rows of the new one. Integers to numeric are left out: eight bytes of a bigint may pass for a zero there.
 */
export type Widening = "in place" | "rewrite";

const INTEGERS = ["smallint", "integer", "bigint"];
const TEXTS = ["character varying", "text"];
/** Digits that the server allows in all. */
const MAX_PRECISION = 1000;

/** Null: `to` does not hold every value of `from`, or it is not known to. */
export function wideningOf(from: string, to: string, dateToTimestamp: boolean): Widening | null {
  if (INTEGERS.includes(from) && INTEGERS.indexOf(to) > INTEGERS.indexOf(from)) return "rewrite";
  if (from === "real" && to === "double precision") return "rewrite";
  if (from === "date" && to === "timestamp without time zone") return dateToTimestamp ? "rewrite" : null;
  if (TEXTS.includes(to))
    return /^character varying(\(\d+\))?$/.test(from) && from !== to ? "in place" : null;
  const [a, b] = [numericOf(from), numericOf(to)];
  if (a === null || b === null || from === to) return null;
  if (b.scale < a.scale || b.whole < a.whole) return null;
  return a.scale === b.scale ? "in place" : "rewrite";
}

/** The type to which a column is changed so that it holds what it has and what is wanted. */
export function widerType(found: string, wanted: string): string {
  const [a, b] = [numericOf(found), numericOf(wanted)];
  if (a === null || b === null) return wanted;
  const scale = Math.max(a.scale, b.scale);
  const precision = Math.max(a.whole, b.whole) + scale;
  return precision > MAX_PRECISION ? wanted : `numeric(${precision},${scale})`;
}

function numericOf(type: string): { readonly whole: number; readonly scale: number } | null {
  const match = /^numeric\((\d+),(\d+)\)$/.exec(type);
  return match === null ? null : { whole: Number(match[1]) - Number(match[2]), scale: Number(match[2]) };
}

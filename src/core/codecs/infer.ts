/**
 * The narrowest type that holds every one of some texts exactly. A number with leading zeros is text (it is a code, not
 * a quantity), and so is everything that a type would change.
 */

import { plainNumber } from "../types/read-numbers.ts";
import { daysOf } from "../types/read-times.ts";
import type { ColumnType } from "../types/table-batch.ts";

const TEXT: ColumnType = { id: "utf8" };
const MAX_INT64 = 2n ** 63n - 1n;
const MAX_PRECISION = 38;
/** Decimal digits that a double always keeps. */
const DOUBLE_DIGITS = 15;

const INTEGER = /^-?(0|[1-9]\d*)$/;
const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d{1,3})?$/;
const BOOLEAN = /^(true|false)$/i;
const DATE = /^\d{4}-\d\d-\d\d$/;
const CLOCK = String.raw`(?:[01]\d|2[0-3]):[0-5]\d`;
const OFFSET = String.raw`(?:Z|[+-](?:0\d|1[0-8])(?::?[0-5]\d)?)`;
const TIMESTAMP = new RegExp(
  String.raw`^(\d{4})-\d\d-\d\d[T ]${CLOCK}(?::[0-5]\d(?:[.,](\d{1,9}))?)?( ?${OFFSET})?$`,
);
const TIME = new RegExp(String.raw`^${CLOCK}(?::[0-5]\d(?:\.\d{1,6})?)?$`);
/** Years that lie whole within the nanoseconds of 64 bits. */
const NS_YEARS = [1678, 2261] as const;

export function inferType(texts: readonly (string | null)[]): ColumnType {
  const values = texts.filter((t) => t !== null && t !== "") as string[];
  if (values.length === 0 || values.length < texts.filter((t) => t !== null).length) return TEXT;
  if (values.every((v) => BOOLEAN.test(v))) return { id: "bool" };
  if (values.every((v) => INTEGER.test(v))) return integerType(values);
  if (values.every((v) => NUMBER.test(v))) return numberType(values);
  return temporalType(values) ?? TEXT;
}

/** Null: they are no dates or times, all of one kind. */
export function temporalType(values: readonly string[]): ColumnType | null {
  if (values.every((v) => DATE.test(v) && isDay(v))) return { id: "date32" };
  if (values.every((v) => TIME.test(v))) return { id: "time64", unit: "us" };
  const stamps = values.map((v) => TIMESTAMP.exec(v));
  if (!stamps.every((m) => m !== null && isDay(m[0].slice(0, 10)))) return null;
  const zoned = stamps.filter((m) => m![3] !== undefined).length;
  if (zoned !== 0 && zoned !== stamps.length) return null;
  const nanos = stamps.some((m) => /[1-9]/.test((m![2] ?? "").slice(6)));
  if (nanos && !stamps.every((m) => Number(m![1]) >= NS_YEARS[0] && Number(m![1]) <= NS_YEARS[1]))
    return null;
  return { id: "timestamp", unit: nanos ? "ns" : "us", zone: zoned > 0 ? "UTC" : null };
}

function isDay(text: string): boolean {
  return !Number.isNaN(daysOf(+text.slice(0, 4), +text.slice(5, 7), +text.slice(8, 10)));
}

function integerType(values: readonly string[]): ColumnType {
  let digits = 0;
  let long = false;
  for (const v of values) {
    const n = v.length - (v.startsWith("-") ? 1 : 0);
    digits = Math.max(digits, n);
    if (n > MAX_PRECISION) long = true;
    else if (n >= 19) {
      const big = BigInt(v);
      long ||= big > MAX_INT64 || big < -MAX_INT64 - 1n;
    }
  }
  if (!long) return { id: "int", bits: 64, signed: true };
  return digits <= MAX_PRECISION ? { id: "decimal", precision: MAX_PRECISION, scale: 0 } : TEXT;
}

function numberType(values: readonly string[]): ColumnType {
  let whole = 1;
  let scale = 0;
  let double = true;
  let plain = true;
  for (const v of values) {
    const p = plainNumber(v);
    if (p === null) return TEXT;
    double &&= p.digits.length <= DOUBLE_DIGITS && Math.abs(p.digits.length + p.exponent) <= 300;
    plain &&= !/[eE]/.test(v);
    whole = Math.max(whole, p.digits.length + p.exponent);
    scale = Math.max(scale, -p.exponent);
  }
  if (double) return { id: "float", bits: 64 };
  return plain && whole + scale <= MAX_PRECISION ? { id: "decimal", precision: MAX_PRECISION, scale } : TEXT;
}

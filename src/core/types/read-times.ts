/**
 * Dates and times from ISO 8601 text: YYYY-MM-DD, with T or a space before HH:MM[:SS[.fraction]], and Z or an offset
 * where the column has a zone. Nothing is rounded: a fraction that the unit cannot hold is a fault.
 */
import type { FixedBuilder } from "./column-builder.ts";
import { putScaled } from "./read-numbers.ts";
import { FAULT, type Faults, type TextCells } from "./text-cells.ts";

const DAYS_BEFORE = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
const DAYS_IN = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
const PER_SECOND = { s: 1, ms: 1e3, us: 1e6, ns: 1e9 } as const;
export type TimeUnit = keyof typeof PER_SECOND;

const leap = (y: number): boolean => (y % 4 === 0 && y % 100 !== 0) || y % 400 === 0;

/** Days since 1970-01-01 of a date of the proleptic Gregorian calendar; NaN if there is no such day. */
export function daysOf(year: number, month: number, day: number): number {
  if (month < 1 || month > 12 || day < 1) return Number.NaN;
  const most = month === 2 && leap(year) ? 29 : DAYS_IN[month - 1]!;
  if (day > most) return Number.NaN;
  const y = year - 1;
  const before = 365 * y + Math.floor(y / 4) - Math.floor(y / 100) + Math.floor(y / 400);
  return before - 719_162 + DAYS_BEFORE[month - 1]! + (month > 2 && leap(year) ? 1 : 0) + day - 1;
}

function twoDigits(b: Uint8Array, at: number): number {
  const hi = b[at]! - 48;
  const lo = b[at + 1]! - 48;
  return hi >= 0 && hi <= 9 && lo >= 0 && lo <= 9 ? hi * 10 + lo : Number.NaN;
}

/** Of the ten bytes YYYY-MM-DD at `at`, else NaN. */
function isoDate(b: Uint8Array, at: number, end: number): number {
  if (end - at < 10 || b[at + 4] !== 45 || b[at + 7] !== 45) return Number.NaN;
  const year = twoDigits(b, at) * 100 + twoDigits(b, at + 2);
  return daysOf(year, twoDigits(b, at + 5), twoDigits(b, at + 8));
}

export function readDates(cells: TextCells, column: number, into: FixedBuilder, faults: Faults): void {
  const { bytes, starts, ends, stride, rows } = cells;
  into.reserve(rows);
  const out = into.i32;
  for (let r = 0, at = column; r < rows; r++, at += stride) {
    const start = starts[at]!;
    if (start < 0) {
      into.pushNull();
      continue;
    }
    const days = ends[at]! - start === 10 ? isoDate(bytes, start, start + 10) : Number.NaN;
    out[into.rows++] = days;
    if (Number.isNaN(days)) faults.add(r, column, FAULT.type);
  }
}

/** What `clock` found; reused, since one is needed for every cell. */
class ClockTime {
  seconds = 0;
  fraction = 0;
  /** Position behind it. */
  at = 0;
}

/** HH:MM[:SS[.f]] at `from`; a fault, or 0. `perSecond`: units of the fraction. */
function clock(b: Uint8Array, from: number, end: number, perSecond: number, out: ClockTime): number {
  if (end - from < 5 || b[from + 2] !== 58) return FAULT.type;
  const hours = twoDigits(b, from);
  const minutes = twoDigits(b, from + 3);
  let seconds = 0;
  out.fraction = 0;
  out.at = from + 5;
  if (out.at < end && b[out.at] === 58) {
    if (end - out.at < 3) return FAULT.type;
    seconds = twoDigits(b, out.at + 1);
    out.at += 3;
    const mark = out.at < end ? b[out.at] : 0;
    const fault = mark === 46 || mark === 44 ? fraction(b, end, perSecond, out) : 0;
    if (fault !== 0) return fault;
  }
  // A leap second (23:59:60) has no place in these types.
  if (!(hours <= 23 && minutes <= 59 && seconds <= 59)) return FAULT.type;
  out.seconds = hours * 3600 + minutes * 60 + seconds;
  return 0;
}

/** The digits behind the mark at out.at. Those that the unit cannot hold must be zeros. */
function fraction(b: Uint8Array, end: number, perSecond: number, out: ClockTime): number {
  let scale = perSecond;
  const first = ++out.at;
  for (; out.at < end; out.at++) {
    const d = b[out.at]! - 48;
    if (d < 0 || d > 9) break;
    scale /= 10;
    if (scale >= 1) out.fraction += d * scale;
    else if (d !== 0) return FAULT.precision;
  }
  return out.at === first ? FAULT.type : 0;
}

/** Seconds east of UTC of Z, +HH, +HHMM or +HH:MM that ends the cell; NaN if it is none of them. */
function offset(b: Uint8Array, at: number, end: number): number {
  if (end - at === 1 && (b[at] === 90 || b[at] === 122)) return 0;
  const sign = b[at] === 43 ? 1 : b[at] === 45 ? -1 : Number.NaN;
  const hours = twoDigits(b, at + 1);
  const rest = end - at - 3;
  if (rest === 0) return hours <= 18 ? sign * hours * 3600 : Number.NaN;
  const colon = b[at + 3] === 58 ? 1 : 0;
  if (rest !== 2 + colon) return Number.NaN;
  const minutes = twoDigits(b, at + 3 + colon);
  return hours <= 18 && minutes <= 59 ? sign * (hours * 3600 + minutes * 60) : Number.NaN;
}

export function readTimestamps(
  unit: TimeUnit,
  zoned: boolean,
  cells: TextCells,
  column: number,
  into: FixedBuilder,
  faults: Faults,
): void {
  const { bytes, starts, ends, stride, rows } = cells;
  into.reserve(rows);
  const out = into.i32;
  const perSecond = PER_SECOND[unit];
  const time = new ClockTime();
  for (let r = 0, at = column; r < rows; r++, at += stride) {
    const start = starts[at]!;
    if (start < 0) {
      into.pushNull();
      continue;
    }
    const fault = timestamp(bytes, start, ends[at]!, zoned, perSecond, time);
    const row = into.rows++;
    if (fault === 0) putScaled(out, 2 * row, time.seconds, perSecond, time.fraction);
    else faults.add(r, column, fault);
  }
}

/** Nanoseconds in 64 bits begin and end in these seconds. */
const NS_FIRST = { seconds: -9_223_372_037, fraction: 145_224_192 } as const;
const NS_LAST = { seconds: 9_223_372_036, fraction: 854_775_807 } as const;

function fitsNanoseconds({ seconds, fraction }: Pick<ClockTime, "seconds" | "fraction">): boolean {
  if (seconds === NS_FIRST.seconds) return fraction >= NS_FIRST.fraction;
  if (seconds === NS_LAST.seconds) return fraction <= NS_LAST.fraction;
  return seconds > NS_FIRST.seconds && seconds < NS_LAST.seconds;
}

/** Leaves seconds since the epoch in `out`. A date alone is its midnight, but only where there is no zone. */
function timestamp(
  b: Uint8Array,
  start: number,
  end: number,
  zoned: boolean,
  perSecond: number,
  out: ClockTime,
): number {
  const days = isoDate(b, start, end);
  if (Number.isNaN(days)) return FAULT.type;
  out.seconds = 0;
  out.fraction = 0;
  out.at = start + 10;
  if (out.at < end) {
    const between = b[out.at];
    if (between !== 84 && between !== 32 && between !== 116) return FAULT.type;
    const fault = clock(b, out.at + 1, end, perSecond, out);
    if (fault !== 0) return fault;
  }
  let shift = 0;
  if (out.at < end) {
    // A blank before the offset is how PostgreSQL and Python's str() part them.
    shift = offset(b, b[out.at] === 32 ? out.at + 1 : out.at, end);
    if (Number.isNaN(shift)) return FAULT.type;
    if (!zoned) return FAULT.zone;
  } else if (zoned) return FAULT.zone;
  out.seconds += days * 86_400 - shift;
  return perSecond === 1e9 && !fitsNanoseconds(out) ? FAULT.range : 0;
}

export function readTimes(
  unit: "us" | "ns",
  cells: TextCells,
  column: number,
  into: FixedBuilder,
  faults: Faults,
): void {
  const { bytes, starts, ends, stride, rows } = cells;
  into.reserve(rows);
  const out = into.i32;
  const time = new ClockTime();
  for (let r = 0, at = column; r < rows; r++, at += stride) {
    const start = starts[at]!;
    if (start < 0) {
      into.pushNull();
      continue;
    }
    const end = ends[at]!;
    let fault: number = clock(bytes, start, end, PER_SECOND[unit], time);
    if (fault === 0 && time.at !== end) fault = FAULT.type;
    const row = into.rows++;
    if (fault === 0) putScaled(out, 2 * row, time.seconds, PER_SECOND[unit], time.fraction);
    else faults.add(r, column, fault);
  }
}

/**
 * Dates and times of Arrow (since 1970, in seconds to nanoseconds) as those of PostgreSQL (since 2000, in days and
 * microseconds). What PostgreSQL would round or cannot reach has a problem; the ends of int64 and int32 are infinity,
 * as DuckDB writes it.
 */
import type { CellProblem } from "./cell.ts";
import { putInfinity } from "./timestamps.ts";

export type Unit = "s" | "ms" | "us" | "ns";
export const unitOf = (unit: Unit): Unit => unit;

/** Days from 1970 to 2000. */
const EPOCH_DAYS = 10_957;
const EPOCH_US = 946_684_800_000_000n;
/** 4714-11-24 BC, and the first moment that is too late: the ends of the server's own check, since 1970. */
const FIRST_US = -210_866_803_200_000_000n;
const END_US = 9_224_318_016_000_000_000n;
const FIRST_DAY = -2_440_588;
const END_DAY = 2_145_042_906;
const I32_MAX = 2_147_483_647;
const I32_MIN = -2_147_483_648;
const I64_MAX = 9_223_372_036_854_775_807n;

/** Microseconds of the value at `at`; null where it has a finer part. */
export function microseconds(source: DataView, at: number, unit: Unit): bigint | null {
  const value = source.getBigInt64(at, true);
  switch (unit) {
    case "s":
      return value * 1_000_000n;
    case "ms":
      return value * 1000n;
    case "us":
      return value;
    case "ns":
      return value % 1000n === 0n ? value / 1000n : null;
  }
}

function isInfinite(source: DataView, at: number): boolean {
  const value = source.getBigInt64(at, true);
  return value >= I64_MAX || value <= -I64_MAX;
}

export function timestampProblem(source: DataView, at: number, unit: Unit): CellProblem | null {
  if (isInfinite(source, at)) return null;
  const us = microseconds(source, at, unit);
  if (us === null) return "precision";
  return us < FIRST_US || us >= END_US ? "out_of_range" : null;
}

export function putMicroseconds(
  view: DataView,
  at: number,
  source: DataView,
  from: number,
  unit: Unit,
): void {
  if (isInfinite(source, from)) putInfinity(view, at, source.getBigInt64(from, true) > 0n);
  else view.setBigInt64(at, (microseconds(source, from, unit) ?? 0n) - EPOCH_US);
}

export function putTime(view: DataView, at: number, source: DataView, from: number, unit: Unit): void {
  view.setBigInt64(at, microseconds(source, from, unit) ?? 0n);
}

export function dateProblem(days: number): CellProblem | null {
  if (days === I32_MAX || days === I32_MIN || days === -I32_MAX) return null;
  return days < FIRST_DAY || days >= END_DAY ? "out_of_range" : null;
}

export function putDate(view: DataView, at: number, days: number): void {
  if (days === I32_MAX) view.setInt32(at, I32_MAX);
  else if (days <= -I32_MAX) view.setInt32(at, I32_MIN);
  else view.setInt32(at, days - EPOCH_DAYS);
}

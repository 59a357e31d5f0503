/** A column of one type as a column of another that holds every value of it, or the row has a fault. Nothing is rounded. */
import type { ColumnType, TableColumn } from "./table-batch.ts";
import { FAULT } from "./text-cells.ts";
import { typeText } from "./type-text.ts";

export function sameType(a: ColumnType, b: ColumnType): boolean {
  return typeText(a) === typeText(b);
}

/** Whether `castColumn` knows how. */
export function canCast(from: ColumnType, to: ColumnType): boolean {
  if (sameType(from, to)) return true;
  if (from.id === "int" && to.id === "int") return true;
  if (from.id === "float" && to.id === "float") return to.bits > from.bits;
  if (to.id === "decimal") return from.id === "int" || (from.id === "decimal" && to.scale >= from.scale);
  if (from.id === "timestamp" && to.id === "timestamp") return (from.zone === null) === (to.zone === null);
  return (from.id === "utf8" || from.id === "json") && (to.id === "utf8" || to.id === "binary");
}

/** Both types must be those of `canCast`. */
export function castColumn(
  c: TableColumn,
  to: ColumnType,
  fault: (row: number, fault: number) => void,
): TableColumn {
  const from = c.type;
  if (sameType(from, to)) return { ...c, type: to };
  if (from.id === "int" && to.id === "int") return castInts(c, from, to, fault);
  if (from.id === "timestamp" && to.id === "timestamp")
    return castTimes(c, UNITS[from.unit], UNITS[to.unit], to, fault);
  if (to.id === "decimal" && (from.id === "int" || from.id === "decimal"))
    return toDecimals(c, from, to, fault);
  if (from.id === "float" && to.id === "float") {
    const wide = Float64Array.from(new Float32Array(c.data.buffer, c.data.byteOffset, c.length));
    return { ...c, type: to, data: new Uint8Array(wide.buffer) };
  }
  return { ...c, type: to };
}

type Int = Extract<ColumnType, { id: "int" }>;
type Decimal = Extract<ColumnType, { id: "decimal" }>;

const isNull = ({ validity }: TableColumn, i: number): boolean =>
  validity !== null && ((validity[i >> 3]! >> (i & 7)) & 1) === 0;

/**
 * Whole numbers and decimals as decimals of a scale at least theirs. A schema that is not the writer's asks for it, so it may
 * be slow: values of 128 bits have no quicker form here.
 */
function toDecimals(
  c: TableColumn,
  from: Int | Decimal,
  to: Decimal,
  fault: (row: number, fault: number) => void,
): TableColumn {
  const view = new DataView(c.data.buffer, c.data.byteOffset, c.data.byteLength);
  const factor = 10n ** BigInt(to.scale - (from.id === "int" ? 0 : from.scale));
  const limit = 10n ** BigInt(to.precision);
  const out = new BigInt64Array(2 * c.length);
  for (let i = 0; i < c.length; i++) {
    if (isNull(c, i)) continue;
    const value = factor * (from.id === "int" ? wholeOf(view, from, i) : decimalOf(view, i));
    if (value >= limit || value <= -limit) fault(i, FAULT.range);
    out[2 * i] = value;
    out[2 * i + 1] = value >> 64n;
  }
  return { ...c, type: to, data: new Uint8Array(out.buffer) };
}

function wholeOf(view: DataView, from: Int, i: number): bigint {
  if (from.bits === 64) return from.signed ? view.getBigInt64(8 * i, true) : view.getBigUint64(8 * i, true);
  const low = lowOf(view, from, i);
  return BigInt(from.signed ? low : low >>> 0);
}

function decimalOf(view: DataView, i: number): bigint {
  return (view.getBigInt64(16 * i + 8, true) << 64n) | view.getBigUint64(16 * i, true);
}

/** Words of 32 bits: low and high of the value, whatever it is stored in. */
function castInts(
  c: TableColumn,
  from: Int,
  to: Int,
  fault: (row: number, fault: number) => void,
): TableColumn {
  const view = new DataView(c.data.buffer, c.data.byteOffset, c.data.byteLength);
  const data = new Uint8Array((c.length * to.bits) / 8);
  const out = new DataView(data.buffer);
  for (let i = 0; i < c.length; i++) {
    const low = lowOf(view, from, i);
    const high = from.bits === 64 ? view.getInt32(8 * i + 4, true) : from.signed ? low >> 31 : 0;
    if (!fits(low, high, from, to) && !isNull(c, i)) fault(i, FAULT.range);
    if (to.bits === 8) out.setInt8(i, low);
    else if (to.bits === 16) out.setInt16(2 * i, low, true);
    else out.setInt32((to.bits / 8) * i, low, true);
    if (to.bits === 64) out.setInt32(8 * i + 4, high, true);
  }
  return { ...c, type: to, data };
}

function lowOf(v: DataView, { bits, signed }: Int, i: number): number {
  if (bits === 8) return signed ? v.getInt8(i) : v.getUint8(i);
  if (bits === 16) return signed ? v.getInt16(2 * i, true) : v.getUint16(2 * i, true);
  return v.getInt32((bits / 8) * i, true);
}

/** `high` is the sign's extension, or that of an unsigned value. */
function fits(low: number, high: number, from: Int, to: Int): boolean {
  const negative = from.signed && high < 0;
  if (to.bits === 64) return to.signed ? negative || high >= 0 : !negative;
  if (negative) return to.signed && high === -1 && low < 0 && low >= -(2 ** (to.bits - 1));
  return high === 0 && low >>> 0 < 2 ** (to.signed ? to.bits - 1 : to.bits);
}

/** Units in a second. */
const UNITS = { s: 1n, ms: 1_000n, us: 1_000_000n, ns: 1_000_000_000n } as const;
const LEAST = -(2n ** 63n);

/** To a finer unit if it has room, to a coarser one if nothing is cut. Seldom wanted, so it may be slow. */
function castTimes(
  c: TableColumn,
  from: bigint,
  to: bigint,
  type: ColumnType,
  fault: (row: number, fault: number) => void,
): TableColumn {
  const values = new BigInt64Array(c.data.buffer, c.data.byteOffset, c.length);
  const out = new BigInt64Array(c.length);
  for (let i = 0; i < c.length; i++) {
    if (isNull(c, i)) continue;
    const scaled = values[i]! * to;
    const value = scaled / from;
    if (value * from !== scaled) fault(i, FAULT.precision);
    else if (value < LEAST || value >= -LEAST) fault(i, FAULT.range);
    else out[i] = value;
  }
  return { ...c, type, data: new Uint8Array(out.buffer) };
}

/**
 * Stored values as an engine gave them, made into the values that they stand for: exactly, or the row has a fault. No
 * object and no BigInt per value, decimals at the edge of their precision apart.
 */

import { putScaled } from "../../types/read-numbers.ts";
import type { ColumnType, TableColumn } from "../../types/table-batch.ts";
import { FAULT } from "../../types/text-cells.ts";
import type { ColumnPlan, Reading } from "./column-plan.ts";

/** Row of the column that is at fault, and how (`FAULT`). */
export type OnFault = (row: number, fault: number) => void;

type Leaf = Extract<ColumnPlan, { kind: "leaf" }>;

export interface ConvertOptions {
  readonly isUtf8: (bytes: Uint8Array) => boolean;
}

export function convertColumn(
  c: TableColumn,
  plan: ColumnPlan,
  o: ConvertOptions,
  fault: OnFault,
): TableColumn {
  switch (plan.kind) {
    case "leaf":
      return READERS[plan.reading](c, plan, fault, o);
    case "struct": {
      const children = plan.fields.map((f, i) => convertColumn(c.children[i]!, f, o, fault));
      return { ...c, type: plan.type, children };
    }
    default: {
      const offsets = c.offsets!;
      const lifted: OnFault = (item, why) => fault(rowOf(offsets, c.length, item), why);
      const item = convertColumn(c.children[0]!, plan.item, o, lifted);
      if (plan.kind === "map") eachNull(item.children[0]!, (i) => lifted(i, FAULT.null));
      return { ...c, type: plan.type, children: [item] };
    }
  }
}

/** The row whose items reach over `item`: the last that begins at or before it. */
function rowOf(offsets: Int32Array, rows: number, item: number): number {
  let low = 0;
  let high = rows - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (offsets[middle]! <= item) low = middle;
    else high = middle - 1;
  }
  return low;
}

export function isNull(c: TableColumn, row: number): boolean {
  return c.validity !== null && ((c.validity[row >> 3]! >> (row & 7)) & 1) === 0;
}

export function eachNull(c: TableColumn, use: (row: number) => void): void {
  if (c.validity === null) return;
  for (let i = 0; i < c.length; i++) if (isNull(c, i)) use(i);
}

type Reader = (c: TableColumn, plan: Leaf, fault: OnFault, o: ConvertOptions) => TableColumn;

const READERS: Readonly<Record<Reading, Reader>> = {
  same: (c, { type }) => ({ ...c, type }),
  narrow,
  time,
  timeMillis,
  text,
  decimal,
  decimalBytes,
  int96,
  float16,
  uuid,
  interval,
  nulls,
};

const int32sOf = (c: TableColumn): Int32Array =>
  new Int32Array(c.data.buffer, c.data.byteOffset, c.data.byteLength >> 2);

function narrow(c: TableColumn, { type }: Leaf, fault: OnFault): TableColumn {
  const { bits, signed } = type as Extract<ColumnType, { id: "int" }>;
  const values = int32sOf(c);
  const least = signed ? -(2 ** (bits - 1)) : 0;
  const most = signed ? 2 ** (bits - 1) - 1 : 2 ** bits - 1;
  const data = new Uint8Array((c.length * bits) / 8);
  const view = new DataView(data.buffer);
  for (let i = 0; i < c.length; i++) {
    const v = values[i]!;
    if ((v < least || v > most) && !isNull(c, i)) fault(i, FAULT.range);
    if (bits === 8) view.setInt8(i, v);
    else view.setInt16(2 * i, v, true);
  }
  return { ...c, type, data };
}

const TWO32 = 4_294_967_296;
const DAY_US = 86_400_000_000;

function time(c: TableColumn, { type }: Leaf, fault: OnFault): TableColumn {
  const most = (type as { readonly unit: string }).unit === "us" ? DAY_US : DAY_US * 1000;
  const words = int32sOf(c);
  for (let i = 0; i < c.length; i++) {
    const v = words[2 * i + 1]! * TWO32 + (words[2 * i]! >>> 0);
    if ((v < 0 || v >= most) && !isNull(c, i)) fault(i, FAULT.range);
  }
  return { ...c, type };
}

function timeMillis(c: TableColumn, { type }: Leaf, fault: OnFault): TableColumn {
  const values = int32sOf(c);
  const words = new Int32Array(2 * c.length);
  for (let i = 0; i < c.length; i++) {
    const v = values[i]! * 1000;
    if (v >= 0 && v < DAY_US) {
      words[2 * i] = v % TWO32;
      words[2 * i + 1] = Math.floor(v / TWO32);
    } else if (!isNull(c, i)) fault(i, FAULT.range);
  }
  return { ...c, type, data: new Uint8Array(words.buffer) };
}

/** All at once where it can be: concatenated texts are UTF-8 if each is, and seldom else. */
function text(c: TableColumn, { type }: Leaf, fault: OnFault, { isUtf8 }: ConvertOptions): TableColumn {
  const offsets = c.offsets!;
  const { data } = c;
  const whole = isUtf8(data) && beginsWhole(data, offsets, c.length);
  if (!whole)
    for (let i = 0; i < c.length; i++)
      if (!isUtf8(data.subarray(offsets[i]!, offsets[i + 1]!))) fault(i, FAULT.type);
  return { ...c, type };
}

/** No value begins within a character: 10xxxxxx never comes first. */
function beginsWhole(data: Uint8Array, offsets: Int32Array, rows: number): boolean {
  for (let i = 0; i < rows; i++) {
    const at = offsets[i]!;
    if (at < data.length && (data[at]! & 0xc0) === 0x80) return false;
  }
  return true;
}

/** int32 or int64, widened to 16 bytes with its sign. */
function decimal(c: TableColumn, { type, raw }: Leaf, fault: OnFault): TableColumn {
  const { precision } = type as Extract<ColumnType, { id: "decimal" }>;
  const words = (raw as { readonly bits: number }).bits / 32;
  const values = int32sOf(c);
  const out = new Int32Array(4 * c.length);
  for (let i = 0; i < c.length; i++) {
    const low = values[words * i]!;
    const high = words === 1 ? low >> 31 : values[2 * i + 1]!;
    out[4 * i] = low;
    out[4 * i + 1] = high;
    out[4 * i + 2] = high >> 31;
    out[4 * i + 3] = high >> 31;
  }
  return withinPrecision({ ...c, type, data: new Uint8Array(out.buffer) }, precision, fault);
}

/** Two's complement of any length, most significant byte first. */
function decimalBytes(c: TableColumn, { type }: Leaf, fault: OnFault): TableColumn {
  const { precision } = type as Extract<ColumnType, { id: "decimal" }>;
  const offsets = c.offsets!;
  const out = new Uint8Array(16 * c.length);
  for (let i = 0; i < c.length; i++) {
    const from = offsets[i]!;
    const to = offsets[i + 1]!;
    const sign = to > from && c.data[from]! > 127 ? 0xff : 0;
    let at = 16 * i;
    const end = at + 16;
    for (let b = to - 1; b >= from; b--) {
      const byte = c.data[b]!;
      if (at < end) out[at++] = byte;
      else if (byte !== sign && !isNull(c, i)) fault(i, FAULT.range);
    }
    // The sixteenth byte has lost its sign where a longer value does not fit.
    if (at === end && out[end - 1]! > 127 !== sign > 127) fault(i, FAULT.range);
    out.fill(sign, at, end);
    if (to === from && !isNull(c, i)) fault(i, FAULT.type);
  }
  return withinPrecision({ ...c, type, data: out }, precision, fault);
}

/** More digits than declared: by a double, and exactly where that is not sure. */
function withinPrecision(c: TableColumn, precision: number, fault: OnFault): TableColumn {
  const limit = 10 ** precision;
  const exact = 10n ** BigInt(precision);
  const w = new Int32Array(c.data.buffer);
  for (let i = 0; i < c.length; i++) {
    const near =
      ((w[4 * i + 3]! * TWO32 + (w[4 * i + 2]! >>> 0)) * TWO32 + (w[4 * i + 1]! >>> 0)) * TWO32 +
      (w[4 * i]! >>> 0);
    if (Math.abs(near) < limit * 0.999_999 || isNull(c, i)) continue;
    const v = new BigInt64Array(c.data.buffer, 16 * i, 2);
    const n = (v[1]! << 64n) | BigInt.asUintN(64, v[0]!);
    if (n >= exact || n <= -exact) fault(i, FAULT.range);
  }
  return c;
}

/** Julian day of 1970-01-01. */
const EPOCH_DAY = 2_440_588;
const DAY_S = 86_400;
const PER_SECOND = { s: 1, ms: 1e3, us: 1e6, ns: 1e9 } as const;

/** int64 nanoseconds of the day and int32 Julian day, both little endian (parquet-format, deprecated INT96). */
function int96(c: TableColumn, { type }: Leaf, fault: OnFault): TableColumn {
  const scale = PER_SECOND[(type as Extract<ColumnType, { id: "timestamp" }>).unit];
  const step = 1e9 / scale;
  // One second less than what an int64 of the unit reaches, so that the fraction needs no care.
  const most = Math.min(Math.floor(2 ** 63 / scale) - 1, 2 ** 38);
  const out = new Int32Array(2 * c.length);
  const view = new DataView(c.data.buffer, c.data.byteOffset, c.data.byteLength);
  for (let i = 0; i < c.length; i++) {
    const at = c.offsets![i]!;
    if (isNull(c, i)) continue;
    const nanos = view.getInt32(at + 4, true) * TWO32 + view.getUint32(at, true);
    const whole = Math.floor(nanos / 1e9);
    const seconds = (view.getInt32(at + 8, true) - EPOCH_DAY) * DAY_S + whole;
    const fraction = (nanos - whole * 1e9) / step;
    if (Math.abs(nanos) > 2 ** 53 || Math.abs(seconds) >= most) fault(i, FAULT.range);
    else if (fraction !== Math.floor(fraction)) fault(i, FAULT.precision);
    else putScaled(out, 2 * i, seconds, scale, fraction);
  }
  return fixed(c, type, new Uint8Array(out.buffer));
}

function fixed(c: TableColumn, type: ColumnType, data: Uint8Array): TableColumn {
  return { ...c, type, data, offsets: null };
}

function float16(c: TableColumn, { type }: Leaf): TableColumn {
  const out = new Float32Array(c.length);
  for (let i = 0; i < c.length; i++) {
    const at = c.offsets![i]!;
    if (c.offsets![i + 1]! - at === 2) out[i] = halfOf(c.data[at]! | (c.data[at + 1]! << 8));
  }
  return fixed(c, type, new Uint8Array(out.buffer));
}

/** IEEE 754 binary16: every one is a float. */
function halfOf(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return exponent === 0 ? sign * fraction * 2 ** -24 : sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

function uuid(c: TableColumn, { type }: Leaf): TableColumn {
  return fixed(c, type, spread(c, 16));
}

/** Values of one width, nulls with room of their own. */
function spread(c: TableColumn, width: number): Uint8Array {
  const out = new Uint8Array(width * c.length);
  for (let i = 0; i < c.length; i++) {
    const at = c.offsets![i]!;
    if (c.offsets![i + 1]! - at === width) out.set(c.data.subarray(at, at + width), width * i);
  }
  return out;
}

/** Three uint32: months, days, milliseconds; here int32, int32, int64 nanoseconds. */
function interval(c: TableColumn, { type }: Leaf, fault: OnFault): TableColumn {
  const stored = new Int32Array(spread(c, 12).buffer);
  const out = new Int32Array(4 * c.length);
  for (let i = 0; i < c.length; i++) {
    const months = stored[3 * i]!;
    const days = stored[3 * i + 1]!;
    if (months < 0 || days < 0) fault(i, FAULT.range);
    out[4 * i] = months;
    out[4 * i + 1] = days;
    putScaled(out, 4 * i + 2, stored[3 * i + 2]! >>> 0, 1e6, 0);
  }
  return fixed(c, type, new Uint8Array(out.buffer));
}

/** A column of nothing but nulls is text of nothing but nulls. */
function nulls(c: TableColumn, { type }: Leaf, fault: OnFault): TableColumn {
  if (c.nullCount < c.length) for (let i = 0; i < c.length; i++) if (!isNull(c, i)) fault(i, FAULT.type);
  return {
    type,
    length: c.length,
    nullCount: c.length,
    validity: new Uint8Array((c.length + 7) >> 3),
    offsets: new Int32Array(c.length + 1),
    data: new Uint8Array(0),
    children: [],
  };
}

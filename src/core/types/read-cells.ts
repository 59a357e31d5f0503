/** The reader of each column type: a column of text cells appended to a builder, faults told by row. */
import { BoolBuilder, BytesBuilder, type ColumnBuilder, FixedBuilder } from "./column-builder.ts";
import { readDecimals, readFloats, readIntegers } from "./read-numbers.ts";
import { readDates, readTimes, readTimestamps } from "./read-times.ts";
import type { ColumnType } from "./table-batch.ts";
import { FAULT, type Faults, type PackedColumn, type TextCells } from "./text-cells.ts";

export type CellReader = (cells: TextCells, column: number, faults: Faults) => void;

/** Null: the type has no text form (struct, list, map): the codec reads it by itself. */
export function cellReader(type: ColumnType, into: ColumnBuilder): CellReader | null {
  if (into instanceof BoolBuilder)
    return (cells, column, faults) => readBooleans(cells, column, into, faults);
  if (into instanceof BytesBuilder)
    return type.id === "binary"
      ? (cells, column, faults) => readBinary(cells, column, into, faults)
      : (cells, column) => readStrings(cells, column, into);
  return into instanceof FixedBuilder ? fixedReader(type, into) : null;
}

function fixedReader(type: ColumnType, into: FixedBuilder): CellReader | null {
  switch (type.id) {
    case "int":
      return (cells, column, faults) => readIntegers(type, cells, column, into, faults);
    case "float":
      return (cells, column, faults) => readFloats(type.bits, cells, column, into, faults);
    case "decimal":
      return (cells, column, faults) => readDecimals(type.precision, type.scale, cells, column, into, faults);
    case "date32":
      return (cells, column, faults) => readDates(cells, column, into, faults);
    case "timestamp":
      return (cells, column, faults) =>
        readTimestamps(type.unit, type.zone !== null, cells, column, into, faults);
    case "time64":
      return (cells, column, faults) => readTimes(type.unit, cells, column, into, faults);
    case "fixed":
      return type.as === "uuid" ? (cells, column, faults) => readUuids(cells, column, into, faults) : null;
    default:
      return null;
  }
}

/** Below this many bytes a loop beats the call that copies a view. */
const COPY_BY_HAND = 64;

export function readStrings(cells: TextCells, column: number, into: BytesBuilder): void {
  const { bytes, starts, ends, stride, rows } = cells;
  into.reserve(rows);
  if (cells.packed !== undefined) {
    takePacked(cells.packed(column, rows, into.bytes), cells, column, into);
    return;
  }
  let total = 0;
  for (let r = 0, at = column; r < rows; r++, at += stride) total += ends[at]! - starts[at]!;
  into.reserveBytes(total + rows);
  const { data, offsets } = into;
  let out = into.bytes;
  for (let r = 0, at = column; r < rows; r++, at += stride) {
    const start = starts[at]!;
    if (start < 0) {
      into.pushNull();
      continue;
    }
    const end = ends[at]!;
    if (end - start <= COPY_BY_HAND) for (let i = start; i < end; i++) data[out++] = bytes[i]!;
    else {
      data.set(bytes.subarray(start, end), out);
      out += end - start;
    }
    offsets[++into.rows] = out;
  }
}

function takePacked(
  { bytes, offsets, nulls }: PackedColumn,
  { starts, stride, rows }: TextCells,
  column: number,
  into: BytesBuilder,
): void {
  const first = into.rows;
  into.reserveBytes(bytes.length);
  into.data.set(bytes, into.bytes);
  into.offsets.set(offsets, first + 1);
  into.rows += rows;
  if (nulls === 0) return;
  for (let r = 0, at = column; r < rows; r++, at += stride)
    if (starts[at]! < 0) into.validity.clear(first + r);
}

const WORDS: readonly (readonly [string, number])[] = [
  ["true", 1],
  ["false", 0],
  ["t", 1],
  ["f", 0],
  ["1", 1],
  ["0", 0],
  ["yes", 1],
  ["no", 0],
  ["y", 1],
  ["n", 0],
];

/** 1, 0, or -1 for what is no boolean. */
function booleanOf(b: Uint8Array, start: number, end: number): number {
  const n = end - start;
  if (n < 1 || n > 5) return -1;
  for (const [word, value] of WORDS) {
    if (word.length !== n) continue;
    let i = 0;
    // Letters of either case; a digit's bit of case is set already.
    while (i < n && (b[start + i]! | 0x20) === word.charCodeAt(i)) i++;
    if (i === n) return value;
  }
  return -1;
}

function readBooleans(cells: TextCells, column: number, into: BoolBuilder, faults: Faults): void {
  const { bytes, starts, ends, stride, rows } = cells;
  into.reserve(rows);
  for (let r = 0, at = column; r < rows; r++, at += stride) {
    const start = starts[at]!;
    if (start < 0) {
      into.pushNull();
      continue;
    }
    const value = booleanOf(bytes, start, ends[at]!);
    into.push(value === 1);
    if (value < 0) faults.add(r, column, FAULT.type);
  }
}

function nibble(c: number): number {
  if (c >= 48 && c <= 57) return c - 48;
  const l = c | 32;
  return l >= 97 && l <= 102 ? l - 87 : -1;
}

/** Hexadecimal digits, after \x or 0x or plain. */
function readBinary(cells: TextCells, column: number, into: BytesBuilder, faults: Faults): void {
  const { bytes, starts, ends, stride, rows } = cells;
  into.reserve(rows);
  for (let r = 0, at = column; r < rows; r++, at += stride) {
    let start = starts[at]!;
    if (start < 0) {
      into.pushNull();
      continue;
    }
    const end = ends[at]!;
    if (end - start >= 2 && (bytes[start + 1]! | 32) === 120 && (bytes[start] === 92 || bytes[start] === 48))
      start += 2;
    into.reserveBytes((end - start) >> 1);
    let out = into.bytes;
    let bad = (end - start) % 2 !== 0;
    for (let i = start; i + 1 < end; i += 2) {
      const hi = nibble(bytes[i]!);
      const lo = nibble(bytes[i + 1]!);
      bad ||= hi < 0 || lo < 0;
      into.data[out++] = (hi << 4) | lo;
    }
    into.offsets[++into.rows] = out;
    if (bad) faults.add(r, column, FAULT.type);
  }
}

/** 36 characters with dashes, or 32 digits. */
function readUuids(cells: TextCells, column: number, into: FixedBuilder, faults: Faults): void {
  const { bytes, starts, ends, stride, rows } = cells;
  into.reserve(rows);
  for (let r = 0, at = column; r < rows; r++, at += stride) {
    const start = starts[at]!;
    if (start < 0) {
      into.pushNull();
      continue;
    }
    const row = into.rows++;
    if (!uuid(bytes, start, ends[at]!, into.u8, 16 * row)) faults.add(r, column, FAULT.type);
  }
}

function uuid(b: Uint8Array, start: number, end: number, out: Uint8Array, at: number): boolean {
  const dashed = end - start === 36;
  if (!dashed && end - start !== 32) return false;
  let i = start;
  for (let n = 0; n < 16; n++) {
    if (dashed && (n === 4 || n === 6 || n === 8 || n === 10) && b[i++] !== 45) return false;
    const hi = nibble(b[i++]!);
    const lo = nibble(b[i++]!);
    if (hi < 0 || lo < 0) return false;
    out[at + n] = (hi << 4) | lo;
  }
  return true;
}

/**
 * Numbers from text, exactly or not at all. An integer takes digits with a sign, or a number whose fraction is zero
 * (1.0, 1e3): the same value in another spelling. A double takes the nearest value, except where an integer of more than 53
 * bits would change or a finite number would become infinite; a float likewise, of integers those that are digits alone. A decimal never rounds.
 */
import type { FixedBuilder } from "./column-builder.ts";
import { FAULT, type Faults, latin1, type TextCells } from "./text-cells.ts";

const TWO16 = 65_536;
const TWO32 = 4_294_967_296;
const TWO53 = 9_007_199_254_740_992;
const TWO24 = 16_777_216;

/** Writes a * scale + low as int64 at word `at`; |a| < 2^38, scale <= 1e9, 0 <= low < 2^46. */
export function putScaled(out: Int32Array, at: number, a: number, scale: number, low: number): void {
  const high = Math.floor(a / TWO16);
  const p1 = high * scale;
  const p1High = Math.floor(p1 / TWO16);
  const x = (p1 - p1High * TWO16) * TWO16 + (a - high * TWO16) * scale + low;
  const carry = Math.floor(x / TWO32);
  out[at] = x - carry * TWO32;
  out[at + 1] = p1High + carry;
}

/** Digits of a trimmed cell as a JS number, or NaN if there is anything else or more than 15 digits. */
function shortInteger(b: Uint8Array, from: number, end: number): number {
  let i = from;
  const negative = b[i] === 45;
  if (negative || b[i] === 43) i++;
  const n = end - i;
  if (n < 1 || n > 15) return Number.NaN;
  let v = 0;
  for (; i < end; i++) {
    const d = b[i]! - 48;
    if (d < 0 || d > 9) return Number.NaN;
    v = v * 10 + d;
  }
  return negative ? -v : v;
}

/** 16 to 19 digits, straight into the words of `out`. False: it is something else. */
function longInteger(b: Uint8Array, from: number, end: number, out: Int32Array, at: number): boolean {
  let i = from;
  const negative = b[i] === 45;
  if (negative || b[i] === 43) i++;
  const n = end - i;
  if (n < 16 || n > 18) return false;
  let high = 0;
  let low = 0;
  const split = end - 9;
  for (; i < end; i++) {
    const d = b[i]! - 48;
    if (d < 0 || d > 9) return false;
    if (i < split) high = high * 10 + d;
    else low = low * 10 + d;
  }
  putScaled(out, at, high, 1e9, low);
  if (negative) {
    const lo = out[at]!;
    out[at] = -lo;
    out[at + 1] = lo === 0 ? -out[at + 1]! : ~out[at + 1]!;
  }
  return true;
}

const NUMBER = /^([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?$/;

export interface Plain {
  /** Value = digits * 10^exponent, without trailing zeros in digits unless it is zero. */
  readonly negative: boolean;
  readonly digits: string;
  readonly exponent: number;
}

/** Null: not a number in plain or scientific notation. */
export function plainNumber(text: string): Plain | null {
  const m = NUMBER.exec(text);
  if (m === null) return null;
  const [, sign, whole = "", fraction = "", e = "0"] = m;
  if (whole === "" && fraction === "") return null;
  const all = (whole + fraction).replace(/^0+/, "");
  const digits = all.slice(0, significant(all));
  const exponent = bounded(Number(e)) - fraction.length + (all.length - digits.length);
  return {
    negative: sign === "-",
    digits: digits === "" ? "0" : digits,
    exponent: digits === "" ? 0 : exponent,
  };
}

/** How many digits there are before the zeros at the end. A pattern would try each zero of a long number as the first of them. */
function significant(digits: string): number {
  let end = digits.length;
  while (end > 0 && digits.charCodeAt(end - 1) === 48) end--;
  return end;
}

/** Beyond it nothing fits but zero, whatever the digits: numbers are shorter. */
const MOST_EXPONENT = 2 ** 40;

function bounded(exponent: number): number {
  return Math.max(-MOST_EXPONENT, Math.min(MOST_EXPONENT, exponent));
}

/** The integer that the text says, a fault if it is none or has a fraction. */
function integerOf(text: string, maxDigits: number): bigint | number {
  const p = plainNumber(text);
  if (p === null) return FAULT.type;
  if (p.exponent < 0) return FAULT.precision;
  if (p.digits.length + p.exponent > maxDigits) return FAULT.range;
  const n = BigInt(p.digits) * 10n ** BigInt(p.exponent);
  return p.negative ? -n : n;
}

export interface IntegerBounds {
  readonly bits: 8 | 16 | 32 | 64;
  readonly signed: boolean;
}

/** int8 to int64 and their unsigned kin. */
export function readIntegers(
  { bits, signed }: IntegerBounds,
  cells: TextCells,
  column: number,
  into: FixedBuilder,
  faults: Faults,
): void {
  const { bytes, starts, ends, stride, rows } = cells;
  into.reserve(rows);
  const words = into.i32;
  const narrow = bits === 64 ? null : narrowView(into, bits);
  const min = signed ? -(2 ** (bits - 1)) : 0;
  const max = 2 ** (signed ? bits - 1 : bits) - 1;
  for (let r = 0, at = column; r < rows; r++, at += stride) {
    const start = starts[at]!;
    if (start < 0) {
      into.pushNull();
      continue;
    }
    const end = ends[at]!;
    const row = into.rows++;
    const v = shortInteger(bytes, start, end);
    if (v >= min && v <= max) {
      if (narrow !== null) narrow[row] = v;
      else {
        const hi = Math.floor(v / TWO32);
        words[2 * row] = v - hi * TWO32;
        words[2 * row + 1] = hi;
      }
      continue;
    }
    if (narrow === null && signed && longInteger(bytes, start, end, words, 2 * row)) continue;
    const fault = oddInteger(bits, signed, bytes, start, end, into, row);
    if (fault !== 0) faults.add(r, column, fault);
  }
}

function narrowView(into: FixedBuilder, bits: 8 | 16 | 32): Int8Array | Int16Array | Int32Array {
  // Two's complement: what an unsigned value stores is the same bits.
  if (bits === 8) return new Int8Array(into.buffer);
  return bits === 16 ? new Int16Array(into.buffer) : into.i32;
}

function oddInteger(
  bits: 8 | 16 | 32 | 64,
  signed: boolean,
  bytes: Uint8Array,
  start: number,
  end: number,
  into: FixedBuilder,
  row: number,
): number {
  const n = integerOf(latin1(bytes, start, end).trim(), 20);
  if (typeof n === "number") return n;
  const fits = signed ? BigInt.asIntN(bits, n) === n : BigInt.asUintN(bits, n) === n;
  if (!fits) return FAULT.range;
  const words = new BigInt64Array([BigInt.asIntN(64, n)]);
  into.u8.set(new Uint8Array(words.buffer, 0, bits / 8), (row * bits) / 8);
  return 0;
}

/** 10^0 to 10^22 are doubles, so one division or multiplication of an integer below 2^53 is rounded once. */
const POWERS = Float64Array.from({ length: 23 }, (_, i) => 10 ** i);
const SPECIAL: ReadonlyMap<string, number> = new Map([
  ["nan", Number.NaN],
  ["inf", Number.POSITIVE_INFINITY],
  ["+inf", Number.POSITIVE_INFINITY],
  ["-inf", Number.NEGATIVE_INFINITY],
  ["infinity", Number.POSITIVE_INFINITY],
  ["+infinity", Number.POSITIVE_INFINITY],
  ["-infinity", Number.NEGATIVE_INFINITY],
]);

export function readFloats(
  bits: 32 | 64,
  cells: TextCells,
  column: number,
  into: FixedBuilder,
  faults: Faults,
): void {
  const { bytes, starts, ends, stride, rows } = cells;
  into.reserve(rows);
  const out = bits === 64 ? into.f64 : new Float32Array(into.buffer);
  for (let r = 0, at = column; r < rows; r++, at += stride) {
    const start = starts[at]!;
    if (start < 0) {
      into.pushNull();
      continue;
    }
    const end = ends[at]!;
    const short = shortFloat(bytes, start, end);
    if (!Number.isNaN(short) && (bits === 64 || isSmallOrFraction(short))) {
      out[into.rows++] = short;
      continue;
    }
    const odd = oddFloat(latin1(bytes, start, end).trim(), bits);
    out[into.rows++] = odd.value;
    if (odd.fault !== 0) faults.add(r, column, odd.fault);
  }
}

/** The nearest double of at most 15 digits, with a point or without, else NaN. */
function shortFloat(b: Uint8Array, from: number, end: number): number {
  let i = from;
  const negative = b[i] === 45;
  if (negative) i++;
  const first = i;
  let v = 0;
  let point = -1;
  for (; i < end; i++) {
    const d = b[i]! - 48;
    if (d >= 0 && d <= 9) v = v * 10 + d;
    else if (d === -2 && point < 0) point = i;
    else return Number.NaN;
  }
  const digits = end - first - (point < 0 ? 0 : 1);
  if (digits === 0 || digits > 15) return Number.NaN;
  const scaled = point < 0 ? v : v / POWERS[end - point - 1]!;
  return negative ? -scaled : scaled;
}

/** Of a float of 32 bits: no whole number that it might not have. */
function isSmallOrFraction(n: number): boolean {
  return (n <= TWO24 && n >= -TWO24) || !Number.isInteger(n);
}

function oddFloat(text: string, bits: 32 | 64): { readonly value: number; readonly fault: number } {
  const special = SPECIAL.get(text.toLowerCase());
  if (special !== undefined) return { value: special, fault: 0 };
  const plain = plainNumber(text);
  if (plain === null) return { value: 0, fault: FAULT.type };
  const value = Number(text);
  const stored = bits === 32 ? Math.fround(value) : value;
  if (!Number.isFinite(stored)) return { value: 0, fault: FAULT.range };
  const whole = plain.exponent >= 0 && plain.digits.length + plain.exponent <= 40;
  // With a point or an exponent it is a measure, and what has fewer bits than a double is meant to round those.
  if (
    whole &&
    (bits === 64 || DIGITS.test(text)) &&
    Math.abs(value) >= (bits === 32 ? TWO24 : TWO53) &&
    !sameInteger(plain, stored, bits)
  )
    return { value: 0, fault: FAULT.precision };
  return { value, fault: 0 };
}

/** True also for the shortest text that stands for the value: what writers of floats print, as floats or as doubles. */
function sameInteger({ negative, digits, exponent }: Plain, value: number, bits: 32 | 64): boolean {
  const n = BigInt(digits) * 10n ** BigInt(exponent);
  if (BigInt(value) === (negative ? -n : n)) return true;
  const texts = bits === 64 ? [String(value)] : [String(value), shortestFloat(value)];
  return texts.map(plainNumber).some((t) => t?.digits === digits && t.exponent === exponent);
}

const DIGITS = /^[+-]?\d+$/;

/** Nine digits tell any two floats apart. */
const FLOAT_DIGITS = 9;

function shortestFloat(value: number): string {
  for (let digits = 1; digits < FLOAT_DIGITS; digits++) {
    const text = value.toPrecision(digits);
    if (Math.fround(Number(text)) === value) return text;
  }
  return value.toPrecision(FLOAT_DIGITS);
}

/** decimal(precision, scale): 16 bytes two's complement of value * 10^scale. */
export function readDecimals(
  precision: number,
  scale: number,
  cells: TextCells,
  column: number,
  into: FixedBuilder,
  faults: Faults,
): void {
  const { bytes, starts, ends, stride, rows } = cells;
  into.reserve(rows);
  const words = into.i32;
  for (let r = 0, at = column; r < rows; r++, at += stride) {
    const start = starts[at]!;
    if (start < 0) {
      into.pushNull();
      continue;
    }
    const row = into.rows++;
    const short = shortDecimal(bytes, start, ends[at]!, scale);
    if (short < TWO53 && short > -TWO53 && Math.abs(short) < 10 ** precision) {
      const hi = Math.floor(short / TWO32);
      words[4 * row] = short - hi * TWO32;
      words[4 * row + 1] = hi;
      words[4 * row + 2] = hi >> 31;
      words[4 * row + 3] = hi >> 31;
      continue;
    }
    const fault = oddDecimal(latin1(bytes, start, ends[at]!).trim(), precision, scale, words, 4 * row);
    if (fault !== 0) faults.add(r, column, fault);
  }
}

/** The scaled value of at most 15 digits in all, else NaN. */
function shortDecimal(b: Uint8Array, from: number, end: number, scale: number): number {
  let i = from;
  const negative = b[i] === 45;
  if (negative || b[i] === 43) i++;
  const first = i;
  let v = 0;
  let point = -1;
  for (; i < end; i++) {
    const d = b[i]! - 48;
    if (d >= 0 && d <= 9) v = v * 10 + d;
    else if (d === -2 && point < 0) point = i;
    else return Number.NaN;
  }
  const digits = end - first - (point < 0 ? 0 : 1);
  const missing = scale - (point < 0 ? 0 : end - point - 1);
  if (digits === 0 || missing < 0 || digits + missing > 15) return Number.NaN;
  const scaled = v * POWERS[missing]!;
  return negative ? -scaled : scaled;
}

function oddDecimal(text: string, precision: number, scale: number, words: Int32Array, at: number): number {
  const p = plainNumber(text);
  if (p === null) return FAULT.type;
  if (p.digits !== "0" && p.exponent < -scale) return FAULT.precision;
  if (p.digits !== "0" && p.digits.length + p.exponent + scale > precision) return FAULT.range;
  const n = p.digits === "0" ? 0n : BigInt(p.digits) * 10n ** BigInt(p.exponent + scale);
  const value = p.negative ? -n : n;
  for (let w = 0; w < 4; w++) words[at + w] = Number(BigInt.asIntN(32, value >> BigInt(32 * w)));
  return 0;
}

/**
 * JSON for jsonb: nested columns as text, and what of a text jsonb would refuse. Bytes are base64, decimals and 64-bit
 * numbers stay exact (jsonb's numbers are numeric), not-a-number and infinity are strings, maps with text keys objects.
 */
import type { ColumnType, TableColumn } from "../../../core/types/table-batch.ts";
import { type CellProblem, isValid } from "./cell.ts";
import { microseconds, unitOf } from "./times.ts";

const STRICT = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const TEXT = new TextDecoder("utf-8", { ignoreBOM: true });
/** An escaped half of a surrogate pair without its other half. */
const LONE =
  /(?<!\\)(?:\\\\)*\\u(?:d[89ab][0-9a-f]{2}(?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f]{2}\\u)d[c-f][0-9a-f]{2})/i;
const ZERO = /(?<!\\)(?:\\\\)*\\u0000/;
const STRING = /"(?:[^"\\]|\\.)*"/g;
const EXPONENT = /\d[eE]([+-]?\d{5,})/g;
/** numeric ends at 131,072 digits before the point and 16,383 after it; the rest is room for the mantissa's own. */
const MAX_EXPONENT = 131_000;
const MIN_EXPONENT = -16_000;

/** Why jsonb refuses a text that is a JSON value; also for one that is none. */
export function jsonProblem(bytes: Uint8Array): CellProblem | null {
  let text: string;
  try {
    text = STRICT.decode(bytes);
  } catch {
    return "not_utf8";
  }
  try {
    JSON.parse(text);
  } catch {
    return "json_invalid";
  }
  if (text.includes("\\u")) {
    if (ZERO.test(text)) return "nul_in_text";
    if (LONE.test(text)) return "json_invalid";
  }
  return hasHugeNumber(text) ? "out_of_range" : null;
}

function hasHugeNumber(text: string): boolean {
  if (text.search(EXPONENT) < 0) return false;
  for (const [, digits] of text.replace(STRING, '""').matchAll(EXPONENT)) {
    const exponent = Number(digits);
    if (exponent > MAX_EXPONENT || exponent < MIN_EXPONENT) return true;
  }
  return false;
}

/** The value as JSON text. */
export function jsonCell(column: TableColumn, row: number): string {
  if (!isValid(column, row)) return "null";
  const { type } = column;
  switch (type.id) {
    case "list":
      return `[${items(column, row).join(",")}]`;
    case "struct":
      return `{${type.fields.map((f, i) => `${JSON.stringify(f.name)}:${jsonCell(column.children[i]!, row)}`).join(",")}}`;
    case "map":
      return mapText(column, row);
    default:
      return scalar(column, type, row);
  }
}

function items(column: TableColumn, row: number): string[] {
  const { offsets } = column;
  const child = column.children[0];
  const out: string[] = [];
  if (offsets === null || child === undefined) return out;
  for (let i = offsets[row]!; i < offsets[row + 1]!; i++) out.push(jsonCell(child, i));
  return out;
}

/** An object where the keys are text and differ; else pairs, in order. */
function mapText(column: TableColumn, row: number): string {
  const entries = column.children[0];
  const [keys, values] = entries?.children ?? [];
  const { offsets } = column;
  if (keys === undefined || values === undefined || offsets === null) return "{}";
  const pairs: [string, string][] = [];
  for (let i = offsets[row]!; i < offsets[row + 1]!; i++)
    pairs.push([jsonCell(keys, i), jsonCell(values, i)]);
  const distinct = new Set(pairs.map(([k]) => k)).size === pairs.length;
  if (keys.type.id === "utf8" && distinct) return `{${pairs.map(([k, v]) => `${k}:${v}`).join(",")}}`;
  return `[${pairs.map(([k, v]) => `{"key":${k},"value":${v}}`).join(",")}]`;
}

function bytesOf(column: TableColumn, type: ColumnType, row: number): Uint8Array {
  if (type.id === "fixed") return column.data.subarray(type.bytes * row, type.bytes * row + type.bytes);
  const offsets = column.offsets ?? new Int32Array(row + 2);
  return column.data.subarray(offsets[row]!, offsets[row + 1]!);
}

function scalar(column: TableColumn, type: ColumnType, row: number): string {
  const { data } = column;
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  switch (type.id) {
    case "bool":
      return ((data[row >> 3]! >> (row & 7)) & 1) === 1 ? "true" : "false";
    case "int":
      return integerText(view, type, row);
    case "float": {
      const n = type.bits === 32 ? view.getFloat32(4 * row, true) : view.getFloat64(8 * row, true);
      return Number.isFinite(n) ? String(n) : JSON.stringify(String(n));
    }
    case "decimal": {
      const value = (view.getBigInt64(16 * row + 8, true) << 64n) | view.getBigUint64(16 * row, true);
      return decimalText(value, type.scale);
    }
    case "utf8":
      return JSON.stringify(TEXT.decode(bytesOf(column, type, row)));
    case "json":
      return TEXT.decode(bytesOf(column, type, row));
    case "binary":
      return JSON.stringify(bytesOf(column, type, row).toBase64());
    case "fixed":
      return JSON.stringify(
        type.as === "uuid" ? uuidText(bytesOf(column, type, row)) : bytesOf(column, type, row).toBase64(),
      );
    case "date32":
      return JSON.stringify(dayText(view.getInt32(4 * row, true)));
    case "time64":
      return JSON.stringify(timeText(view, 8 * row, type.unit));
    case "timestamp":
      return JSON.stringify(timestampText(view, 8 * row, type));
    case "interval":
      return `{"months":${view.getInt32(16 * row, true)},"days":${view.getInt32(16 * row + 4, true)},"nanoseconds":${view.getBigInt64(16 * row + 8, true)}}`;
    default:
      return "null";
  }
}

function integerText(
  view: DataView,
  { bits, signed }: Extract<ColumnType, { id: "int" }>,
  row: number,
): string {
  if (bits === 64) return String(signed ? view.getBigInt64(8 * row, true) : view.getBigUint64(8 * row, true));
  if (bits === 32) return String(signed ? view.getInt32(4 * row, true) : view.getUint32(4 * row, true));
  if (bits === 16) return String(signed ? view.getInt16(2 * row, true) : view.getUint16(2 * row, true));
  return String(signed ? view.getInt8(row) : view.getUint8(row));
}

function decimalText(value: bigint, scale: number): string {
  const sign = value < 0n ? "-" : "";
  const digits = String(value < 0n ? -value : value).padStart(scale + 1, "0");
  if (scale === 0) return sign + digits;
  return `${sign}${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
}

function uuidText(bytes: Uint8Array): string {
  const hex = bytes.toHex();
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

/** A date's range in JavaScript is wider than years of four digits, and its text then has a sign and six. */
function dayText(days: number): string {
  const date = new Date(days * 86_400_000);
  return Number.isNaN(date.getTime())
    ? `${days} days since 1970-01-01`
    : date.toISOString().replace(/T.*/, "");
}

function timeText(view: DataView, at: number, unit: "us" | "ns"): string {
  const raw = view.getBigInt64(at, true);
  const ns = unit === "ns" ? raw : raw * 1000n;
  const seconds = Number(ns / 1_000_000_000n);
  const two = (n: number) => String(n).padStart(2, "0");
  const fraction = String(ns % 1_000_000_000n)
    .padStart(9, "0")
    .replace(/0+$/, "");
  const clock = `${two(Math.floor(seconds / 3600))}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
  return fraction === "" ? clock : `${clock}.${fraction}`;
}

function timestampText(view: DataView, at: number, type: Extract<ColumnType, { id: "timestamp" }>): string {
  const us = microseconds(view, at, unitOf(type.unit));
  const raw = view.getBigInt64(at, true);
  const whole = us ?? raw / 1000n;
  const ms = Number(whole >= 0n ? whole / 1000n : (whole - 999n) / 1000n);
  const date = new Date(ms);
  if (Number.isNaN(date.getTime())) return `${raw} ${type.unit} since 1970-01-01`;
  const rest = whole - BigInt(ms) * 1000n;
  const nanos = type.unit === "ns" ? ((raw % 1000n) + 1000n) % 1000n : 0n;
  const fine =
    rest === 0n && nanos === 0n
      ? ""
      : String(rest).padStart(3, "0") + (nanos === 0n ? "" : String(nanos).padStart(3, "0"));
  const text = date.toISOString();
  return `${text.slice(0, -1)}${fine}${type.zone === null ? "" : "Z"}`;
}

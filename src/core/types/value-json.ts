/**
 * A Value as JSON text. Nothing is bent: 64-bit integers and decimals are written digit by digit, bytes as base64, what
 * JSON has no number for as a string. A value of a union is an object with its branch as the only key.
 */
import type { TimeUnit, Value } from "./value.ts";

export const UNITS_PER_SECOND: Readonly<Record<TimeUnit, bigint>> = {
  s: 1n,
  ms: 1000n,
  us: 1_000_000n,
  ns: 1_000_000_000n,
};

export function valueJson(value: Value): string {
  switch (value.kind) {
    case "null":
      return "null";
    case "bool":
    case "int":
    case "long":
      return String(value.value);
    case "float":
    case "double":
      return floatText(value.value);
    case "decimal":
      return decimalText(value.unscaled, value.scale);
    case "string":
      return JSON.stringify(value.value);
    case "bytes":
      return JSON.stringify(value.value.toBase64());
    case "uuid":
      return JSON.stringify(uuidText(value.value));
    case "enum":
      return JSON.stringify(value.symbol);
    case "date":
      return JSON.stringify(dayText(BigInt(value.days)));
    case "time":
      return JSON.stringify(clockText(value.value, value.unit));
    case "timestamp":
      return JSON.stringify(timestampText(value.value, value.unit, value.zone));
    case "interval":
      return `{"months":${value.months},"days":${value.days},"nanoseconds":${value.nanoseconds}}`;
    case "list":
      return `[${value.items.map(valueJson).join(",")}]`;
    case "map":
      return mapText(value.entries);
    case "record":
      return `{${value.fields.map((f) => `${JSON.stringify(f.name)}:${valueJson(f.value)}`).join(",")}}`;
    case "union":
      return `{${JSON.stringify(value.branch)}:${valueJson(value.value)}}`;
  }
}

function floatText(n: number): string {
  if (Object.is(n, -0)) return "-0.0";
  return Number.isFinite(n) ? String(n) : JSON.stringify(String(n));
}

/** An object where keys are text, else pairs. */
function mapText(entries: readonly (readonly [Value, Value])[]): string {
  if (entries.every(([key]) => key.kind === "string"))
    return `{${entries.map(([k, v]) => `${valueJson(k)}:${valueJson(v)}`).join(",")}}`;
  return `[${entries.map(([k, v]) => `{"key":${valueJson(k)},"value":${valueJson(v)}}`).join(",")}]`;
}

/** unscaled / 10^scale in digits. A scale below 0 is written out in zeros. */
export function decimalText(unscaled: bigint, scale: number): string {
  if (scale <= 0) return unscaled === 0n ? "0" : `${unscaled}${"0".repeat(-scale)}`;
  const sign = unscaled < 0n ? "-" : "";
  const digits = String(unscaled < 0n ? -unscaled : unscaled).padStart(scale + 1, "0");
  return `${sign}${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
}

export function uuidText(bytes: Uint8Array): string {
  return bytes.toHex().replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

function floorDivide(n: bigint, by: bigint): bigint {
  const q = n / by;
  return n < 0n && q * by !== n ? q - 1n : q;
}

/** Years of more than four digits have a sign. JavaScript's dates end within the range of days; then the number stands. */
function dayText(days: bigint): string {
  const date = new Date(Number(days) * 86_400_000);
  return Number.isNaN(date.getTime())
    ? `${days} days since 1970-01-01`
    : date.toISOString().replace(/T.*/, "");
}

function clockText(value: bigint, unit: TimeUnit): string {
  const per = UNITS_PER_SECOND[unit];
  const seconds = Number(value / per);
  const two = (n: number) => String(n).padStart(2, "0");
  const clock = `${two(Math.floor(seconds / 3600))}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
  const digits = String(per).length - 1;
  return digits === 0 ? clock : `${clock}.${String(value % per).padStart(digits, "0")}`;
}

function timestampText(value: bigint, unit: TimeUnit, zone: string | null): string {
  const day = UNITS_PER_SECOND[unit] * 86_400n;
  const days = floorDivide(value, day);
  const date = dayText(days);
  if (date.includes(" ")) return `${value} ${unit} since 1970-01-01`;
  return `${date}T${clockText(value - days * day, unit)}${zone === null ? "" : "Z"}`;
}

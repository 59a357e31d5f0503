/**
 * The value types of options, shared by every component's spec.
 *
 * An option is declared once, beside its component, in a `z.strictObject`:
 *
 *   fetch_max_bytes: byteSize({ min: 1024, max: 2 ** 30 })
 *     .default(8 * MIB)
 *     .describe("Most bytes of one fetch answer.")
 *     .meta({ unit: "bytes", examples: ["8MiB"], why: "Eight of them fill the default budget." }),
 *
 * `.default(...)` or `.optional()` first, then `.describe(...)` (meaning, one or two sentences), then `.meta`:
 *   unit      of the value as the program sees it ("bytes", "ms", "records/s", ...)
 *   examples  list; the first is shown in the reference page
 *   why       reason of the default
 *   instead   true for an option that stands in place of others, so that a starter file never sets both
 *   first     true for the one of such options that a starter file sets
 *   allowed   what may be written, for messages, where the schema alone cannot say it
 * An option without a default is required unless it is `.optional()`. Defaults are given as output values
 * (bytes, ms), and key names are snake_case.
 */
import * as z from "zod";
import { FileRef, Secret, type SecretOption, SecretRef } from "./secret.ts";

export const KIB = 1024;
export const MIB = 1024 * KIB;
export const GIB = 1024 * MIB;

export interface Bounds {
  readonly min?: number;
  readonly max?: number;
}

const BYTE_UNITS: ReadonlyMap<string, number> = new Map([
  ["B", 1],
  ["KB", 1e3],
  ["MB", 1e6],
  ["GB", 1e9],
  ["TB", 1e12],
  ["KiB", KIB],
  ["MiB", MIB],
  ["GiB", GIB],
  ["TiB", 1024 * GIB],
]);

const DURATION_UNITS: ReadonlyMap<string, number> = new Map([
  ["ms", 1],
  ["s", 1000],
  ["m", 60_000],
  ["h", 3_600_000],
  ["d", 86_400_000],
]);

/** Bytes: `"64MiB"`, `"1GB"` (1000s) or a whole number of bytes. Output: number of bytes. */
export function byteSize(bounds: Bounds = {}) {
  return quantity(
    BYTE_UNITS,
    bounds,
    `a size such as "64MiB" or "1GB", or a whole number of bytes`,
    formatBytes,
  );
}

/** Time: a whole number of milliseconds, or `"500ms"`, `"10s"`, `"5m"`, `"1h"`, `"7d"`. Output: milliseconds. */
export function durationMs(bounds: Bounds = {}) {
  const allowed = `a whole number of milliseconds, or a time such as "500ms", "10s" or "5m"`;
  return quantity(DURATION_UNITS, bounds, allowed, formatMs);
}

/** A whole number, with bounds that the message and the schema name. */
export function wholeNumber(bounds: Bounds = {}) {
  const { min = 0, max = Number.MAX_SAFE_INTEGER } = bounds;
  return z
    .int()
    .min(min)
    .max(max)
    .meta({ allowed: `a whole number${rangeText(bounds, String)}` });
}

/**
 * A secret: a literal string, or `{ secret = "name" }` as the whole value (never spliced into a string).
 * Output: `Secret` for a literal, `SecretRef` for a reference.
 */
export function secretString() {
  return z
    .union([z.string().min(1), secretRefShape()])
    .transform((v): SecretOption => (typeof v === "string" ? new Secret(v) : new SecretRef(v.secret)))
    .meta({ allowed: `a string, or a reference { secret = "name" }`, secret: true });
}

/**
 * PEM text: inline (begins with `-----BEGIN`), `{ secret = "name" }`, or `{ file = "path" }`.
 * Output as of `secretString`; after resolution a `Secret` with the PEM text.
 */
export function pemText() {
  return z
    .union([
      z.string().startsWith("-----BEGIN"),
      secretRefShape(),
      z.strictObject({ file: z.string().min(1) }),
    ])
    .transform((v): SecretOption => {
      if (typeof v === "string") return new Secret(v);
      return "secret" in v ? new SecretRef(v.secret) : new FileRef(v.file);
    })
    .meta({
      allowed: `{ file = "path" }, { secret = "name" }, or PEM text beginning with -----BEGIN`,
      secret: true,
    });
}

export interface HostPort {
  readonly host: string;
  readonly port: number;
}

/** `host:port`, IPv6 in brackets (`[::1]:9092`). Output: `{ host, port }`, brackets taken off. */
export function hostPort() {
  const allowed = `"host:port", with a port of 1 to 65535`;
  return z
    .string()
    .transform((text, ctx): HostPort => {
      const parsed = parseHostPort(text);
      if (parsed !== null && parsed.port > 0) return parsed;
      ctx.addIssue({ code: "custom", message: hostPortHint(text), params: { code: "config.range" } });
      return z.NEVER;
    })
    .meta({ allowed });
}

/** Null unless `text` is `host:port` or `[ipv6]:port`. Port 0 passes: a listener may ask for any free port. */
export function parseHostPort(text: string): HostPort | null {
  const match = /^(?:\[([0-9A-Fa-f:.%a-z]+)\]|([^\s:/[\]@]+)):(\d{1,5})$/.exec(text);
  if (match === null) return null;
  const port = Number(match[3]);
  return port > 65535 ? null : { host: match[1] ?? match[2] ?? "", port };
}

function hostPortHint(text: string): string {
  if (text.includes("://")) return "a host and port without a scheme is wanted";
  if (text.includes(",")) return "one address per string: write a list";
  return "not host:port";
}

function secretRefShape() {
  return z.strictObject({ secret: z.string().regex(SECRET_NAME).meta({ allowed: SECRET_NAME_ALLOWED }) });
}

/** Also a file name and, upper-cased, an environment variable: no slash, no leading dot. */
export const SECRET_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
const SECRET_NAME_ALLOWED = "a name of letters, digits, '.', '-' and '_', beginning with a letter or digit";

function quantity(
  units: ReadonlyMap<string, number>,
  bounds: Bounds,
  allowed: string,
  format: (n: number) => string,
) {
  const text = allowed + rangeText(bounds, format);
  return z
    .union([z.string(), z.int()])
    .transform((v, ctx): number => {
      const n = typeof v === "number" ? v : parseQuantity(v, units);
      if (typeof n === "string") {
        ctx.addIssue({ code: "custom", message: n, params: { code: "config.type" } });
        return z.NEVER;
      }
      if (n < (bounds.min ?? 0) || n > (bounds.max ?? Number.MAX_SAFE_INTEGER)) {
        ctx.addIssue({
          code: "custom",
          message: "outside the allowed range",
          params: { code: "config.range" },
        });
        return z.NEVER;
      }
      return n;
    })
    .meta({ allowed: text });
}

/** The number, or why it is none. */
function parseQuantity(text: string, units: ReadonlyMap<string, number>): number | string {
  const match = /^(\d{1,15}(?:\.\d{1,6})?) ?([A-Za-z]*)$/.exec(text);
  if (match === null) return "not a number with a unit";
  const [, digits = "", unit = ""] = match;
  if (unit === "") return "a string needs a unit; a plain number goes without quotes";
  const scale = units.get(unit);
  if (scale === undefined) return unknownUnit(unit, units);
  const n = Number(digits) * scale;
  return Number.isSafeInteger(n) ? n : "not a whole number in the smallest unit";
}

function unknownUnit(unit: string, units: ReadonlyMap<string, number>): string {
  const close = [...units.keys()].find((u) => u.toLowerCase() === unit.toLowerCase());
  const known = [...units.keys()].join(", ");
  return close === undefined
    ? `unknown unit '${unit}', known are ${known}`
    : `unknown unit '${unit}', did you mean '${close}'?`;
}

function rangeText(bounds: Bounds, format: (n: number) => string): string {
  const { min, max } = bounds;
  if (min !== undefined && max !== undefined) return `, ${format(min)} to ${format(max)}`;
  if (min !== undefined) return `, at least ${format(min)}`;
  return max === undefined ? "" : `, at most ${format(max)}`;
}

/** The shortest exact form: 67108864 -> "64MiB", 1000 -> "1KB", 1001 -> "1001B". */
export function formatBytes(n: number): string {
  return formatIn(n, ["TiB", "GiB", "MiB", "KiB", "TB", "GB", "MB", "KB"], BYTE_UNITS, "B");
}

/** The shortest exact form: 10000 -> "10s". */
export function formatMs(n: number): string {
  return formatIn(n, ["d", "h", "m", "s"], DURATION_UNITS, "ms");
}

function formatIn(
  n: number,
  order: readonly string[],
  units: ReadonlyMap<string, number>,
  base: string,
): string {
  for (const unit of order) {
    const scale = units.get(unit) ?? 1;
    if (n >= scale && n % scale === 0) return `${n / scale}${unit}`;
  }
  return `${n}${base}`;
}

/**
 * What a property's types are as a column. The logical type decides, what the physical one says besides makes it finer: digits
 * of decimals, zones of timestamps. A property with neither known is refused, since to guess would be to lose.
 *
 *   string   string; format uuid: uuid; byte, binary: binary       date        date; with a physical timestamp that
 *   integer  int64; format i8 to u64: that; i128, u128: decimal(38,0)   timestamp   timestamptz; without zone where it is said
 *   number   decimal(p,s) where digits are known; double where that is said (f64, DOUBLE); else decimal(38,9)
 *   boolean  boolean      time  time      object  struct, json without properties      array  list, json without items
 */
import type { ColumnType } from "../types/table-batch.ts";

const MAX_PRECISION = 38;
const DEFAULT_SCALE = 9;
const TEXT: ColumnType = { id: "utf8" };
export const JSON_TEXT: ColumnType = { id: "json" };
const BINARY: ColumnType = { id: "binary" };
const LONG: ColumnType = { id: "int", bits: 64, signed: true };
const DOUBLE: ColumnType = { id: "float", bits: 64 };
const UUID: ColumnType = { id: "fixed", bytes: 16, as: "uuid" };

const decimal = (precision: number, scale: number): ColumnType => ({ id: "decimal", precision, scale });
const int = (bits: 8 | 16 | 32 | 64, signed = true): ColumnType => ({ id: "int", bits, signed });

/** What a property says of its values, as far as it is no object, array or map. */
export interface ScalarFacts {
  readonly logical: string | null;
  readonly physical: string | null;
  readonly format: string | null;
  /** Of timestamps; null: not said. */
  readonly zoned: boolean | null;
  /** By custom properties. */
  readonly precision: number | null;
  readonly scale: number | null;
}

/** The column's type, or why there is none. */
export function scalarType(facts: ScalarFacts): ColumnType | string {
  const physical = facts.physical === null ? null : physicalOf(facts.physical);
  if (facts.logical === null) return withoutLogical(facts, physical);
  switch (facts.logical) {
    case "string":
      return STRINGS.get(facts.format ?? "") ?? TEXT;
    case "boolean":
      return { id: "bool" };
    case "integer":
      if (facts.format === null) return LONG;
      return INTEGERS.get(facts.format) ?? `${facts.format} is no format of integers`;
    case "number":
      return numberType(facts, physical);
    case "date":
      // Before 3.1 there was no logical timestamp.
      return isInstant(facts, physical)
        ? timestampType(facts, physical)
        : dated(facts, DATES, { id: "date32" });
    case "timestamp":
      return dated(facts, TIMESTAMPS, timestampType(facts, physical));
    case "time":
      return dated(facts, TIMES, { id: "time64", unit: "us" });
    default:
      return `${JSON.stringify(facts.logical)} is no logical type that is known`;
  }
}

const STRINGS: ReadonlyMap<string, ColumnType> = new Map<string, ColumnType>([
  ["uuid", UUID],
  ["byte", BINARY],
  ["binary", BINARY],
]);

const INTEGERS: ReadonlyMap<string, ColumnType> = new Map<string, ColumnType>([
  ...([8, 16, 32, 64] as const).flatMap((bits) => [
    [`i${bits}`, int(bits)] as const,
    [`u${bits}`, int(bits, false)] as const,
  ]),
  ["i128", decimal(MAX_PRECISION, 0)],
  ["u128", decimal(MAX_PRECISION, 0)],
]);

function numberType(facts: ScalarFacts, physical: Physical | null): ColumnType | string {
  if (facts.precision !== null) return digits(facts.precision, facts.scale ?? 0);
  if (facts.format === "f32") return { id: "float", bits: 32 };
  if (facts.format === "f64") return DOUBLE;
  if (facts.format !== null) return `${facts.format} is no format of numbers`;
  if (physical !== null && DECIMALS.has(physical.name) && physical.numbers.length > 0)
    return digits(physical.numbers[0]!, physical.numbers[1] ?? 0);
  if (physical !== null && FLOATS.has(physical.name)) return DOUBLE;
  return decimal(MAX_PRECISION, DEFAULT_SCALE);
}

function digits(precision: number, scale: number): ColumnType | string {
  if (precision >= 1 && precision <= MAX_PRECISION && scale >= 0 && scale <= precision)
    return decimal(precision, scale);
  return `decimals have 1 to ${MAX_PRECISION} digits, not (${precision}, ${scale})`;
}

function isInstant({ format }: ScalarFacts, physical: Physical | null): boolean {
  return (
    (physical !== null && /^(timestamp|datetime)/.test(physical.name)) ||
    (format !== null && (format === "date-time" || /[Hh]/.test(format)))
  );
}

function timestampType({ zoned }: ScalarFacts, physical: Physical | null): ColumnType {
  const name = physical?.name ?? "";
  const unit = physical?.numbers[0] === 9 || /_?ns$/.test(name) ? "ns" : "us";
  const bare = /ntz$|without ?time ?zone$/.test(name);
  return { id: "timestamp", unit, zone: (zoned ?? !bare) ? "UTC" : null };
}

/** Patterns of JDK's formatter that are ISO 8601, which is what is read; the documented default mixes up its letters. */
const DAY = "[yYu]{4}-MM-[dD]{2}";
const HOURS = String.raw`HH:mm(:ss([.,]?\[?\.?S{1,9}\]?)?)?`;
const ZONE = "('?Z'?|X{1,5}|x{1,5}|Z{1,5})?";
const DATES = new RegExp(`^${DAY}$`);
const TIMES = new RegExp(`^${HOURS}${ZONE}$`);
const TIMESTAMPS = new RegExp(`^${DAY}('?T'?| )${HOURS}${ZONE}$`);

/** As JSON Schema calls them, which some contracts do. */
const NAMED = new Set(["date", "date-time", "time"]);

function dated({ format }: ScalarFacts, read: RegExp, type: ColumnType): ColumnType | string {
  if (format === null || NAMED.has(format) || read.test(format)) return type;
  return `the format ${JSON.stringify(format)} is not read: dates and times are those of ISO 8601`;
}

interface Physical {
  /** In lower case, without what stands in brackets. */
  readonly name: string;
  readonly numbers: readonly number[];
}

function physicalOf(text: string): Physical {
  const numbers = /\(([^)]*)\)/.exec(text)?.[1]?.split(",").map(Number) ?? [];
  const name = text
    .toLowerCase()
    .replace(/\([^)]*\)|\[\d+\]/g, " ")
    .replace(/\s+/g, " ")
    .trim();
  return { name, numbers: numbers.filter((n) => Number.isInteger(n)) };
}

const DECIMALS = new Set(["decimal", "numeric", "number", "dec", "bignumeric"]);
const FLOATS = new Set([
  "double",
  "double precision",
  "float",
  "float4",
  "float8",
  "float32",
  "float64",
  "real",
]);

const PHYSICAL: ReadonlyMap<string, ColumnType> = new Map<string, ColumnType>([
  ...[
    "string",
    "str",
    "text",
    "xml",
    "varchar",
    "char",
    "nvarchar",
    "nchar",
    "varchar2",
    "nvarchar2",
    "character",
    "character varying",
    "clob",
    "bpchar",
    "enum",
  ].map((n) => [n, TEXT] as const),
  ...["bool", "boolean"].map((n) => [n, { id: "bool" }] as const),
  // Some call 8 bits so and others 8 bytes, some have a sign in a tinyint and others none: what holds both.
  ...["tinyint", "smallint", "int16", "int2", "short"].map((n) => [n, int(16)] as const),
  ...["int", "integer", "int32", "int4", "mediumint", "serial"].map((n) => [n, int(32)] as const),
  ...["bigint", "int64", "int8", "long", "bigserial"].map((n) => [n, LONG] as const),
  ...["float4", "float32", "real"].map((n) => [n, { id: "float", bits: 32 }] as const),
  ...["double", "double precision", "float", "float8", "float64"].map((n) => [n, DOUBLE] as const),
  ...["binary", "varbinary", "bytes", "bytea", "blob"].map((n) => [n, BINARY] as const),
  ...["json", "jsonb", "variant", "object", "super"].map((n) => [n, JSON_TEXT] as const),
  ["uuid", UUID],
  ["uniqueidentifier", UUID],
  ["date", { id: "date32" }],
  ["time", { id: "time64", unit: "us" }],
]);

/** A contract may name physical types alone. */
function withoutLogical(facts: ScalarFacts, physical: Physical | null): ColumnType | string {
  if (physical === null) return "neither logicalType nor physicalType says what it is";
  if (DECIMALS.has(physical.name)) return numberType({ ...facts, format: null }, physical);
  if (/^(timestamp|datetime)/.test(physical.name)) return timestampType(facts, physical);
  return (
    PHYSICAL.get(physical.name) ??
    `the physical type ${JSON.stringify(facts.physical)} is not known here: give a logicalType`
  );
}

/**
 * What an annotated type stands for: logicalType of the specification (1.12), or the names that Kafka Connect and
 * Debezium write as connect.name. An annotation that is unknown, or wrong for its type, is ignored, as the
 * specification wants it.
 */
import type { Json, Logical, PrimitiveName } from "./schema.ts";

type Attributes = { readonly [key: string]: Json };

/** Decimals of more digits are taken as bytes: their text takes a time that grows with the square of its length. */
const MOST_DIGITS = 8192;
export const MOST_DECIMAL_BYTES = 3402;

/** Fixed of any size but 12 and 16 can be a decimal only. */
export interface Base {
  readonly kind: PrimitiveName | "fixed";
  readonly size: number;
}

type Reader = (base: Base, attributes: Attributes) => Logical | null;

function on(kinds: readonly Base["kind"][], logical: Logical): Reader {
  return (base) => (kinds.includes(base.kind) ? logical : null);
}

function decimal(base: Base, precision: Json | undefined, scale: Json | undefined): Logical | null {
  if (base.kind !== "bytes" && base.kind !== "fixed") return null;
  if (
    typeof precision !== "number" ||
    !Number.isInteger(precision) ||
    precision < 1 ||
    precision > MOST_DIGITS
  )
    return null;
  const digits = scale ?? 0;
  if (typeof digits !== "number" || !Number.isInteger(digits) || digits < 0 || digits > precision)
    return null;
  if (base.kind === "fixed" && precision > Math.floor(Math.log10(2) * (8 * base.size - 1))) return null;
  return { as: "decimal", precision, scale: digits };
}

/** Of the specification. */
const LOGICAL: Readonly<Record<string, Reader>> = {
  decimal: (base, a) => decimal(base, a["precision"], a["scale"]),
  "big-decimal": on(["bytes"], { as: "big-decimal" }),
  uuid: (base) =>
    base.kind === "string" || (base.kind === "fixed" && base.size === 16) ? { as: "uuid" } : null,
  date: on(["int"], { as: "date" }),
  "time-millis": on(["int"], { as: "time", unit: "ms" }),
  "time-micros": on(["long"], { as: "time", unit: "us" }),
  "timestamp-millis": on(["long"], { as: "timestamp", unit: "ms", zone: "UTC" }),
  "timestamp-micros": on(["long"], { as: "timestamp", unit: "us", zone: "UTC" }),
  "timestamp-nanos": on(["long"], { as: "timestamp", unit: "ns", zone: "UTC" }),
  "local-timestamp-millis": on(["long"], { as: "timestamp", unit: "ms", zone: null }),
  "local-timestamp-micros": on(["long"], { as: "timestamp", unit: "us", zone: null }),
  "local-timestamp-nanos": on(["long"], { as: "timestamp", unit: "ns", zone: null }),
  duration: (base) => (base.kind === "fixed" && base.size === 12 ? { as: "duration" } : null),
};

/** Connect keeps the scale among its parameters and says nothing of a precision, or 64, which bounds nothing. */
const CONNECT_PRECISION = 64;

function connectDecimal(base: Base, a: Attributes): Logical | null {
  const parameters = (a["connect.parameters"] ?? {}) as Attributes;
  const whole = (text: Json | undefined): Json | undefined =>
    typeof text === "string" && /^\d{1,4}$/.test(text) ? Number(text) : text;
  const scale = whole(parameters["scale"]) ?? a["scale"];
  const precision = whole(parameters["connect.decimal.precision"]) ?? a["precision"] ?? CONNECT_PRECISION;
  return decimal(base, precision, scale);
}

/** Names of Kafka Connect's and Debezium's types. Debezium's Timestamp types are of no zone; its zoned ones are text. */
const CONNECT: Readonly<Record<string, Reader>> = {
  "org.apache.kafka.connect.data.Decimal": connectDecimal,
  "org.apache.kafka.connect.data.Date": on(["int"], { as: "date" }),
  "org.apache.kafka.connect.data.Time": on(["int"], { as: "time", unit: "ms" }),
  "org.apache.kafka.connect.data.Timestamp": on(["long"], { as: "timestamp", unit: "ms", zone: "UTC" }),
  "io.debezium.time.Date": on(["int"], { as: "date" }),
  "io.debezium.time.Time": on(["int"], { as: "time", unit: "ms" }),
  "io.debezium.time.MicroTime": on(["long"], { as: "time", unit: "us" }),
  "io.debezium.time.NanoTime": on(["long"], { as: "time", unit: "ns" }),
  "io.debezium.time.Timestamp": on(["long"], { as: "timestamp", unit: "ms", zone: null }),
  "io.debezium.time.MicroTimestamp": on(["long"], { as: "timestamp", unit: "us", zone: null }),
  "io.debezium.time.NanoTimestamp": on(["long"], { as: "timestamp", unit: "ns", zone: null }),
  "io.debezium.data.Uuid": on(["string"], { as: "uuid" }),
};

function reader(table: Readonly<Record<string, Reader>>, name: Json | undefined): Reader | null {
  return typeof name === "string" && Object.hasOwn(table, name) ? table[name]! : null;
}

export function logicalOf(base: Base, attributes: Attributes): Logical | null {
  return (
    reader(LOGICAL, attributes["logicalType"])?.(base, attributes) ??
    reader(CONNECT, attributes["connect.name"])?.(base, attributes) ??
    null
  );
}

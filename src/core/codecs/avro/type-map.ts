/** What becomes of each Avro type: its column and its Value. The one place; the reference page is made from it. */
import type { ColumnType } from "../../types/table-batch.ts";
import type { Value } from "../../types/value.ts";
import type { Scalar } from "./plan.ts";
import type { Logical, PrimitiveName } from "./schema.ts";

/** Digits that a decimal column holds. */
export const MOST_PRECISION = 38;
const UUID: ColumnType = { id: "fixed", bytes: 16, as: "uuid" };
const LONG: ColumnType = { id: "int", bits: 64, signed: true };
const TEXT: ColumnType = { id: "utf8" };

const OF_A_DAY = "Outside of a day: refused.";

export interface TypeRow {
  /** As the schema writes it, for the page. */
  readonly avro: string;
  readonly column: ColumnType | { readonly of: (type: Scalar) => ColumnType; readonly shown: string };
  readonly value: Value["kind"];
  readonly note?: string;
}

type Instant = Extract<Logical, { as: "timestamp" }>;

const instant = (unit: Instant["unit"], zone: Instant["zone"]): ColumnType => ({
  id: "timestamp",
  unit,
  zone,
});

function decimalColumn(type: Scalar): ColumnType {
  const l = type.logical;
  if (l?.as !== "decimal" || l.precision > MOST_PRECISION) return TEXT;
  return { id: "decimal", precision: l.precision, scale: l.scale };
}

/** By kind, or by what the type stands for (`logicalKey`). */
export const SCALARS = {
  null: { avro: "null", column: { id: "null" }, value: "null" },
  boolean: { avro: "boolean", column: { id: "bool" }, value: "bool" },
  int: { avro: "int", column: { id: "int", bits: 32, signed: true }, value: "int" },
  long: { avro: "long", column: LONG, value: "long" },
  float: { avro: "float", column: { id: "float", bits: 32 }, value: "float" },
  double: { avro: "double", column: { id: "float", bits: 64 }, value: "double" },
  bytes: { avro: "bytes", column: { id: "binary" }, value: "bytes" },
  string: { avro: "string", column: TEXT, value: "string" },
  fixed: {
    avro: "fixed",
    column: {
      of: (t) => (t.kind === "fixed" && t.size > 0 ? { id: "fixed", bytes: t.size } : { id: "binary" }),
      shown: "fixed(n)",
    },
    value: "bytes",
  },
  decimal: {
    avro: "decimal (bytes, fixed); Connect's Decimal",
    column: { of: decimalColumn, shown: "decimal(p,s)" },
    value: "decimal",
    note: "A precision above 38, and Connect's Decimal without one, becomes exact text. A value of more digits than the precision is refused.",
  },
  "big-decimal": {
    avro: "big-decimal (bytes)",
    column: TEXT,
    value: "decimal",
    note: "Exact text, with the scale of each value.",
  },
  uuid: { avro: "uuid (string, fixed 16); Debezium's Uuid", column: UUID, value: "uuid" },
  date: {
    avro: "date (int); Connect's and Debezium's Date",
    column: { id: "date32" },
    value: "date",
  },
  "time-ms": {
    avro: "time-millis (int); Connect's and Debezium's Time",
    column: { id: "time64", unit: "us" },
    value: "time",
    note: OF_A_DAY,
  },
  "time-us": {
    avro: "time-micros (long); Debezium's MicroTime",
    column: { id: "time64", unit: "us" },
    value: "time",
    note: OF_A_DAY,
  },
  "time-ns": {
    avro: "Debezium's NanoTime (long)",
    column: { id: "time64", unit: "ns" },
    value: "time",
    note: OF_A_DAY,
  },
  "timestamp-ms": {
    avro: "timestamp-millis (long); Connect's Timestamp",
    column: instant("ms", "UTC"),
    value: "timestamp",
  },
  "timestamp-us": { avro: "timestamp-micros (long)", column: instant("us", "UTC"), value: "timestamp" },
  "timestamp-ns": { avro: "timestamp-nanos (long)", column: instant("ns", "UTC"), value: "timestamp" },
  "local-timestamp-ms": {
    avro: "local-timestamp-millis (long); Debezium's Timestamp",
    column: instant("ms", null),
    value: "timestamp",
  },
  "local-timestamp-us": {
    avro: "local-timestamp-micros (long); Debezium's MicroTimestamp",
    column: instant("us", null),
    value: "timestamp",
  },
  "local-timestamp-ns": {
    avro: "local-timestamp-nanos (long); Debezium's NanoTimestamp",
    column: instant("ns", null),
    value: "timestamp",
  },
  duration: {
    avro: "duration (fixed 12)",
    column: { id: "interval" },
    value: "interval",
    note: "Months and days above 2,147,483,647: refused.",
  },
} as const satisfies Readonly<Record<PrimitiveName | "fixed" | string, TypeRow>>;

export type ScalarKey = keyof typeof SCALARS;

/** The types that hold others. The layout of columns (`layout.ts`) follows them. */
export const NESTED: readonly {
  readonly avro: string;
  readonly column: string;
  readonly value: string;
  readonly note?: string;
}[] = [
  { avro: "enum", column: "string", value: "enum", note: "The symbol." },
  { avro: "array", column: "list<T>", value: "list" },
  { avro: "map", column: "map<string,T>", value: "map", note: "A key that comes twice: refused." },
  {
    avro: "record",
    column: "struct",
    value: "record",
    note: "The fields of the outermost one are the columns. One without fields becomes JSON.",
  },
  { avro: "union of null and T", column: "T, nullable", value: "T or null" },
  {
    avro: "union of several",
    column: "struct of a nullable member for each branch beside null",
    value: "union",
    note: "Exactly one member is set. Members have the branch's simple name, or its full name where two share it.",
  },
  {
    avro: "record within itself",
    column: "struct, then json",
    value: "record",
    note: "Twice within itself it is columns, deeper the text of a JSON value. Once or never, where there would be more than 4,000 columns.",
  },
];

export function scalarKey({ kind, logical }: Scalar): ScalarKey {
  if (logical === null) return kind;
  if (logical.as === "time") return `time-${logical.unit}`;
  if (logical.as !== "timestamp") return logical.as;
  return `${logical.zone === null ? "local-" : ""}timestamp-${logical.unit}`;
}

export function scalarColumn(type: Scalar): ColumnType {
  const { column } = SCALARS[scalarKey(type)];
  return "of" in column ? column.of(type) : column;
}

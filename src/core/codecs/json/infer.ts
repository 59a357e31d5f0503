/**
 * The type of JSON values: as narrow as holds every one of them, and json itself where they are of several kinds. Of files,
 * which are whole, it may be narrow; of records that go on coming it is as wide as those that nobody has seen may need.
 */
import { isReserved } from "../../types/reserved.ts";
import type { ColumnField, ColumnType } from "../../types/table-batch.ts";
import type { TableField } from "../../types/table-schema.ts";
import { inferType, temporalType } from "../infer.ts";

const JSON_TYPE: ColumnType = { id: "json" };
/** Objects with more keys are data, not a record's fields. */
const MAX_FIELDS = 200;
const MAX_DEPTH = 16;

/** A number as its digits: a double would forget some. */
class Digits {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** The objects of lines; lines that are none are left out: they will be refused. */
export function parseLines(text: string, most: number): Record<string, unknown>[] {
  const out: Record<string, unknown>[] = [];
  for (const line of text.split("\n")) {
    if (out.length === most) break;
    try {
      const value: unknown = JSON.parse(line, keepDigits);
      if (isObject(value)) out.push(value);
    } catch {
      // Not JSON, or cut by the end of the sample.
    }
  }
  return out;
}

function keepDigits(_key: string, value: unknown, context?: { readonly source?: string }): unknown {
  return typeof value === "number" ? new Digits(context?.source ?? String(value)) : value;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Digits);
}

export function inferFields(rows: readonly Record<string, unknown>[]): TableField[] {
  return fieldsOf(rows, 0, OF_FILES);
}

/** Most bytes of a name that every sink can have for a column: PostgreSQL cuts longer ones. */
const MAX_NAME_BYTES = 63;

/**
 * Of records, by their payloads; what is no object is left out, it will be refused. Names that no sink can have, and those
 * that begin with `reserved`, are left out, too.
 */
export function inferRecords(payloads: Iterable<Uint8Array>, reserved: string): TableField[] {
  const rows: Record<string, unknown>[] = [];
  for (const payload of payloads) {
    try {
      const value: unknown = JSON.parse(UTF8.decode(payload), keepDigits);
      if (isObject(value)) rows.push(value);
    } catch {
      // Not JSON, not UTF-8, or nested beyond reason.
    }
  }
  return fieldsOf(rows, 0, OF_RECORDS).filter(
    ({ name }) => isColumnName(name) && !isReserved(name, reserved),
  );
}

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function isColumnName(name: string): boolean {
  if (name === "" || name.includes("\0") || !name.isWellFormed()) return false;
  return new TextEncoder().encode(name).length <= MAX_NAME_BYTES;
}

/** The types of texts and of numbers, which are given by their digits. */
interface ScalarTypes {
  readonly texts: (values: readonly string[]) => ColumnType;
  readonly numbers: (digits: readonly string[]) => ColumnType;
}

const OF_FILES: ScalarTypes = {
  texts: (values) => temporalType(values) ?? { id: "utf8" },
  numbers: (digits) => {
    const type = inferType(digits);
    return type.id === "utf8" ? JSON_TYPE : type;
  },
};

/** Text that looks like a date is text: the next one may not. Numbers are 64-bit integers, doubles, or keep their digits. */
const OF_RECORDS: ScalarTypes = {
  texts: () => ({ id: "utf8" }),
  numbers: (digits) => {
    const type = inferType(digits);
    if (type.id === "int" || type.id === "float") return type;
    return type.id === "decimal" && type.scale === 0 ? type : JSON_TYPE;
  },
};

function fieldsOf(
  rows: readonly Record<string, unknown>[],
  depth: number,
  types: ScalarTypes,
): ColumnField[] {
  const columns = new Map<string, unknown[]>();
  for (const row of rows) {
    for (const [key, value] of Object.entries(row)) {
      const values = columns.get(key) ?? [];
      columns.set(key, values);
      values.push(value);
    }
  }
  return [...columns].map(([name, values]) => ({ name, type: typeOf(values, depth, types), nullable: true }));
}

function typeOf(values: readonly unknown[], depth: number, types: ScalarTypes): ColumnType {
  const some = values.filter((v) => v !== null);
  if (some.length === 0 || depth > MAX_DEPTH) return JSON_TYPE;
  if (some.every((v) => typeof v === "boolean")) return { id: "bool" };
  if (some.every((v) => v instanceof Digits)) return types.numbers(some.map((v) => (v as Digits).text));
  if (some.every((v) => typeof v === "string")) return types.texts(some as string[]);
  if (some.every(Array.isArray)) {
    const type = typeOf((some as unknown[][]).flat(), depth + 1, types);
    return { id: "list", item: { name: "element", type, nullable: true } };
  }
  if (!some.every(isObject)) return JSON_TYPE;
  const fields = fieldsOf(some as Record<string, unknown>[], depth + 1, types);
  // Names that engines take for one, or none at all, make no struct.
  const names = new Set(fields.map((f) => f.name.toLowerCase()));
  return fields.length === 0 || fields.length > MAX_FIELDS || names.size < fields.length || names.has("")
    ? JSON_TYPE
    : { id: "struct", fields };
}

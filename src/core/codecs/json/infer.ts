/** The type of JSON values: as narrow as holds every one of them, and json itself where they are of several kinds. */
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
  return fieldsOf(rows, 0);
}

function fieldsOf(rows: readonly Record<string, unknown>[], depth: number): ColumnField[] {
  const columns = new Map<string, unknown[]>();
  for (const row of rows) {
    for (const [key, value] of Object.entries(row)) {
      const values = columns.get(key) ?? [];
      columns.set(key, values);
      values.push(value);
    }
  }
  return [...columns].map(([name, values]) => ({ name, type: typeOf(values, depth), nullable: true }));
}

function typeOf(values: readonly unknown[], depth: number): ColumnType {
  const some = values.filter((v) => v !== null);
  if (some.length === 0 || depth > MAX_DEPTH) return JSON_TYPE;
  if (some.every((v) => typeof v === "boolean")) return { id: "bool" };
  if (some.every((v) => v instanceof Digits)) {
    const type = inferType(some.map((v) => (v as Digits).text));
    return type.id === "utf8" ? JSON_TYPE : type;
  }
  if (some.every((v) => typeof v === "string")) return temporalType(some as string[]) ?? { id: "utf8" };
  if (some.every(Array.isArray)) {
    const type = typeOf((some as unknown[][]).flat(), depth + 1);
    return { id: "list", item: { name: "element", type, nullable: true } };
  }
  if (!some.every(isObject)) return JSON_TYPE;
  const fields = fieldsOf(some as Record<string, unknown>[], depth + 1);
  // Names that engines take for one, or none at all, make no struct.
  const names = new Set(fields.map((f) => f.name.toLowerCase()));
  return fields.length === 0 || fields.length > MAX_FIELDS || names.size < fields.length || names.has("")
    ? JSON_TYPE
    : { id: "struct", fields };
}

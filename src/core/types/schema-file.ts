/** A table's schema as a JSON document, so that what was inferred once can be pinned: { columns: [{ name, type, ... }] }. */
import { Failure } from "../failure/failure.ts";
import { isReserved } from "./reserved.ts";
import type { TableField, TableSchema } from "./table-schema.ts";
import { parseType, typeText } from "./type-text.ts";

const MAX_COLUMNS = 10_000;

export function schemaDocument(schema: TableSchema): string {
  const columns = schema.fields.map(({ name, type, nullable, source }) => ({
    name,
    type: typeText(type),
    ...(nullable ? {} : { nullable }),
    ...(source === undefined || source === name ? {} : { source }),
  }));
  return `{\n  "columns": [\n${columns.map((c) => `    ${JSON.stringify(c)}`).join(",\n")}\n  ]\n}\n`;
}

/** Throws files.schema with the place within the document. */
export function parseSchemaDocument(text: string, at: string): TableSchema {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch (e) {
    throw bad(`it is no JSON: ${e instanceof Error ? e.message : String(e)}`, at);
  }
  const columns = isRecord(document) ? document.columns : undefined;
  if (!Array.isArray(columns) || columns.length === 0) throw bad('a list "columns" is wanted', at);
  if (columns.length > MAX_COLUMNS) throw bad(`more than ${MAX_COLUMNS} columns`, at);
  const fields = columns.map((c: unknown, i) => fieldOf(c, `columns[${i}]`, at));
  return { fields };
}

const KEYS = ["name", "type", "nullable", "source"];

function fieldOf(value: unknown, place: string, at: string): TableField {
  if (!isRecord(value)) throw bad(`${place} is no object`, at);
  const unknown = Object.keys(value).find((k) => !KEYS.includes(k));
  if (unknown !== undefined) throw bad(`${place} has the key "${unknown}"; known are ${KEYS.join(", ")}`, at);
  const { name, type: text, nullable = true, source } = value;
  if (typeof name !== "string" || name === "") throw bad(`${place} wants a "name"`, at);
  if (typeof text !== "string") throw bad(`${place} wants a "type"`, at);
  if (typeof nullable !== "boolean") throw bad(`${place}.nullable is true or false`, at);
  if (source !== undefined && typeof source !== "string") throw bad(`${place}.source is a text`, at);
  const type = parseType(text);
  if (typeof type === "string") throw bad(`${place}.type ${JSON.stringify(text)}: ${type}`, at);
  return { name, type, nullable, ...(source === undefined ? {} : { source }) };
}

/** What no table may have: two columns that engines take for one, or a name that is ours. */
export function checkSchema({ fields }: TableSchema, prefix: string, at: string): void {
  const seen = new Map<string, string>();
  for (const { name } of fields) {
    const key = name.toLowerCase();
    const before = seen.get(key);
    if (before !== undefined)
      throw bad(
        `the columns ${JSON.stringify(before)} and ${JSON.stringify(name)} differ in nothing but case`,
        at,
      );
    if (isReserved(name, prefix))
      throw bad(`the column ${JSON.stringify(name)} begins with ${prefix}, which is ours`, at);
    seen.set(key, name);
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function bad(message: string, at: string): Failure {
  return new Failure("files.schema", message, {
    at,
    hint: "`twg batch --print-schema` writes one to begin with",
  });
}

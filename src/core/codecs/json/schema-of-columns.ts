/**
 * The JSON Schema of a table's columns, such that every row which `encodeJsonColumns` writes is valid by it. Draft 7, which is
 * what readers of registries take.
 *
 * Objects are closed: then a column more is what registries take for compatible with older schemas, while for an open object
 * it is none, since a reader of old may have met anything under the name. Nothing is required, so rows from before a column
 * are valid by the schema that has it. What JSON Schema has no word for stands under a keyword of ours.
 */
import type { ColumnField, ColumnType } from "../../types/table-batch.ts";
import { typeText } from "../../types/type-text.ts";
import { COLUMN_TYPE } from "./json-schema.ts";

type Node = Readonly<Record<string, unknown>>;

/** Kafka Connect's names of numbers, by which its converter knows them again. */
const CONNECT: Readonly<Record<string, string>> = {
  int8: "int8",
  int16: "int16",
  int32: "int32",
  int64: "int64",
  float: "float32",
  double: "float64",
};

/**
 * `title`: the record's name. `before`: the schema that readers have, whose properties stay: lanes that met other columns make
 * one schema then, and none takes away what the other's rows have.
 */
export function jsonSchemaOf(
  fields: readonly ColumnField[],
  title: string,
  before: string | null = null,
): string {
  const columns = fields.map((f) => ({ ...f, nullable: true }));
  const head = { $schema: "http://json-schema.org/draft-07/schema#", title };
  const own = { ...head, ...objectOf(columns) };
  const known = before === null ? null : parsed(before);
  if (before === null || known === null) return JSON.stringify(own);
  const all = merged(known, own);
  const { $comment: _, ...bare } = known;
  // Registries print what they keep as they like.
  return JSON.stringify(all) === JSON.stringify(bare) ? before : JSON.stringify(all);
}

/** `after`, with the properties that `before` has besides. */
export function joinedJsonSchemas(before: string, after: string): string {
  const [known, next] = [parsed(before), parsed(after)];
  if (known === null) return after;
  return next === null ? before : JSON.stringify(merged(known, next));
}

/** The same schema by another text: some registries take no order of properties for a new version. */
export function commentedJsonSchema(text: string, comment: string): string {
  return JSON.stringify({ ...parsed(text), $comment: comment });
}

/** A pointer to each property, those within behind it; in order of declaration. Null: no schema with properties. */
export function propertyPaths(text: string): readonly string[] | null {
  const schema = parsed(text);
  return schema === null ? null : pathsWithin(schema, []);
}

function pathsWithin(node: Node, path: readonly string[]): string[] {
  return Object.entries(node).flatMap(([key, value]) => {
    if (!isNode(value)) return [];
    if (key !== "properties") return pathsWithin(value, [...path, key]);
    return Object.entries(value).flatMap(([name, property]) => {
      const own = [...path, key, name];
      return [JSON.stringify(own), ...(isNode(property) ? pathsWithin(property, own) : [])];
    });
  });
}

function parsed(text: string): Node | null {
  try {
    const schema: unknown = JSON.parse(text);
    return isNode(schema) ? schema : null;
  } catch {
    return null;
  }
}

/** `own`, with the properties that `known` has besides; in the order of `known`, which is what it is where nothing is new. */
function merged(known: Node, own: Node): Node {
  return byKey(known, own, (key, before, now) => {
    if (!isNode(before) || !isNode(now)) return now;
    return key === "properties" ? mergedProperties(before, now) : merged(before, now);
  });
}

function mergedProperties(known: Node, own: Node): Node {
  return byKey(known, own, (_, before, now) =>
    isNode(before) && isNode(now) ? merged(before, now) : (now ?? before),
  );
}

/** Without those that come to undefined. */
function byKey(known: Node, own: Node, value: (key: string, before: unknown, now: unknown) => unknown): Node {
  const at = (node: Node, key: string) => (Object.hasOwn(node, key) ? node[key] : undefined);
  const keys = new Set([...Object.keys(known), ...Object.keys(own)]);
  const all = [...keys].map((key) => [key, value(key, at(known, key), at(own, key))] as const);
  return Object.fromEntries(all.filter(([, v]) => v !== undefined));
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function objectOf(fields: readonly ColumnField[]): Node {
  const properties = Object.fromEntries(fields.map((f) => [f.name, propertyOf(f)]));
  return { type: "object", properties, additionalProperties: false };
}

function propertyOf({ type, nullable }: ColumnField): Node {
  const node = nodeOf(type);
  if (!nullable || node["type"] === undefined || type.id === "null") return node;
  const types = Array.isArray(node["type"]) ? node["type"] : [node["type"]];
  return { ...node, type: [...types, "null"] };
}

/** Without a type: any value. */
function nodeOf(type: ColumnType): Node {
  const told = { [COLUMN_TYPE]: typeText(type) };
  switch (type.id) {
    case "null":
      return { type: "null" };
    case "bool":
      return { type: "boolean" };
    case "utf8":
      return { type: "string" };
    case "json":
      return {};
    case "int":
    case "decimal":
    case "float":
      return numberOf(type);
    case "binary":
      return { type: "string", contentEncoding: "base64" };
    case "fixed":
      return type.as === "uuid"
        ? { type: "string", format: "uuid" }
        : { type: "string", contentEncoding: "base64" };
    case "date32":
      return { type: "string", format: "date" };
    case "time64":
      return { type: "string", ...told };
    case "timestamp":
      return type.zone === null
        ? { type: "string", ...told }
        : { type: "string", format: "date-time", ...(type.unit === "us" ? {} : told) };
    case "interval":
      return objectOf(["months", "days", "nanoseconds"].map(whole));
    case "struct":
      return objectOf(type.fields);
    case "list":
      return { type: "array", items: propertyOf(type.item) };
    case "map":
      // Of other keys it is pairs, and an object where it is empty.
      return type.key.type.id === "utf8"
        ? { type: "object", additionalProperties: propertyOf(type.value) }
        : {};
  }
}

function numberOf(type: Extract<ColumnType, { id: "int" | "decimal" | "float" }>): Node {
  const text = typeText(type);
  const connect = CONNECT[text] === undefined ? {} : { "connect.type": CONNECT[text] };
  if (type.id === "int")
    return { type: "integer", ...(CONNECT[text] === undefined ? { [COLUMN_TYPE]: text } : connect) };
  // A step (`multipleOf`) would say it, too, and validators that reckon in doubles refuse 19.99 by it.
  if (type.id === "decimal") return { type: "number", [COLUMN_TYPE]: text };
  // NaN and the infinities are texts.
  return { type: ["number", "string"], pattern: "^(NaN|-?Infinity)$", ...connect, [COLUMN_TYPE]: text };
}

function whole(name: string): ColumnField {
  return { name, type: { id: "int", bits: 64, signed: true }, nullable: false };
}

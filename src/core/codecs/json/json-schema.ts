/**
 * A JSON Schema (drafts 4 to 2020-12) as columns. It says more about values than columns can, and less about types: what
 * it leaves open (several types, tuples, conditions, objects of unknown keys) becomes a column of JSON text, so nothing is
 * lost. Constraints that are no types (patterns, bounds, lengths) are not checked here.
 *
 *   string    utf8; format date, date-time, uuid: that type; Connect's and Debezium's titles: see `named`
 *   integer   int64; with bounds beyond it decimal(38,0)        number  double; multipleOf 0.01: decimal(38,2)
 *   boolean   bool    array of one kind  list    object with properties  struct    with additionalProperties alone  map
 *
 * A property is null where it is not required, or where its type allows null. A $ref is followed within the document, and
 * into references by their name; where it comes back to itself, its value is JSON text.
 */

import type { SchemaReference, SchemaText } from "../../schema/resolver.ts";
import type { ColumnField, ColumnType } from "../../types/table-batch.ts";
import { parseType } from "../../types/type-text.ts";
import { DecodeError } from "../record-codec.ts";

const JSON_TEXT: ColumnType = { id: "json" };
const TEXT: ColumnType = { id: "utf8" };
/** Deeper properties are JSON text: readers of what is written recurse. */
const MAX_DEPTH = 16;
const MAX_COLUMNS = 10_000;
/** Within a document, where something is looked for that is called by a name. */
const MAX_NAMED_DEPTH = 100;
/** Of schemas within each other that are no properties: allOf, anyOf, references. */
const MAX_LAYERS = 200;
const MAX_PRECISION = 38;
const MAX_INT64 = 2 ** 63;

const FORMATS: ReadonlyMap<string, ColumnType> = new Map<string, ColumnType>([
  ["date", { id: "date32" }],
  ["date-time", { id: "timestamp", unit: "us", zone: "UTC" }],
  ["uuid", { id: "fixed", bytes: 16, as: "uuid" }],
]);

/** `connect.type` of Kafka Connect's converter, which says which of its integers and floats it was. */
const CONNECT: ReadonlyMap<unknown, ColumnType> = new Map<unknown, ColumnType>([
  ["int8", { id: "int", bits: 8, signed: true }],
  ["int16", { id: "int", bits: 16, signed: true }],
  ["int32", { id: "int", bits: 32, signed: true }],
  ["int64", { id: "int", bits: 64, signed: true }],
  ["float32", { id: "float", bits: 32 }],
  ["float64", { id: "float", bits: 64 }],
]);

/** A keyword of ours, in schemas that were made of columns: a type of which JSON Schema has no word, as schema files have it. */
export const COLUMN_TYPE = "twg.type";

type Node = Readonly<Record<string, unknown>>;

interface Typed {
  readonly type: ColumnType;
  readonly nullable: boolean;
}

/** A document that $refs are looked up in. */
interface Document {
  readonly root: unknown;
  readonly references: readonly SchemaReference[];
}

/** Throws a DecodeError (decode.schema) that names the place in the schema. */
export function fieldsOfJsonSchema(schema: Pick<SchemaText, "text" | "references">): readonly ColumnField[] {
  const reader = new SchemaReader();
  const document = reader.parsed(schema, "");
  const other = another(document.root);
  if (other !== null)
    throw new DecodeError(
      "decode.schema",
      "",
      `${other}: JSON is read by a JSON Schema, or by a table's schema with a list "columns"`,
    );
  const { type } = reader.typed(document.root, document, "", 0);
  if (type.id !== "struct")
    throw new DecodeError("decode.schema", "", "a record's schema is of type object and has properties");
  return type.fields;
}

const YAML_CONTRACT = /^(apiVersion|dataContractSpecification|kind):/m;

/** What else it is, for people who gave the wrong one of their files. Null: a JSON Schema, as far as one can see. */
function another(root: unknown): string | null {
  if (!isNode(root) || "properties" in root) return null;
  if (root.kind === "DataContract" || "dataContractSpecification" in root) return "a data contract";
  if (root.type === "record") return "an Avro schema";
  return Array.isArray(isNode(root.schema) ? root.schema.fields : root.fields) ? "an Arrow schema" : null;
}

class SchemaReader {
  /** $refs that are being followed. */
  readonly #open = new Set<unknown>();
  readonly #documents = new Map<SchemaReference, Document>();
  #columns = 0;
  #layers = 0;

  parsed({ text, references }: Pick<SchemaText, "text" | "references">, place: string): Document {
    try {
      return { root: JSON.parse(text), references };
    } catch (e) {
      throw new DecodeError(
        "decode.schema",
        place,
        YAML_CONTRACT.test(text)
          ? "a data contract in YAML: JSON is read by a JSON Schema, or by a table's schema"
          : `it is no JSON: ${e instanceof Error ? e.message : String(e)}`,
      );
    }
  }

  typed(schema: unknown, document: Document, place: string, depth: number): Typed {
    if (this.#layers >= MAX_LAYERS)
      throw new DecodeError("decode.schema", place, `schemas within each other deeper than ${MAX_LAYERS}`);
    this.#layers++;
    const typed = this.#typed(schema, document, place, depth);
    this.#layers--;
    return typed;
  }

  #typed(schema: unknown, document: Document, place: string, depth: number): Typed {
    if (++this.#columns > MAX_COLUMNS)
      throw new DecodeError("decode.schema", place, `more than ${MAX_COLUMNS} columns`);
    if (!isNode(schema) || depth > MAX_DEPTH) return { type: JSON_TEXT, nullable: true };
    const told = typeof schema[COLUMN_TYPE] === "string" ? parseType(schema[COLUMN_TYPE]) : null;
    if (told !== null && typeof told !== "string") return { type: told, nullable: kinds(schema).nullable };
    if (typeof schema.$ref === "string") return this.#followed(schema.$ref, document, place, depth);
    const either = branches(schema.oneOf) ?? branches(schema.anyOf);
    if (either !== null) return this.#either(schema, either, document, place, depth);
    const all = branches(schema.allOf);
    if (all !== null) return this.#typedAll(schema, all, document, place, depth);
    const { types, nullable } = kinds(schema);
    if (types.length !== 1) return { type: JSON_TEXT, nullable: true };
    return { type: this.#single(types[0]!, schema, document, place, depth), nullable };
  }

  #followed(ref: string, document: Document, place: string, depth: number): Typed {
    const [node, home] = this.#target(ref, document, place);
    if (this.#open.has(node)) return { type: JSON_TEXT, nullable: true };
    this.#open.add(node);
    const typed = this.typed(node, home, place, depth);
    this.#open.delete(node);
    return typed;
  }

  #target(ref: string, document: Document, place: string): readonly [unknown, Document] {
    const mark = ref.indexOf("#");
    const name = mark < 0 ? ref : ref.slice(0, mark);
    let home = document;
    if (name !== "" && !(isNode(document.root) && document.root.$id === name)) {
      const found = document.references.find((r) => r.name === name);
      if (found === undefined)
        throw new DecodeError(
          "decode.schema",
          place,
          `the schema references ${JSON.stringify(ref)}, which came with no text`,
        );
      home = this.#documents.get(found) ?? this.parsed(found, name);
      this.#documents.set(found, home);
    }
    const node = partOf(home.root, mark < 0 ? "" : ref.slice(mark + 1));
    if (node === undefined)
      throw new DecodeError("decode.schema", place, `${JSON.stringify(ref)} leads nowhere`);
    return [node, home];
  }

  /** Null or one other is that other; anything more has no one type. */
  #either(schema: Node, either: readonly unknown[], document: Document, place: string, depth: number): Typed {
    const some = either.filter((s) => !(isNode(s) && s.type === "null"));
    if (some.length !== 1 || schema.properties !== undefined) return { type: JSON_TEXT, nullable: true };
    const { type, nullable } = this.typed(some[0], document, place, depth);
    return { type, nullable: nullable || some.length < either.length };
  }

  /** Objects that are all to hold are one object with the properties of all. */
  #typedAll(schema: Node, all: readonly unknown[], document: Document, place: string, depth: number): Typed {
    const { allOf: _, ...own } = schema;
    const parts = [
      ...all,
      ...(Object.keys(own).some((k) => k === "type" || k === "properties") ? [own] : []),
    ];
    const typed = parts.map((s) => this.typed(s, document, place, depth));
    if (typed.length === 1) return typed[0]!;
    const fields = new Map<string, ColumnField>();
    for (const { type } of typed) {
      if (type.id !== "struct") return { type: JSON_TEXT, nullable: true };
      for (const f of type.fields) {
        const before = fields.get(f.name);
        if (before !== undefined && JSON.stringify(before.type) !== JSON.stringify(f.type))
          return { type: JSON_TEXT, nullable: true };
        fields.set(f.name, { ...f, nullable: f.nullable && (before?.nullable ?? true) });
      }
    }
    return { type: { id: "struct", fields: [...fields.values()] }, nullable: typed.every((t) => t.nullable) };
  }

  #single(type: string, schema: Node, document: Document, place: string, depth: number): ColumnType {
    switch (type) {
      case "boolean":
        return { id: "bool" };
      case "integer":
        return CONNECT.get(schema["connect.type"]) ?? integerType(schema);
      case "number":
        return CONNECT.get(schema["connect.type"]) ?? numberType(schema);
      case "string":
        return typeof schema.format === "string" ? (FORMATS.get(schema.format) ?? TEXT) : TEXT;
      case "array":
        return this.#list(schema, document, place, depth);
      case "object":
        return this.#object(schema, document, place, depth);
      default:
        throw new DecodeError("decode.schema", place, `${JSON.stringify(type)} is no type`);
    }
  }

  #list(schema: Node, document: Document, place: string, depth: number): ColumnType {
    if (!isNode(schema.items) || schema.prefixItems !== undefined) return JSON_TEXT;
    const { type, nullable } = this.typed(schema.items, document, `${place}[]`, depth + 1);
    return { id: "list", item: { name: "element", type, nullable } };
  }

  #object(schema: Node, document: Document, place: string, depth: number): ColumnType {
    const { properties, additionalProperties: others } = schema;
    const entries = isNode(properties) ? Object.entries(properties) : [];
    if (entries.length > 0) return this.#struct(entries, schema, document, place, depth);
    if (!isNode(others) || schema.patternProperties !== undefined) return JSON_TEXT;
    const value = this.typed(others, document, `${place}{}`, depth + 1);
    return {
      id: "map",
      key: { name: "key", type: TEXT, nullable: false },
      value: { name: "value", ...value },
    };
  }

  #struct(
    entries: readonly (readonly [string, unknown])[],
    schema: Node,
    document: Document,
    place: string,
    depth: number,
  ): ColumnType {
    const required = Array.isArray(schema.required) ? schema.required : [];
    // Names that engines take for one, or none at all, make no struct.
    const names = new Set(entries.map(([name]) => name.toLowerCase()));
    if (depth > 0 && (names.size < entries.length || names.has(""))) return JSON_TEXT;
    const fields = entries.map(([name, s]): ColumnField => {
      const { type, nullable } = this.typed(s, document, place === "" ? name : `${place}.${name}`, depth + 1);
      return { name, type, nullable: nullable || !required.includes(name) };
    });
    return { id: "struct", fields };
  }
}

/** By a pointer (/definitions/a), or by the name that a part of the document gives itself; undefined: there is none. */
function partOf(root: unknown, fragment: string): unknown {
  if (fragment !== "" && !fragment.startsWith("/")) return named(root, fragment, 0);
  let node = root;
  for (const step of fragment.split("/").slice(1)) {
    const key = percentDecoded(step)?.replaceAll("~1", "/").replaceAll("~0", "~");
    const inside = (isNode(node) || Array.isArray(node)) && key !== undefined && Object.hasOwn(node, key);
    node = inside ? (node as Node)[key] : undefined;
  }
  return node;
}

function percentDecoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** `$anchor` of today's drafts; in the older ones an `$id` or `id` that is a fragment. */
function named(node: unknown, name: string, depth: number): unknown {
  if (typeof node !== "object" || node === null || depth > MAX_NAMED_DEPTH) return undefined;
  if (isNode(node) && (node.$anchor === name || node.$id === `#${name}` || node.id === `#${name}`))
    return node;
  for (const part of Object.values(node)) {
    const inside = named(part, name, depth + 1);
    if (inside !== undefined) return inside;
  }
  return undefined;
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function branches(value: unknown): readonly unknown[] | null {
  return Array.isArray(value) && value.length > 0 ? value : null;
}

function kinds(schema: Node): { readonly types: readonly string[]; readonly nullable: boolean } {
  const said = Array.isArray(schema.type)
    ? schema.type
    : schema.type === undefined
      ? inferred(schema)
      : [schema.type];
  const types = said.filter((t) => t !== "null").map(String);
  return { types, nullable: said.length > types.length };
}

/** Of a schema that names no type: what its other words are about. */
function inferred(schema: Node): readonly unknown[] {
  if (isNode(schema.properties)) return ["object"];
  const values = Array.isArray(schema.enum) ? schema.enum : schema.const === undefined ? [] : [schema.const];
  const kindsOf = new Set(values.map((v) => (v === null ? "null" : typeof v)));
  return [...kindsOf].every((k) => k === "string" || k === "boolean" || k === "null") ? [...kindsOf] : [];
}

function integerType({ minimum, maximum, exclusiveMaximum }: Node): ColumnType {
  const beyond = [minimum, maximum, exclusiveMaximum].some(
    (n) => typeof n === "number" && Math.abs(n) > MAX_INT64,
  );
  return beyond
    ? { id: "decimal", precision: MAX_PRECISION, scale: 0 }
    : { id: "int", bits: 64, signed: true };
}

/** A step of 0.01 says that there are cents. */
function numberType({ multipleOf }: Node): ColumnType {
  const scale = typeof multipleOf === "number" ? -Math.round(Math.log10(multipleOf)) : Number.NaN;
  if (scale >= 0 && scale <= MAX_PRECISION && Number(`1e-${scale}`) === multipleOf)
    return { id: "decimal", precision: MAX_PRECISION, scale };
  return { id: "float", bits: 64 };
}

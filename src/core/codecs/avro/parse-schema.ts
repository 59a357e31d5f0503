/**
 * The text of a schema to its types: names and namespaces as the specification (1.12) resolves them, references to
 * types of other texts. What is no schema is refused with its place in it. Defaults are looked at only where a reader
 * needs one: many schemas in use have some that are wrong and never used.
 */
import type { SchemaReference } from "../../schema/resolver.ts";
import { DecodeError } from "../record-codec.ts";
import { logicalOf } from "./logical.ts";
import {
  type AvroField,
  type AvroType,
  type Json,
  type NamedType,
  nameOf,
  type PrimitiveName,
  type RecordType,
} from "./schema.ts";

/** Deeper schemas are refused; table formats nest no deeper than 32. */
export const MOST_SCHEMA_DEPTH = 64;
const MOST_TEXT = 4 * 1024 * 1024;
const MOST_FIXED = 16 * 1024 * 1024;
const NAME = /^[\p{L}_][\p{L}\p{N}_]*$/u;
const PRIMITIVES: ReadonlySet<string> = new Set<PrimitiveName>([
  "null",
  "boolean",
  "int",
  "long",
  "float",
  "double",
  "bytes",
  "string",
]);

type Attributes = { readonly [key: string]: Json };

/** Throws a DecodeError of decode.schema. */
export function parseSchema(schema: {
  readonly text: string;
  readonly references?: readonly SchemaReference[];
}): AvroType {
  const parser = new SchemaParser();
  for (const r of schema.references ?? []) parser.reference(r, 0);
  return parser.text(schema.text);
}

function isObject(json: Json | undefined): json is Attributes {
  return typeof json === "object" && json !== null && !Array.isArray(json);
}

function exactNumber(_key: string, value: Json, context?: { readonly source?: string }): Json {
  const source = context?.source;
  if (typeof value !== "number" || source === undefined || Number.isSafeInteger(value)) return value;
  // Longer ones fit no type, and cost more than they are long.
  return /^-?\d{1,400}$/.test(source) ? BigInt(source) : value;
}

class SchemaParser {
  readonly #names = new Map<string, NamedType>();
  readonly #referenced = new Set<string>();
  readonly #place: string[] = [];

  reference(r: SchemaReference, depth: number): void {
    if (depth > MOST_SCHEMA_DEPTH) this.#refuse("references nest too deeply");
    if (this.#referenced.has(r.name)) return;
    this.#referenced.add(r.name);
    for (const inner of r.references) this.reference(inner, depth + 1);
    this.text(r.text);
  }

  text(text: string): AvroType {
    if (text.length > MOST_TEXT)
      this.#refuse(`the schema has ${text.length} characters, at most ${MOST_TEXT}`);
    return this.#type(this.#json(text), "", 0);
  }

  #json(text: string): Json {
    // A schema may be the bare name of a type.
    if (/^\s*[A-Za-z_][\w.]*\s*$/.test(text)) return text.trim();
    try {
      return JSON.parse(text, exactNumber) as Json;
    } catch (e) {
      if (!(e instanceof SyntaxError) && !(e instanceof RangeError)) throw e;
      return this.#refuse(`the schema is no JSON: ${e.message}`);
    }
  }

  #refuse(reason: string): never {
    throw new DecodeError("decode.schema", this.#place.join("."), reason);
  }

  #within<T>(place: string, inner: () => T): T {
    this.#place.push(place);
    const out = inner();
    this.#place.pop();
    return out;
  }

  #type(json: Json, namespace: string, depth: number): AvroType {
    if (depth > MOST_SCHEMA_DEPTH) this.#refuse(`the schema nests deeper than ${MOST_SCHEMA_DEPTH}`);
    if (typeof json === "string") return this.#named(json, namespace);
    if (Array.isArray(json)) return this.#union(json as readonly Json[], namespace, depth);
    if (!isObject(json)) return this.#refuse(`${JSON.stringify(json) ?? "nothing"} is no type`);
    const type = json["type"];
    switch (type) {
      case "record":
      case "error":
        return this.#record(json, namespace, depth);
      case "enum":
        return this.#enum(json, namespace);
      case "fixed":
        return this.#fixed(json, namespace);
      case "array":
        return {
          kind: "array",
          items: this.#within("items", () => this.#type(json["items"] ?? null, namespace, depth + 1)),
        };
      case "map":
        return {
          kind: "map",
          values: this.#within("values", () => this.#type(json["values"] ?? null, namespace, depth + 1)),
        };
      default:
        break;
    }
    if (typeof type === "string" && PRIMITIVES.has(type)) {
      const kind = type as PrimitiveName;
      return { kind, logical: logicalOf({ kind, size: 0 }, json) };
    }
    if (type === undefined) this.#refuse("an object without `type`");
    return this.#type(type, namespace, depth + 1);
  }

  #named(name: string, namespace: string): AvroType {
    if (PRIMITIVES.has(name)) return { kind: name as PrimitiveName, logical: null };
    const full = name.includes(".") || namespace === "" ? name : `${namespace}.${name}`;
    const type = this.#names.get(full) ?? this.#names.get(name);
    return type ?? this.#refuse(`there is no type ${JSON.stringify(full)}`);
  }

  #union(branches: readonly Json[], namespace: string, depth: number): AvroType {
    const types = branches.map((b, i) => this.#within(`[${i}]`, () => this.#type(b, namespace, depth + 1)));
    const seen = new Set<string>();
    for (const t of types) {
      if (t.kind === "union") this.#refuse("a union within a union");
      if (seen.has(nameOf(t))) this.#refuse(`the union has ${nameOf(t)} twice`);
      seen.add(nameOf(t));
    }
    return { kind: "union", branches: types };
  }

  /** Full name, namespace of what is inside, and aliases. */
  #names_(json: Attributes, enclosing: string) {
    const given = json["name"];
    if (typeof given !== "string") return this.#refuse(`a ${json["type"]} without a name`);
    const dot = given.lastIndexOf(".");
    const own = json["namespace"];
    const namespace = dot >= 0 ? given.slice(0, dot) : typeof own === "string" ? own : enclosing;
    const simple = given.slice(dot + 1);
    const parts = [...(namespace === "" ? [] : namespace.split(".")), simple];
    for (const part of parts) if (!NAME.test(part)) this.#refuse(`${JSON.stringify(given)} is no name`);
    const name = parts.join(".");
    if (this.#names.has(name) || PRIMITIVES.has(name)) this.#refuse(`${name} is defined twice`);
    const aliases = this.#strings(json["aliases"] ?? [], "aliases").map((a) =>
      a.includes(".") || namespace === "" ? a : `${namespace}.${a}`,
    );
    return { name, namespace, aliases };
  }

  #strings(json: Json, what: string): readonly string[] {
    if (Array.isArray(json) && json.every((s) => typeof s === "string")) return json as readonly string[];
    return this.#refuse(`${what} must be a list of strings`);
  }

  #register<T extends NamedType>(type: T): T {
    this.#names.set(type.name, type);
    return type;
  }

  #record(json: Attributes, enclosing: string, depth: number): RecordType {
    const { name, namespace, aliases } = this.#names_(json, enclosing);
    const fields: AvroField[] = [];
    const type = this.#register<RecordType>({ kind: "record", name, aliases, fields });
    const list = json["fields"];
    if (!Array.isArray(list)) return this.#refuse(`the record ${name} has no list of fields`);
    const seen = new Set<string>();
    for (const [i, f] of (list as readonly Json[]).entries()) {
      if (!isObject(f)) return this.#refuse(`field ${i} of ${name} is no object`);
      const field = this.#field(f, i, namespace, depth);
      if (seen.has(field.name)) this.#refuse(`${name} has the field ${field.name} twice`);
      seen.add(field.name);
      fields.push(field);
    }
    return type;
  }

  #field(json: Attributes, index: number, namespace: string, depth: number): AvroField {
    const name = json["name"];
    if (typeof name !== "string" || !NAME.test(name))
      return this.#refuse(`field ${index} has the name ${JSON.stringify(name) ?? "undefined"}`);
    return this.#within(name, () => ({
      name,
      aliases: this.#strings(json["aliases"] ?? [], "aliases"),
      type: this.#type(json["type"] ?? null, namespace, depth + 1),
      fallback: json["default"],
    }));
  }

  #enum(json: Attributes, enclosing: string): AvroType {
    const { name, aliases } = this.#names_(json, enclosing);
    const symbols = this.#strings(json["symbols"] ?? null, `the symbols of ${name}`);
    if (new Set(symbols).size !== symbols.length) this.#refuse(`${name} has a symbol twice`);
    for (const s of symbols) if (!NAME.test(s)) this.#refuse(`${JSON.stringify(s)} of ${name} is no name`);
    const fallback = json["default"] ?? null;
    if (fallback !== null && !symbols.includes(fallback as string))
      this.#refuse(`the default of ${name} is none of its symbols`);
    return this.#register({ kind: "enum", name, aliases, symbols, fallback: fallback as string | null });
  }

  #fixed(json: Attributes, enclosing: string): AvroType {
    const { name, aliases } = this.#names_(json, enclosing);
    const size = json["size"];
    if (typeof size !== "number" || !Number.isInteger(size) || size < 0 || size > MOST_FIXED)
      return this.#refuse(`the size of ${name} must be 0 to ${MOST_FIXED}`);
    return this.#register({
      kind: "fixed",
      name,
      aliases,
      size,
      logical: logicalOf({ kind: "fixed", size }, json),
    });
  }
}

/**
 * The columns of a data contract: Open Data Contract Standard, v3 (bitol-io, docs/README of v3.1 and v3.2). It is its shape
 * that is read here, names, types and what must be there; rules about values are counted, not applied.
 */
import { Failure } from "../failure/failure.ts";
import type { ColumnField, ColumnType } from "../types/table-batch.ts";
import { JSON_TEXT, scalarType } from "./column-types.ts";
import { parseYaml, type YamlDocument } from "./yaml-document.ts";

export interface ContractTable {
  readonly fields: readonly ColumnField[];
  /** Names of the columns of its primaryKey, in their order; empty: it declares none. A part within a column is its path. */
  readonly naturalKey: readonly string[];
  /** Which object of which contract, for people. */
  readonly origin: string;
}

/** Which of the objects of a contract is meant. */
export interface WantedObject {
  /** As the configuration says; null: it does not. */
  readonly name: string | null;
  /** Of the records; empty: of no one topic. */
  readonly topic: string;
  /** How to say which one is meant, for people. */
  readonly how?: string;
}

type Node = Readonly<Record<string, unknown>>;
type Path = readonly (string | number)[];

const isNode = (v: unknown): v is Node => typeof v === "object" && v !== null && !Array.isArray(v);

const MAX_DEPTH = 16;
const MAX_COLUMNS = 10_000;
const OTHERS: readonly (readonly [string, string])[] = [
  ["dataContractSpecification", "the Data Contract Specification, which ODCS v3 has taken the place of"],
  ["dataset", "ODCS v2"],
];

/** Throws files.schema with place and line. `at`: the file. */
export function tableOfContract(text: string, wanted: WantedObject, at: string): ContractTable {
  return new Contract(parseYaml(text, at), at).table(wanted);
}

class Contract {
  readonly #document: YamlDocument;
  readonly #root: Node;
  readonly #at: string;
  #columns = 0;
  #rules = 0;

  constructor(document: YamlDocument, at: string) {
    this.#document = document;
    this.#at = at;
    this.#root = this.#node(document.root, []);
  }

  table(wanted: WantedObject): ContractTable {
    this.#header();
    const schema = this.#root.schema;
    if (!Array.isArray(schema) || schema.length === 0)
      throw this.#bad(["schema"], "a list of objects with properties is wanted");
    const index = this.#chosen(schema, wanted);
    const path = ["schema", index];
    const object = this.#node(schema[index], path);
    this.#count(object);
    const fields = this.#properties(object, path, 0);
    const rules = this.#rules === 0 ? "" : `; ${this.#rules} of its rules about values are not applied`;
    const which = ["id", "version"].flatMap((key) => this.#document.textOf([key]) ?? []).join(" ");
    const naturalKey = this.#naturalKey(object, path);
    return {
      fields,
      naturalKey,
      origin: `object ${this.#nameOf(object, path)} of the data contract ${which}${rules}`,
    };
  }

  #header(): void {
    const other = OTHERS.find(([key]) => key in this.#root);
    if (other !== undefined)
      throw this.#bad([other[0]], `this is ${other[1]}; contracts of ODCS v3 are read`);
    const { kind, apiVersion } = this.#root;
    if (kind !== "DataContract") throw this.#bad(["kind"], '"DataContract" is wanted');
    if (typeof apiVersion !== "string" || !/^v3\./.test(apiVersion))
      throw this.#bad(["apiVersion"], `contracts of v3 are read, not ${JSON.stringify(apiVersion ?? null)}`);
  }

  #chosen(schema: readonly unknown[], { name, topic, how = "" }: WantedObject): number {
    const names = schema.map((o, i) => {
      const object = this.#node(o, ["schema", i]);
      return [object.physicalName, object.name].filter((n) => typeof n === "string");
    });
    const named = (wanted: string) => names.findIndex((own) => own.includes(wanted));
    const found = name === null ? named(topic) : named(name);
    if (found >= 0) return found;
    const all = names.map((own) => own.at(-1) ?? "").join(", ");
    if (name !== null)
      throw this.#bad(["schema"], `no object is called ${JSON.stringify(name)}, there are ${all}`);
    if (schema.length === 1 || topic === "") return 0;
    const why = `none of its objects (${all}) is called ${JSON.stringify(topic)}${how}`;
    throw this.#bad(["schema"], why);
  }

  #properties(object: Node, path: Path, depth: number): ColumnField[] {
    const { properties } = object;
    const place = [...path, "properties"];
    if (!Array.isArray(properties) || properties.length === 0)
      throw this.#bad(place, "a list of properties is wanted");
    const seen = new Map<string, number>();
    return properties.map((p: unknown, i) => {
      const at = [...place, i];
      const property = this.#node(p, at);
      const name = this.#nameOf(property, at);
      const before = seen.get(name);
      if (before !== undefined)
        throw this.#bad(at, `property ${before} is called ${JSON.stringify(name)} as well`);
      seen.set(name, i);
      return { name, ...this.#typed(property, at, depth) };
    });
  }

  /** By `primaryKeyPosition`, which begins at 1; of those without one the order in which they stand. */
  #naturalKey(object: Node, path: Path): readonly string[] {
    const properties = object.properties as readonly unknown[];
    const parts = properties.flatMap((p, i) => {
      const at = [...path, "properties", i];
      const property = this.#node(p, at);
      if (!this.#flag(property, "primaryKey", at)) return [];
      const position = property.primaryKeyPosition;
      const said = typeof position === "number" && position >= 1 ? position : Number.POSITIVE_INFINITY;
      return [{ name: this.#nameOf(property, at), said }];
    });
    // Infinity less infinity is none of the two.
    const own = parts.toSorted((a, b) => (a.said < b.said ? -1 : a.said > b.said ? 1 : 0)).map((p) => p.name);
    return [...own, ...properties.flatMap((p) => nestedKeys(p as Node, ""))];
  }

  /** The physical name is that of the data themselves. */
  #nameOf(node: Node, path: Path): string {
    const key = node.physicalName === undefined || node.physicalName === null ? "name" : "physicalName";
    const name = this.#text(node, key, path);
    if (name === null || name === "") throw this.#bad([...path, key], "a name is wanted");
    if (name.includes("${"))
      throw this.#bad([...path, key], `variables as in ${JSON.stringify(name)} are not resolved`);
    return name;
  }

  #typed(property: Node, path: Path, depth: number): Omit<ColumnField, "name"> {
    if (++this.#columns > MAX_COLUMNS) throw this.#bad(path, `there are more than ${MAX_COLUMNS} properties`);
    if (depth > MAX_DEPTH) throw this.#bad(path, `properties nest deeper than ${MAX_DEPTH}`);
    this.#count(property);
    // A key that may be null is none, whatever `required` says.
    const required = this.#flag(property, "required", path) || this.#flag(property, "primaryKey", path);
    return { type: this.#type(property, path, depth), nullable: !required };
  }

  #type(property: Node, path: Path, depth: number): ColumnType {
    const said = this.#text(property, "logicalType", path);
    const nests = Array.isArray(property.properties) && property.properties.length > 0;
    const logical = said ?? (nests ? "object" : property.items !== undefined ? "array" : null);
    switch (logical) {
      case "object":
        return nests ? { id: "struct", fields: this.#properties(property, path, depth + 1) } : JSON_TEXT;
      case "array":
        return this.#list(property.items, [...path, "items"], depth);
      case "vector":
        return { id: "list", item: { name: "element", type: { id: "float", bits: 64 }, nullable: false } };
      case "map":
        return this.#map(property, path, depth);
      default:
        return this.#scalar(property, logical, path);
    }
  }

  #list(items: unknown, path: Path, depth: number): ColumnType {
    if (items === undefined || items === null) return JSON_TEXT;
    return {
      id: "list",
      item: { name: "element", ...this.#typed(this.#node(items, path), path, depth + 1) },
    };
  }

  /** Of v3.2: keys are text in every format that is read here. */
  #map(property: Node, path: Path, depth: number): ColumnType {
    const map = isNode(property.map) ? property.map : {};
    if (!isNode(map.value)) return JSON_TEXT;
    return {
      id: "map",
      key: { name: "key", type: { id: "utf8" }, nullable: false },
      value: { name: "value", ...this.#typed(map.value, [...path, "map", "value"], depth + 1) },
    };
  }

  #scalar(property: Node, logical: string | null, path: Path): ColumnType {
    const options = isNode(property.logicalTypeOptions) ? property.logicalTypeOptions : {};
    const { timezone } = options;
    const type = scalarType({
      logical,
      physical: this.#text(property, "physicalType", path),
      format: this.#text(options, "format", [...path, "logicalTypeOptions"]),
      zoned: typeof timezone === "boolean" ? timezone : null,
      precision: this.#custom(property, "precision"),
      scale: this.#custom(property, "scale"),
    });
    if (typeof type !== "string") return type;
    const physical = logical === null && typeof property.physicalType === "string";
    const key = physical ? "physicalType" : type.includes("format") ? "logicalTypeOptions" : "logicalType";
    throw this.#bad([...path, key], type);
  }

  #custom({ customProperties }: Node, name: string): number | null {
    if (!Array.isArray(customProperties)) return null;
    const found = customProperties.find((c) => isNode(c) && c.property === name);
    const value = isNode(found) ? Number(found.value) : Number.NaN;
    return Number.isInteger(value) ? value : null;
  }

  /** What says more of values than their column does. */
  #count(node: Node): void {
    const { quality, logicalTypeOptions: options, unique, enum: values } = node;
    const shape = ["format", "timezone", "defaultTimezone", "dimensions", "elementType"];
    if (Array.isArray(quality)) this.#rules += quality.length;
    if (isNode(options)) this.#rules += Object.keys(options).filter((k) => !shape.includes(k)).length;
    if (unique === true || node.primaryKey === true) this.#rules++;
    if (Array.isArray(values)) this.#rules++;
  }

  #node(value: unknown, path: Path): Node {
    if (isNode(value)) return value;
    throw this.#bad(path, "an object is wanted");
  }

  #text(node: Node, key: string, path: Path): string | null {
    const value = node[key];
    if (value === undefined || value === null) return null;
    if (typeof value === "string") return value;
    throw this.#bad([...path, key], "a text is wanted");
  }

  #flag(node: Node, key: string, path: Path): boolean {
    const value = node[key] ?? false;
    if (typeof value === "boolean") return value;
    throw this.#bad([...path, key], "true or false is wanted");
  }

  #bad(path: Path, why: string): Failure {
    const place = path
      .map((p) => (typeof p === "number" ? `[${p}]` : `.${p}`))
      .join("")
      .slice(1);
    const line = `line ${this.#document.lineOf(path)}`;
    const message = `the contract cannot be used: ${place === "" ? "" : `${place}, `}${line}: ${why}`;
    return new Failure("files.schema", message, { at: this.#at });
  }
}

/** Paths of properties within this one that are parts of the primaryKey: no columns, and left out they would make one of two keys. */
function nestedKeys(node: Node, before: string): string[] {
  const path = `${before}${node.physicalName ?? node.name ?? "element"}`;
  const { properties, items, map } = node;
  const within = [...(Array.isArray(properties) ? properties : []), items, isNode(map) ? map.value : null];
  return within.filter(isNode).flatMap((child) => {
    const own = child.primaryKey === true ? [`${path}.${child.physicalName ?? child.name ?? "element"}`] : [];
    return [...own, ...nestedKeys(child, `${path}.`)];
  });
}

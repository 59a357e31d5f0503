/** An Arrow schema in the JSON of Arrow's integration tests: { "schema": { "fields": [...] } }, or the schema by itself. */
import { Failure } from "../../failure/failure.ts";
import type { ArrowField, ArrowType, Unit } from "./fields.ts";

type Node = Readonly<Record<string, unknown>>;

const isNode = (v: unknown): v is Node => typeof v === "object" && v !== null && !Array.isArray(v);

/** The list of fields, where a document has the form of such a schema: each with a name and a type that is named. */
export function arrowJsonFields(document: unknown): readonly unknown[] | null {
  if (!isNode(document)) return null;
  const schema = isNode(document.schema) ? document.schema : document;
  const { fields } = schema;
  if (!Array.isArray(fields) || fields.length === 0) return null;
  return fields.every((f) => isNode(f) && isNode(f.type) && typeof f.type.name === "string") ? fields : null;
}

const MAX_DEPTH = 64;
const UNITS: ReadonlyMap<unknown, Unit> = new Map<unknown, Unit>([
  ["SECOND", "s"],
  ["MILLISECOND", "ms"],
  ["MICROSECOND", "us"],
  ["NANOSECOND", "ns"],
]);
const FLOATS: ReadonlyMap<unknown, number> = new Map<unknown, number>([
  ["HALF", 16],
  ["SINGLE", 32],
  ["DOUBLE", 64],
]);

/** Throws files.schema with the path of the field. `at`: the file. */
export function arrowFieldsOfJson(fields: readonly unknown[], at: string): ArrowField[] {
  return new Reader(at).fields(fields, "", 0);
}

class Reader {
  readonly #at: string;

  constructor(at: string) {
    this.#at = at;
  }

  #bad(path: string, why: string): Failure {
    const message = `the Arrow schema cannot be read: field ${JSON.stringify(path)}: ${why}`;
    return new Failure("files.schema", message, { at: this.#at });
  }

  fields(fields: readonly unknown[], above: string, depth: number): ArrowField[] {
    return fields.map((f, i) => {
      const name = isNode(f) && typeof f.name === "string" ? f.name : null;
      const path = `${above}${name ?? i}`;
      if (depth > MAX_DEPTH) throw this.#bad(path, "it nests without end");
      if (!isNode(f) || name === null) throw this.#bad(path, "an object with a name and a type is wanted");
      const { nullable = false, children = [], type } = f;
      if (typeof nullable !== "boolean") throw this.#bad(path, "nullable is true or false");
      if (!Array.isArray(children)) throw this.#bad(path, "children are a list");
      return {
        ...{ name, nullable, extension: extensionOf(f.metadata) },
        type: this.#type(type, path),
        children: this.fields(children, `${path}.`, depth + 1),
      };
    });
  }

  #type(type: unknown, path: string): ArrowType {
    if (!isNode(type)) throw this.#bad(path, 'a type is an object with a "name"');
    const name = String(type.name).replace(/^large|view$/g, "");
    switch (name) {
      case "null":
      case "bool":
      case "utf8":
      case "binary":
      case "date":
      case "struct":
      case "list":
      case "map":
        return { name };
      case "fixedsizelist":
        return { name: "list" };
      case "int":
        return {
          name,
          bits: this.#oneOf(type, "bitWidth", [8, 16, 32, 64], path),
          signed: type.isSigned !== false,
        };
      case "floatingpoint":
        return { name: "float", bits: this.#mapped(type, "precision", FLOATS, path) };
      case "decimal":
        return {
          name,
          precision: this.#whole(type, "precision", path),
          scale: this.#whole(type, "scale", path),
        };
      case "time":
        return { name, unit: this.#mapped(type, "unit", UNITS, path) };
      case "timestamp":
        return {
          name,
          unit: this.#mapped(type, "unit", UNITS, path),
          zone: typeof type.timezone === "string" ? type.timezone : null,
        };
      case "fixedsizebinary":
        return { name: "fixed", bytes: this.#whole(type, "byteWidth", path) };
      case "runendencoded":
        return { name: "runs" };
      case "interval":
        return type.unit === "MONTH_DAY_NANO"
          ? { name: "months" }
          : { name: "other", called: "an interval of months or days" };
      case "union":
      case "duration":
        return { name: "other", called: `a ${name}` };
      default:
        throw this.#bad(path, `${JSON.stringify(type.name)} is no type of Arrow's`);
    }
  }

  #whole(type: Node, key: string, path: string): number {
    const n = type[key];
    if (typeof n === "number" && Number.isInteger(n)) return n;
    throw this.#bad(path, `${key} is a whole number`);
  }

  #oneOf(type: Node, key: string, allowed: readonly number[], path: string): number {
    const n = this.#whole(type, key, path);
    if (allowed.includes(n)) return n;
    throw this.#bad(path, `${key} is ${allowed.join(", ")}, not ${n}`);
  }

  #mapped<T>(type: Node, key: string, known: ReadonlyMap<unknown, T>, path: string): T {
    const found = known.get(type[key]);
    if (found !== undefined) return found;
    throw this.#bad(path, `${key} is one of ${[...known.keys()].join(", ")}`);
  }
}

/** Metadata are a list of pairs, of older writers an object. */
function extensionOf(metadata: unknown): string | null {
  const name = "ARROW:extension:name";
  const pairs = Array.isArray(metadata) ? metadata : [];
  const found = isNode(metadata) ? metadata[name] : pairs.find((p) => isNode(p) && p.key === name)?.value;
  return typeof found === "string" ? found : null;
}

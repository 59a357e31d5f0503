/** Arrow's fields, whichever way they were written down, and the columns that they are. What no column holds is refused. */
import { Failure } from "../../failure/failure.ts";
import type { ColumnField, ColumnType } from "../../types/table-batch.ts";
import { typeText } from "../../types/type-text.ts";

export type Unit = "s" | "ms" | "us" | "ns";

/** Types by the names of Arrow's JSON; what makes no difference to values (Large, View) has one name. */
export type ArrowType =
  | { readonly name: "null" | "bool" | "utf8" | "binary" | "date" | "struct" | "list" | "map" }
  | { readonly name: "int"; readonly bits: number; readonly signed: boolean }
  | { readonly name: "float"; readonly bits: number }
  | { readonly name: "decimal"; readonly precision: number; readonly scale: number }
  | { readonly name: "time"; readonly unit: Unit }
  | { readonly name: "timestamp"; readonly unit: Unit; readonly zone: string | null }
  | { readonly name: "fixed"; readonly bytes: number }
  | { readonly name: "runs" }
  | { readonly name: "months" }
  /** Of a type that has no place in a table here; as Arrow calls it. */
  | { readonly name: "other"; readonly called: string };

export interface ArrowField {
  readonly name: string;
  readonly nullable: boolean;
  readonly type: ArrowType;
  readonly children: readonly ArrowField[];
  /** The extension that the metadata name, such as arrow.uuid. */
  readonly extension: string | null;
}

const MAX_DEPTH = 32;
const MAX_COLUMNS = 10_000;
const MAX_PRECISION = 38;

/** Throws files.schema with the path of the field. `at`: the file. */
export function columnsOfArrow(fields: readonly ArrowField[], at: string): ColumnField[] {
  const columns = new Columns(at);
  if (fields.length === 0) throw columns.refused("", "the schema has no fields");
  return columns.named(fields, "", 0);
}

class Columns {
  readonly #at: string;
  #count = 0;

  constructor(at: string) {
    this.#at = at;
  }

  refused(path: string, why: string): Failure {
    const place = path === "" ? "" : `field ${JSON.stringify(path)}: `;
    return new Failure("files.schema", `the Arrow schema cannot be used: ${place}${why}`, { at: this.#at });
  }

  named(fields: readonly ArrowField[], above: string, depth: number): ColumnField[] {
    const seen = new Set<string>();
    return fields.map((f) => {
      const path = `${above}${f.name}`;
      if (f.name === "") throw this.refused(path, "it has no name");
      if (seen.has(f.name)) throw this.refused(path, "two fields have this name");
      seen.add(f.name);
      return this.#column(f, f.name, path, depth);
    });
  }

  /** A column of nothing but nulls may be null, whatever it says. */
  #column(field: ArrowField, name: string, path: string, depth: number): ColumnField {
    if (++this.#count > MAX_COLUMNS) throw this.refused(path, `there are more than ${MAX_COLUMNS} columns`);
    if (depth > MAX_DEPTH) throw this.refused(path, `it nests deeper than ${MAX_DEPTH}`);
    const nullable = field.nullable || field.type.name === "null";
    return { name, type: this.#type(field, path, depth), nullable };
  }

  #type({ type, children, extension }: ArrowField, path: string, depth: number): ColumnType {
    switch (type.name) {
      case "struct":
        if (children.length === 0) throw this.refused(path, "a struct without fields");
        return { id: "struct", fields: this.named(children, `${path}.`, depth + 1) };
      case "list":
        return { id: "list", item: this.#child(children, 0, 1, "element", `${path}[]`, depth) };
      case "map": {
        const { type: entries } = this.#child(children, 0, 1, "entries", path, depth);
        const [key, value, ...more] = entries.id === "struct" ? entries.fields : [];
        if (key === undefined || value === undefined || more.length > 0)
          throw this.refused(path, "a map whose entries are no key and value");
        if (key.type.id !== "utf8")
          throw this.refused(path, `keys of a map are text here, not ${typeText(key.type)}`);
        return {
          id: "map",
          key: { ...key, name: "key", nullable: false },
          value: { ...value, name: "value" },
        };
      }
      case "runs":
        // The ends of runs and their values: how it is stored, not what.
        return this.#child(children, 1, 2, "values", path, depth).type;
      default:
        return this.#leaf(type, extension, path);
    }
  }

  #child(
    children: readonly ArrowField[],
    at: number,
    of: number,
    name: string,
    path: string,
    depth: number,
  ): ColumnField {
    const child = children[at];
    if (child === undefined || children.length !== of)
      throw this.refused(path, `${children.length} children, ${of} are wanted`);
    return this.#column(child, name, path, depth + 1);
  }

  #leaf(type: ArrowType, extension: string | null, path: string): ColumnType {
    switch (type.name) {
      case "null":
        return { id: "utf8" };
      case "bool":
        return { id: "bool" };
      case "utf8":
        return { id: extension === "arrow.json" ? "json" : "utf8" };
      case "binary":
        return { id: "binary" };
      case "date":
        return { id: "date32" };
      case "int":
        return { id: "int", bits: type.bits as 8, signed: type.signed };
      case "float":
        return { id: "float", bits: type.bits === 64 ? 64 : 32 };
      case "decimal":
        return this.#decimal(type.precision, type.scale, path);
      case "time":
        return { id: "time64", unit: type.unit === "ns" ? "ns" : "us" };
      case "timestamp":
        // Whatever zone it is shown in: the instants are UTC's.
        return { id: "timestamp", unit: type.unit, zone: type.zone === null ? null : "UTC" };
      case "fixed":
        return this.#fixed(type.bytes, extension, path);
      case "months":
        return { id: "interval" };
      default:
        throw this.refused(path, `${type.name === "other" ? type.called : type.name} has no column here`);
    }
  }

  #decimal(precision: number, scale: number, path: string): ColumnType {
    if (precision >= 1 && precision <= MAX_PRECISION && scale >= 0 && scale <= precision)
      return { id: "decimal", precision, scale };
    throw this.refused(path, `decimals have 1 to ${MAX_PRECISION} digits, not (${precision}, ${scale})`);
  }

  #fixed(bytes: number, extension: string | null, path: string): ColumnType {
    if (extension === "arrow.uuid" && bytes === 16) return { id: "fixed", bytes, as: "uuid" };
    if (bytes < 1) throw this.refused(path, `binary of ${bytes} bytes`);
    return { id: "fixed", bytes };
  }
}

/**
 * How columns of a table are stored in Parquet: the schema, and for each leaf its levels and physical type. It is the
 * schema that DuckDB writes for the same columns, to the byte, so that row groups of both can stand in one file.
 * Ids are those of parquet-format's src/main/thrift/parquet.thrift.
 */
import type { ColumnField, ColumnType } from "../../types/table-batch.ts";
import { LOGICAL, PHYSICAL, REPETITION } from "./read-footer.ts";
import { ThriftWriter } from "./thrift.ts";

/** How values are read out of a column's buffers. */
export type LeafValues =
  | { readonly id: "bits" }
  /** `bytes` of each value in the column; 16: the low word of a decimal. */
  | { readonly id: "int32"; readonly bytes: 1 | 2 | 4 | 16; readonly signed: boolean }
  /** `times`: what a value is multiplied with (a unit that DuckDB does not keep). */
  | { readonly id: "int64"; readonly bytes: 8 | 16; readonly signed: boolean; readonly times: number }
  | { readonly id: "float"; readonly bytes: 4 | 8 }
  /** `width` 0: by the column's offsets. */
  | { readonly id: "bytes"; readonly width: number }
  /** 16 bytes; `reversed`: least significant byte first in the column. */
  | { readonly id: "fixed"; readonly reversed: boolean };

export interface TableLeaf {
  readonly path: readonly string[];
  readonly physical: number;
  readonly values: LeafValues;
  readonly maxDefinition: number;
  readonly maxRepetition: number;
}

/** A column or a part of one. `optional`: a definition level says whether it is there. */
export type TableNode =
  | { readonly id: "leaf"; readonly optional: boolean; readonly leaf: TableLeaf }
  | { readonly id: "struct"; readonly optional: boolean; readonly children: readonly TableNode[] }
  | { readonly id: "list"; readonly child: TableNode };

export interface TablePlan {
  readonly nodes: readonly TableNode[];
  readonly leaves: readonly TableLeaf[];
  /** Encoded SchemaElements, the root first. */
  readonly schema: Uint8Array;
  readonly elements: number;
}

/** parquet.thrift: ConvertedType. */
const CONVERTED = {
  utf8: 0,
  map: 1,
  list: 3,
  decimal: 5,
  date: 6,
  timeMicros: 8,
  timestampMillis: 9,
  timestampMicros: 10,
  /** 8 bits; those of 16, 32 and 64 follow. */
  unsigned: 11,
  signed: 15,
} as const;
const UNIT = { ms: 1, us: 2, ns: 3 } as const;
/** What the level writer packs. */
const MOST_LEVELS = 15;
const ROOT = "duckdb_schema";

interface Annotation {
  readonly physical: number;
  readonly length?: number;
  readonly converted?: number;
  readonly scale?: number;
  readonly precision?: number;
  readonly logical?: (w: ThriftWriter) => void;
  readonly values: LeafValues;
}

interface Place {
  readonly path: readonly string[];
  readonly definition: number;
  readonly repetition: number;
}

/** Null: there is a type that this does not know. */
export function tablePlan(fields: readonly ColumnField[]): TablePlan | null {
  return fields.length === 0 ? null : new Planner().plan(fields);
}

class Planner {
  readonly #w = new ThriftWriter();
  readonly #leaves: TableLeaf[] = [];
  #elements = 1;

  plan(fields: readonly ColumnField[]): TablePlan | null {
    this.#w.open().i32(3, REPETITION.required).string(4, ROOT).i32(5, fields.length).close();
    const nodes: TableNode[] = [];
    for (const { name, type } of fields) {
      const node = this.#node(type, { path: [name], definition: 0, repetition: 0 }, true);
      if (node === null) return null;
      nodes.push(node);
    }
    if (this.#leaves.some((l) => l.maxDefinition > MOST_LEVELS)) return null;
    return { nodes, leaves: this.#leaves, schema: this.#w.view().slice(), elements: this.#elements };
  }

  #node(type: ColumnType, at: Place, optional: boolean): TableNode | null {
    const place = optional ? { ...at, definition: at.definition + 1 } : at;
    switch (type.id) {
      case "struct":
        return this.#struct(type.fields, place, optional);
      case "list":
        return optional ? this.#list(type.item.type, place) : null;
      case "map":
        return optional ? this.#map(type.key.type, type.value.type, place) : null;
      default:
        return this.#leaf(type, place, optional);
    }
  }

  #struct(fields: readonly ColumnField[], at: Place, optional: boolean): TableNode | null {
    if (fields.length === 0) return null;
    this.#group(at, optional ? REPETITION.optional : REPETITION.required, fields.length);
    const children: TableNode[] = [];
    for (const f of fields) {
      const child = this.#node(f.type, { ...at, path: [...at.path, f.name] }, true);
      if (child === null) return null;
      children.push(child);
    }
    return { id: "struct", optional, children };
  }

  #list(item: ColumnType, at: Place): TableNode | null {
    this.#group(at, REPETITION.optional, 1, CONVERTED.list);
    const inner = repeated(at, "list");
    this.#group(inner, REPETITION.repeated, 1);
    const child = this.#node(item, { ...inner, path: [...inner.path, "element"] }, true);
    return child === null ? null : { id: "list", child };
  }

  #map(key: ColumnType, value: ColumnType, at: Place): TableNode | null {
    this.#group(at, REPETITION.optional, 1, CONVERTED.map);
    const entry = repeated(at, "key_value");
    this.#group(entry, REPETITION.repeated, 2);
    const keys = this.#node(key, { ...entry, path: [...entry.path, "key"] }, false);
    // Levels of a key that is itself a group are nothing that readers agree on.
    if (keys?.id !== "leaf") return null;
    const values = this.#node(value, { ...entry, path: [...entry.path, "value"] }, true);
    if (values === null) return null;
    return { id: "list", child: { id: "struct", optional: false, children: [keys, values] } };
  }

  #group({ path }: Place, repetition: number, children: number, converted?: number): void {
    const w = this.#w.open().i32(3, repetition).string(4, path.at(-1)!).i32(5, children);
    if (converted !== undefined) w.i32(6, converted);
    w.close();
    this.#elements++;
  }

  #leaf(type: ColumnType, at: Place, optional: boolean): TableNode | null {
    const a = annotation(type);
    if (a === null) return null;
    const w = this.#w.open().i32(1, a.physical);
    if (a.length !== undefined) w.i32(2, a.length);
    w.i32(3, optional ? REPETITION.optional : REPETITION.required).string(4, at.path.at(-1)!);
    if (a.converted !== undefined) w.i32(6, a.converted);
    if (a.scale !== undefined) w.i32(7, a.scale);
    if (a.precision !== undefined) w.i32(8, a.precision);
    if (a.logical !== undefined) {
      w.open(10);
      a.logical(w);
      w.close();
    }
    w.close();
    this.#elements++;
    const { path, definition: maxDefinition, repetition: maxRepetition } = at;
    const leaf = { path, physical: a.physical, values: a.values, maxDefinition, maxRepetition };
    this.#leaves.push(leaf);
    return { id: "leaf", optional, leaf };
  }
}

function repeated(at: Place, name: string): Place {
  return { path: [...at.path, name], definition: at.definition + 1, repetition: at.repetition + 1 };
}

function annotation(type: ColumnType): Annotation | null {
  switch (type.id) {
    case "bool":
      return { physical: PHYSICAL.boolean, values: { id: "bits" } };
    case "int":
      return integer(type.bits, type.signed);
    case "float":
      return {
        physical: type.bits === 32 ? PHYSICAL.float : PHYSICAL.double,
        values: { id: "float", bytes: type.bits === 32 ? 4 : 8 },
      };
    case "decimal":
      return decimal(type.precision, type.scale);
    case "utf8":
    case "json":
      return { physical: PHYSICAL.bytes, converted: CONVERTED.utf8, values: { id: "bytes", width: 0 } };
    case "binary":
      return { physical: PHYSICAL.bytes, values: { id: "bytes", width: 0 } };
    case "fixed":
      return type.as === "uuid"
        ? {
            physical: PHYSICAL.fixed,
            length: 16,
            logical: (w) => w.empty(LOGICAL.uuid),
            values: { id: "fixed", reversed: false },
          }
        : { physical: PHYSICAL.bytes, values: { id: "bytes", width: type.bytes } };
    case "date32":
      return {
        physical: PHYSICAL.int32,
        converted: CONVERTED.date,
        values: { id: "int32", bytes: 4, signed: true },
      };
    case "time64":
      return instant(LOGICAL.time, type.unit, false, 1);
    case "timestamp":
      return timestamp(type.unit, type.zone !== null);
    default:
      return null;
  }
}

function integer(bits: 8 | 16 | 32 | 64, signed: boolean): Annotation {
  const converted = (signed ? CONVERTED.signed : CONVERTED.unsigned) + Math.log2(bits / 8);
  return bits === 64
    ? { physical: PHYSICAL.int64, converted, values: { id: "int64", bytes: 8, signed, times: 1 } }
    : {
        physical: PHYSICAL.int32,
        converted,
        values: { id: "int32", bytes: (bits / 8) as 1 | 2 | 4, signed },
      };
}

function decimal(precision: number, scale: number): Annotation {
  const logical = (w: ThriftWriter) => void w.open(LOGICAL.decimal).i32(1, scale).i32(2, precision).close();
  const common = { converted: CONVERTED.decimal, scale, precision, logical };
  if (precision <= 9)
    return { ...common, physical: PHYSICAL.int32, values: { id: "int32", bytes: 16, signed: true } };
  if (precision <= 18)
    return {
      ...common,
      physical: PHYSICAL.int64,
      values: { id: "int64", bytes: 16, signed: true, times: 1 },
    };
  return { ...common, physical: PHYSICAL.fixed, length: 16, values: { id: "fixed", reversed: true } };
}

/** Instants of a zone in seconds and milliseconds become microseconds; in nanoseconds they are wall-clock times (types/utc-instants.ts). */
function timestamp(unit: "s" | "ms" | "us" | "ns", zoned: boolean): Annotation {
  if (unit === "s") return instant(LOGICAL.timestamp, "us", zoned, 1_000_000);
  // Of those that are not microseconds the whole file says that they are of UTC (utc-instants.ts).
  return instant(LOGICAL.timestamp, unit, zoned && unit === "us", 1);
}

function instant(logical: number, unit: "ms" | "us" | "ns", zoned: boolean, times: number): Annotation {
  const micros = logical === LOGICAL.time ? CONVERTED.timeMicros : CONVERTED.timestampMicros;
  return {
    physical: PHYSICAL.int64,
    ...(unit === "ns" ? {} : { converted: unit === "ms" ? CONVERTED.timestampMillis : micros }),
    logical: (w) => {
      w.open(logical).bool(1, zoned).open(2).empty(UNIT[unit]).close().close();
    },
    values: { id: "int64", bytes: 8, signed: true, times },
  };
}

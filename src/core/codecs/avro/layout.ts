/**
 * The columns of a reader's schema as a tree of slots, each one builder. Slots of one dimension have their rows in
 * common: those of the table, and those of each list's or map's items.
 */
import {
  BoolBuilder,
  BytesBuilder,
  type ColumnBuilder,
  FixedBuilder,
  ListBuilder,
  StructBuilder,
} from "../../types/column-builder.ts";
import type { ColumnField, ColumnType } from "../../types/table-batch.ts";
import { DecodeError } from "../record-codec.ts";
import { type AvroType, branchNames, optional, type RecordType, type UnionType } from "./schema.ts";
import { scalarColumn } from "./type-map.ts";

/** How often a record may be columns within itself; from there on it is JSON text. */
export const RECURSION = 2;
/** Of a recursive schema, more columns than this lower RECURSION; of any other they are refused. */
const MOST_SLOTS = 4000;
/** Columns within columns. */
const MOST_NESTING = 64;

export interface Slot {
  readonly id: number;
  readonly form: "fixed" | "bool" | "bytes" | "list" | "struct";
  readonly type: ColumnType;
  /** Null may stand here: of itself or since a struct around it is null. */
  readonly canBeNull: boolean;
  /** Id of the list whose items these rows are; null: rows of the table. */
  readonly dimension: number | null;
  /** list: the item; map: a struct of key and value; struct: its fields. */
  readonly children: readonly Slot[];
}

export interface Layout {
  readonly fields: readonly ColumnField[];
  readonly roots: readonly Slot[];
  /** By id. */
  readonly slots: readonly Slot[];
}

/** Throws a DecodeError of decode.schema for a schema of too many columns. */
export function layoutOf(reader: AvroType): Layout {
  for (let recursion = RECURSION; ; recursion--) {
    const fields = new Fields(recursion);
    const top = fields.table(reader);
    if (fields.count <= MOST_SLOTS) return slotsOf(top);
    if (recursion === 0 || !fields.recursive)
      throw new DecodeError("decode.schema", "", `the schema has more than ${MOST_SLOTS} columns`);
  }
}

class Fields {
  count = 0;
  recursive = false;
  #depth = 0;
  readonly #recursion: number;
  readonly #within = new Map<RecordType, number>();

  constructor(recursion: number) {
    this.#recursion = recursion;
  }

  /** A record's fields; any other type is one column, named value. */
  table(type: AvroType): ColumnField[] {
    if (type.kind !== "record") return [this.#field("value", type)];
    return this.#record(type) ?? [];
  }

  #field(name: string, type: AvroType): ColumnField {
    // Whoever has too many is told so; until then the rest is not looked at.
    if (++this.count > MOST_SLOTS) return { name, type: { id: "json" }, nullable: true };
    if (++this.#depth > MOST_NESTING)
      throw new DecodeError("decode.schema", "", `the schema nests deeper than ${MOST_NESTING}`);
    const nullable =
      type.kind === "null" || (type.kind === "union" && type.branches.some((b) => b.kind === "null"));
    const column = this.#type(optional(type) ?? type);
    this.#depth--;
    return { name, type: column, nullable };
  }

  #type(type: AvroType): ColumnType {
    switch (type.kind) {
      case "enum":
        return { id: "utf8" };
      case "array":
        return { id: "list", item: this.#field("element", type.items) };
      case "map":
        this.count += 2;
        return {
          id: "map",
          key: { name: "key", type: { id: "utf8" }, nullable: false },
          value: this.#field("value", type.values),
        };
      case "record": {
        const fields = this.#record(type);
        return fields === null || fields.length === 0 ? { id: "json" } : { id: "struct", fields };
      }
      case "union":
        return this.#union(type);
      default:
        return scalarColumn(type);
    }
  }

  /** Null: it is within itself too often. */
  #record(type: RecordType): ColumnField[] | null {
    const depth = this.#within.get(type) ?? 0;
    if (depth > 0) this.recursive = true;
    if (depth > this.#recursion) return null;
    this.#within.set(type, depth + 1);
    const fields = type.fields.map((f) => this.#field(f.name, f.type));
    this.#within.set(type, depth);
    return fields;
  }

  #union(type: UnionType): ColumnType {
    const names = branchNames(type);
    const members = type.branches.flatMap((b, i) =>
      b.kind === "null" ? [] : [{ name: names[i]!, type: b }],
    );
    // A union of nothing has no values, one of null alone only that.
    if (members.length === 0) return { id: "null" };
    if (members.length === 1) return this.#type(members[0]!.type);
    return {
      id: "struct",
      fields: members.map((m) => ({ ...this.#field(m.name, m.type), nullable: true })),
    };
  }
}

function slotsOf(fields: readonly ColumnField[]): Layout {
  const slots: Slot[] = [];
  const slot = (field: ColumnField, outer: boolean, dimension: number | null): Slot => {
    const { type } = field;
    const id = slots.length;
    const canBeNull = outer || field.nullable;
    const children: Slot[] = [];
    const made: Slot = { id, form: formOf(type), type, canBeNull, dimension, children };
    slots.push(made);
    if (type.id === "list") children.push(slot(type.item, false, id));
    else if (type.id === "map") {
      const entry: ColumnType = { id: "struct", fields: [type.key, type.value] };
      children.push(slot({ name: "entries", type: entry, nullable: false }, false, id));
    } else if (type.id === "struct")
      for (const f of type.fields) children.push(slot(f, canBeNull, dimension));
    return made;
  };
  return { fields, roots: fields.map((f) => slot(f, false, null)), slots };
}

function formOf(type: ColumnType): Slot["form"] {
  switch (type.id) {
    case "bool":
      return "bool";
    case "utf8":
    case "binary":
    case "json":
      return "bytes";
    case "list":
    case "map":
      return "list";
    case "struct":
      return "struct";
    default:
      return "fixed";
  }
}

/** The builders of all slots, by id, under those of the columns. Throws for builders that are not of the layout. */
export function buildersOf(layout: Layout, columns: readonly ColumnBuilder[]): ColumnBuilder[] {
  const out: ColumnBuilder[] = [];
  const take = (s: Slot, b: ColumnBuilder | undefined): void => {
    if (b === undefined || !(b instanceof CLASSES[s.form]))
      throw new Error(`column builder ${s.id} is no ${s.form}`);
    out[s.id] = b;
    const children = b instanceof ListBuilder ? [b.child] : b instanceof StructBuilder ? b.children : [];
    for (const [i, c] of s.children.entries()) take(c, children[i]);
  };
  for (const [i, s] of layout.roots.entries()) take(s, columns[i]);
  return out;
}

const CLASSES = {
  fixed: FixedBuilder,
  bool: BoolBuilder,
  bytes: BytesBuilder,
  list: ListBuilder,
  struct: StructBuilder,
} as const;

/**
 * What each column of a Parquet file is here, and how its stored values become that. An engine reads the stored values
 * alone, without their meaning (see group-file.ts): it would round, cut or wrap some of them. What this program cannot
 * carry exactly is refused by column and type.
 */
import { Failure } from "../../failure/failure.ts";
import type { ColumnField, ColumnType } from "../../types/table-batch.ts";
import { LOGICAL, PHYSICAL, REPETITION, type SchemaNode } from "./read-footer.ts";

/** From stored value to value. same: the bytes are the value's. */
export type Reading =
  | "same"
  | "narrow"
  | "time"
  | "timeMillis"
  | "text"
  | "decimal"
  | "decimalBytes"
  | "int96"
  | "float16"
  | "uuid"
  | "interval"
  | "nulls";

export type ColumnPlan =
  | { readonly kind: "leaf"; readonly type: ColumnType; readonly raw: ColumnType; readonly reading: Reading }
  | { readonly kind: "list" | "map"; readonly type: ColumnType; readonly item: ColumnPlan }
  | { readonly kind: "struct"; readonly type: ColumnType; readonly fields: readonly ColumnPlan[] };

/** A node in the one shape that an engine is shown: wrappers without a level of their own are made alike. */
export type ShownNode =
  | { readonly kind: "leaf"; readonly repetition: number; readonly physical: number; readonly length: number }
  | { readonly kind: "struct"; readonly repetition: number; readonly fields: readonly ShownNode[] }
  | { readonly kind: "list"; readonly repetition: number; readonly item: ShownNode };

export interface PlannedColumn {
  readonly field: ColumnField;
  readonly plan: ColumnPlan;
  readonly shown: ShownNode;
}

const MAX_PRECISION = 38;
const UNITS = ["s", "ms", "us", "ns"] as const;
const BLOB: ColumnType = { id: "binary" };

/** Throws files.parquet_type with the path of the column. */
export function planColumns(columns: readonly SchemaNode[], at: string): readonly PlannedColumn[] {
  return columns.map((c) => {
    const { plan, shown } = planNode(c, [c.name], at);
    return {
      field: { name: c.name, type: plan.type, nullable: c.repetition === REPETITION.optional },
      plan,
      shown,
    };
  });
}

interface Planned {
  readonly plan: ColumnPlan;
  readonly shown: ShownNode;
}

/** A repeated node outside of a list is one: of required elements (LogicalTypes.md, backward compatibility). */
function planNode(node: SchemaNode, path: readonly string[], at: string): Planned {
  if (node.repetition !== REPETITION.repeated) return planSingle(node, path, at);
  const required = { ...node, repetition: REPETITION.required };
  return listOf(planSingle(required, path, at), false, REPETITION.required);
}

function planSingle(node: SchemaNode, path: readonly string[], at: string): Planned {
  if (node.physical !== null) return planLeaf(node, path, at);
  const id = node.logical?.id;
  if (id === LOGICAL.list) return planList(node, path, at);
  if (id === LOGICAL.map) return planMap(node, path, at);
  if (id !== undefined) throw refused(`a group of logical type ${id}`, path, at);
  return planStruct(node, path, at);
}

function planStruct(node: SchemaNode, path: readonly string[], at: string): Planned {
  const { repetition, children } = node;
  const planned = children.map((c) => planNode(c, [...path, c.name], at));
  const seen = new Set(children.map((c) => c.name.toLowerCase()));
  if (seen.size < children.length) throw refused("a struct with two fields of one name", path, at);
  const fields = children.map(
    (c, i): ColumnField => ({
      name: c.name,
      type: planned[i]!.plan.type,
      nullable: c.repetition === REPETITION.optional,
    }),
  );
  return {
    plan: { kind: "struct", type: { id: "struct", fields }, fields: planned.map((p) => p.plan) },
    shown: { kind: "struct", repetition, fields: planned.map((p) => p.shown) },
  };
}

function listOf(item: Planned, nullable: boolean, repetition: number): Planned {
  const field: ColumnField = { name: "element", type: item.plan.type, nullable };
  return {
    plan: { kind: "list", type: { id: "list", item: field }, item: item.plan },
    shown: { kind: "list", repetition, item: item.shown },
  };
}

function planList(node: SchemaNode, path: readonly string[], at: string): Planned {
  const [repeated] = node.children;
  if (repeated === undefined || node.children.length !== 1 || repeated.repetition !== REPETITION.repeated)
    throw refused("a list that is none", path, at);
  const element = elementOf(node, repeated);
  const item = planNode(element, [...path, "element"], at);
  return listOf(item, element.repetition === REPETITION.optional, node.repetition);
}

/** LogicalTypes.md, Lists, backward compatibility rules: when the repeated field itself is the element. */
function elementOf(list: SchemaNode, repeated: SchemaNode): SchemaNode {
  const itself = { ...repeated, repetition: REPETITION.required };
  const [only] = repeated.children;
  if (repeated.physical !== null || only === undefined || repeated.children.length > 1) return itself;
  if (repeated.name === "array" || repeated.name === `${list.name}_tuple`) return itself;
  return only.repetition === REPETITION.repeated ? itself : only;
}

function planMap(node: SchemaNode, path: readonly string[], at: string): Planned {
  const [entries] = node.children;
  if (entries === undefined || node.children.length !== 1 || entries.repetition !== REPETITION.repeated)
    throw refused("a map that is none", path, at);
  const [key, value] = entries.children;
  if (key === undefined || value === undefined || entries.children.length !== 2)
    throw refused("a map without values", path, at);
  const k = planNode(key, [...path, "key"], at);
  const v = planNode(value, [...path, "value"], at);
  const type: ColumnType = {
    id: "map",
    key: { name: "key", type: k.plan.type, nullable: false },
    value: { name: "value", type: v.plan.type, nullable: value.repetition === REPETITION.optional },
  };
  const entry: ColumnType = { id: "struct", fields: [type.key, type.value] };
  return {
    plan: { kind: "map", type, item: { kind: "struct", type: entry, fields: [k.plan, v.plan] } },
    shown: {
      kind: "list",
      repetition: node.repetition,
      item: { kind: "struct", repetition: REPETITION.required, fields: [k.shown, v.shown] },
    },
  };
}

interface Leaf {
  readonly type: ColumnType;
  readonly reading: Reading;
}

function planLeaf(node: SchemaNode, path: readonly string[], at: string): Planned {
  const physical = node.physical!;
  const leaf = LEAVES[physical]?.(node) ?? null;
  if (leaf === null) throw refused(typeNameOf(node), path, at);
  const { repetition, length } = node;
  return {
    plan: { kind: "leaf", ...leaf, raw: RAW[physical] ?? BLOB },
    // INT96 is shown as what it is stored like: an engine would cut its nanoseconds.
    shown:
      physical === PHYSICAL.int96
        ? { kind: "leaf", repetition, physical: PHYSICAL.fixed, length: 12 }
        : { kind: "leaf", repetition, physical, length },
  };
}

const int = (bits: number, signed: boolean): ColumnType => ({ id: "int", bits: bits as 8, signed });

const RAW: Readonly<Record<number, ColumnType>> = {
  [PHYSICAL.boolean]: { id: "bool" },
  [PHYSICAL.int32]: int(32, true),
  [PHYSICAL.int64]: int(64, true),
  [PHYSICAL.float]: { id: "float", bits: 32 },
  [PHYSICAL.double]: { id: "float", bits: 64 },
};

const NULLS: Leaf = { type: { id: "utf8" }, reading: "nulls" };
const NS: ColumnType = { id: "timestamp", unit: "ns", zone: null };

/** By physical type; null: refused. */
const LEAVES: Readonly<Record<number, (node: SchemaNode) => Leaf | null>> = {
  [PHYSICAL.boolean]: ({ logical }) => plain(logical?.id, { id: "bool" }),
  [PHYSICAL.int32]: int32Leaf,
  [PHYSICAL.int64]: int64Leaf,
  [PHYSICAL.int96]: ({ logical }) => (logical === null ? { type: NS, reading: "int96" } : null),
  [PHYSICAL.float]: ({ logical }) => plain(logical?.id, { id: "float", bits: 32 }),
  [PHYSICAL.double]: ({ logical }) => plain(logical?.id, { id: "float", bits: 64 }),
  [PHYSICAL.bytes]: bytesLeaf,
  [PHYSICAL.fixed]: fixedLeaf,
};

function plain(logical: number | undefined, type: ColumnType): Leaf | null {
  if (logical === LOGICAL.unknown) return NULLS;
  return logical === undefined ? { type, reading: "same" } : null;
}

function int32Leaf({ logical }: SchemaNode): Leaf | null {
  switch (logical?.id) {
    case LOGICAL.integer: {
      const { unit = 0, flag = true } = logical;
      if (![8, 16, 32].includes(unit)) return null;
      return { type: int(unit, flag), reading: unit < 32 ? "narrow" : "same" };
    }
    case LOGICAL.date:
      return { type: { id: "date32" }, reading: "same" };
    case LOGICAL.time:
      return logical.unit === 1 ? { type: { id: "time64", unit: "us" }, reading: "timeMillis" } : null;
    case LOGICAL.decimal:
      return decimalLeaf(logical, 9, "decimal");
    default:
      return plain(logical?.id, int(32, true));
  }
}

function int64Leaf({ logical }: SchemaNode): Leaf | null {
  switch (logical?.id) {
    case LOGICAL.integer:
      return logical.unit === 64 ? { type: int(64, logical.flag ?? true), reading: "same" } : null;
    case LOGICAL.time:
      if (logical.unit !== 2 && logical.unit !== 3) return null;
      return { type: { id: "time64", unit: logical.unit === 2 ? "us" : "ns" }, reading: "time" };
    case LOGICAL.timestamp: {
      const unit = UNITS[logical.unit ?? 0];
      if (unit === undefined || unit === "s") return null;
      return { type: { id: "timestamp", unit, zone: logical.flag ? "UTC" : null }, reading: "same" };
    }
    case LOGICAL.decimal:
      return decimalLeaf(logical, 18, "decimal");
    default:
      return plain(logical?.id, int(64, true));
  }
}

function bytesLeaf({ logical }: SchemaNode): Leaf | null {
  switch (logical?.id) {
    case LOGICAL.string:
    case LOGICAL.enum:
      return { type: { id: "utf8" }, reading: "text" };
    case LOGICAL.json:
      return { type: { id: "json" }, reading: "text" };
    case LOGICAL.bson:
      return { type: BLOB, reading: "same" };
    case LOGICAL.decimal:
      return decimalLeaf(logical, MAX_PRECISION, "decimalBytes");
    default:
      return plain(logical?.id, BLOB);
  }
}

function fixedLeaf({ logical, length }: SchemaNode): Leaf | null {
  if (length < 1) return null;
  switch (logical?.id) {
    case LOGICAL.uuid:
      return length === 16 ? { type: { id: "fixed", bytes: 16, as: "uuid" }, reading: "uuid" } : null;
    case LOGICAL.decimal:
      return decimalLeaf(logical, MAX_PRECISION, "decimalBytes");
    case LOGICAL.float16:
      return length === 2 ? { type: { id: "float", bits: 32 }, reading: "float16" } : null;
    case LOGICAL.interval:
      return length === 12 ? { type: { id: "interval" }, reading: "interval" } : null;
    default:
      return plain(logical?.id, BLOB);
  }
}

function decimalLeaf(
  { precision = 0, scale = 0 }: { readonly precision?: number; readonly scale?: number },
  most: number,
  reading: Reading,
): Leaf | null {
  if (precision < 1 || precision > most || scale < 0 || scale > precision) return null;
  return { type: { id: "decimal", precision, scale }, reading };
}

const NAMES: Readonly<Record<number, string>> = {
  ...Object.fromEntries(Object.entries(LOGICAL).map(([name, id]) => [id, name])),
  16: "variant",
  17: "geometry",
  18: "geography",
};

function typeNameOf({ physical, logical, length }: SchemaNode): string {
  const [stored = "?"] = Object.entries(PHYSICAL).find(([, n]) => n === physical) ?? [];
  const width = physical === PHYSICAL.fixed ? `(${length})` : "";
  if (logical === null) return `${stored}${width}`;
  const { precision, scale } = logical;
  const of = precision === undefined ? "" : `(${precision},${scale ?? 0})`;
  return `${NAMES[logical.id] ?? `logical type ${logical.id}`}${of} stored as ${stored}${width}`;
}

function refused(what: string, path: readonly string[], at: string): Failure {
  return new Failure("files.parquet_type", `the column ${JSON.stringify(path.join("."))} is ${what}`, {
    at,
    hint: "It cannot be carried exactly; write the file without it, or with a plainer type",
  });
}

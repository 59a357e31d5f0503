/**
 * What each field of a message becomes, decided once for both ways of reading and for writing. A plan is a tree: a type
 * that is used twice has two, and one that holds itself is JSON text from `recursion` levels on.
 */
import type { DescEnum, DescExtension, DescField, DescMessage, Registry } from "@bufbuild/protobuf";
import { ScalarType } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import type { ColumnField, ColumnType } from "../../types/table-batch.ts";
import { DecodeError } from "../record-codec.ts";
import { DURATION, SCALARS, TIMESTAMP, WELL_KNOWN } from "./type-map.ts";
import { MAX_DEPTH } from "./wire.ts";

export type Shape =
  | { readonly is: "scalar"; readonly scalar: ScalarType }
  /** The scalar in a message of google/protobuf/wrappers.proto. */
  | { readonly is: "wrapper"; readonly scalar: ScalarType }
  | { readonly is: "enum"; readonly desc: DescEnum }
  | { readonly is: "timestamp" | "duration" }
  /** A message set of old, which only its own wire format explains: its bytes. */
  | { readonly is: "opaque" }
  /** A message without fields: true where there is one. */
  | { readonly is: "empty" }
  /** JSON text of the message's Value. `plan`: null for those of struct.proto, which are JSON by themselves. */
  | { readonly is: "json"; readonly type: string; readonly plan: (() => MessagePlan) | null }
  | { readonly is: "message"; readonly plan: MessagePlan };

export interface FieldPlan {
  readonly number: number;
  /** As in paths: the field's name; of an extension its full name in brackets. */
  readonly name: string;
  readonly label: "one" | "list" | "map";
  /** explicit: null where absent. implicit: zero where absent. required: refused where absent. */
  readonly presence: "implicit" | "explicit" | "required";
  /** Index of the oneof within the message, or -1. */
  readonly oneof: number;
  /** Between group tags instead of behind a length. */
  readonly delimited: boolean;
  /** For writing; both are read. */
  readonly packed: boolean;
  /** Of a map. */
  readonly key: ScalarType | null;
  /** Of the value, the items, or the values of a map. */
  readonly shape: Shape;
  /** Columns that an item of a list or an entry of a map has; 0 for the rest. */
  readonly cells: number;
  /** Its columns stand among those of the message that holds it, under longer names. */
  readonly flat: boolean;
}

export interface MessagePlan {
  readonly desc: DescMessage;
  readonly fields: readonly FieldPlan[];
  readonly byNumber: ReadonlyMap<number, FieldPlan>;
  /** 1 for the record itself. */
  readonly depth: number;
}

export interface PlanOptions {
  /** Messages in messages become columns named parent + separator + child; those in lists and maps stay structs. */
  readonly flatten: { readonly separator: string } | null;
}

/** So many times a message type may stand within itself; deeper it is JSON text. */
const RECURSION = 2;
/** Where a type that holds itself makes more columns than this, RECURSION is lowered; any other schema is refused. */
const MAX_COLUMNS = 4000;

class TooWide extends Error {}

class Planner {
  readonly #recursion: number;
  /** Within JSON text: one plan a type, however deep. */
  readonly #texts = new Map<string, MessagePlan>();
  recursive = false;
  readonly #options: PlanOptions;
  readonly #extensions = new Map<string, DescExtension[]>();
  #columns = 0;

  constructor(registry: Registry, options: PlanOptions, recursion: number) {
    this.#options = options;
    this.#recursion = recursion;
    for (const t of registry) {
      if (t.kind !== "extension") continue;
      const of = this.#extensions.get(t.extendee.typeName);
      if (of === undefined) this.#extensions.set(t.extendee.typeName, [t]);
      else of.push(t);
    }
  }

  message(desc: DescMessage, above: readonly DescMessage[]): MessagePlan {
    const path = [...above, desc];
    const oneofs = new Map(desc.oneofs.map((o, i) => [o.name, i]));
    const members: readonly (DescField | DescExtension)[] = [...desc.fields, ...this.#extensionsOf(desc)];
    const fields = members.map((f) => {
      if (++this.#columns > MAX_COLUMNS) throw new TooWide();
      return this.#field(f, oneofs.get(f.oneof?.name ?? "") ?? -1, this.#shape(f, path));
    });
    return { desc, fields, byNumber: new Map(fields.map((f) => [f.number, f])), depth: path.length };
  }

  /** A message of which the column is text. */
  #text(desc: DescMessage): MessagePlan {
    const known = this.#texts.get(desc.typeName);
    if (known !== undefined) return known;
    const oneofs = new Map(desc.oneofs.map((o, i) => [o.name, i]));
    const members: readonly (DescField | DescExtension)[] = [...desc.fields, ...this.#extensionsOf(desc)];
    const fields = members.map((f) => {
      const shape = this.#plainShape(f) ?? this.#json(f.message!);
      return { ...this.#field(f, oneofs.get(f.oneof?.name ?? "") ?? -1, shape), flat: false, cells: 0 };
    });
    const plan = { desc, fields, byNumber: new Map(fields.map((f) => [f.number, f])), depth: 0 };
    this.#texts.set(desc.typeName, plan);
    return plan;
  }

  #json(desc: DescMessage): Shape {
    return { is: "json", type: desc.typeName, plan: () => this.#text(desc) };
  }

  #extensionsOf(desc: DescMessage): readonly DescExtension[] {
    return [...(this.#extensions.get(desc.typeName) ?? [])].sort((a, b) => a.number - b.number);
  }

  #field(f: DescField | DescExtension, oneof: number, shape: Shape): FieldPlan {
    const label = f.fieldKind === "list" ? "list" : f.fieldKind === "map" ? "map" : "one";
    const grouped = f.fieldKind === "message" || (f.fieldKind === "list" && f.listKind === "message");
    return {
      number: f.number,
      name: f.kind === "extension" ? `[${f.typeName}]` : f.name,
      label,
      presence: presenceOf(f),
      oneof,
      delimited: grouped && f.delimitedEncoding,
      packed: f.fieldKind === "list" && f.packed,
      key: f.fieldKind === "map" ? f.mapKey : null,
      shape,
      cells: label === "one" ? 0 : cellsOf(shape) + (label === "map" ? 2 : 0),
      flat: this.#options.flatten !== null && label === "one" && shape.is === "message",
    };
  }

  #shape(f: DescField | DescExtension, path: readonly DescMessage[]): Shape {
    const plain = this.#plainShape(f);
    if (plain !== null) return plain;
    const message = f.message!;
    const within = path.filter((m) => m.typeName === message.typeName).length;
    if (within > 0) this.recursive = true;
    if (within > this.#recursion || path.length >= MAX_DEPTH) return this.#json(message);
    return { is: "message", plan: this.message(message, path) };
  }

  /** Null: a message that has a plan of its own. */
  #plainShape(f: DescField | DescExtension): Shape | null {
    if (f.enum !== undefined) return { is: "enum", desc: f.enum };
    if (f.message === undefined) return { is: "scalar", scalar: f.scalar };
    const { message } = f;
    const known = Object.hasOwn(WELL_KNOWN, message.typeName) ? WELL_KNOWN[message.typeName] : undefined;
    if (known === "json") return { is: "json", type: message.typeName, plan: null };
    if (known === "wrapper") return { is: "wrapper", scalar: message.fields[0]?.scalar ?? ScalarType.BYTES };
    if (known !== undefined) return { is: known };
    if (message.proto.options?.messageSetWireFormat === true) return { is: "opaque" };
    const empty = message.fields.length === 0 && this.#extensionsOf(message).length === 0;
    return empty ? { is: "empty" } : null;
  }
}

/** Columns of one row number. */
function cellsOf(shape: Shape): number {
  if (shape.is !== "message") return 1;
  return shape.plan.fields.reduce((n, f) => n + (f.label === "one" ? cellsOf(f.shape) : 1), 1);
}

function presenceOf(f: DescField | DescExtension): FieldPlan["presence"] {
  if (f.presence === FeatureSet_FieldPresence.LEGACY_REQUIRED) return "required";
  // A member of a oneof, a message and an extension are told from their absence in every syntax.
  return f.presence === FeatureSet_FieldPresence.IMPLICIT ? "implicit" : "explicit";
}

export function planOf(desc: DescMessage, registry: Registry, options: PlanOptions): MessagePlan {
  for (let recursion = RECURSION; ; recursion--) {
    const planner = new Planner(registry, options, recursion);
    try {
      const plan = planner.message(desc, []);
      if (plan.fields.length > 0) return plan;
      throw new DecodeError("decode.schema", "", `${desc.typeName} has no fields, so there are no columns`);
    } catch (e) {
      if (!(e instanceof TooWide)) throw e;
      if (recursion === 0 || !planner.recursive)
        throw new DecodeError("decode.schema", "", `${desc.typeName} makes more than ${MAX_COLUMNS} columns`);
    }
  }
}

export function shapeType(shape: Shape, options: PlanOptions): ColumnType {
  switch (shape.is) {
    case "scalar":
    case "wrapper":
      return SCALARS[shape.scalar].column;
    case "enum":
      return { id: "utf8" };
    case "timestamp":
      return TIMESTAMP;
    case "duration":
      return DURATION;
    case "empty":
      return { id: "bool" };
    case "opaque":
      return { id: "binary" };
    case "json":
      return { id: "json" };
    case "message":
      return { id: "struct", fields: columnsOf(shape.plan, options) };
  }
}

function fieldType(f: FieldPlan, options: PlanOptions): ColumnType {
  const type = shapeType(f.shape, options);
  if (f.label === "list") return { id: "list", item: { name: "item", type, nullable: false } };
  if (f.label === "one") return type;
  return {
    id: "map",
    key: { name: "key", type: SCALARS[f.key!].column, nullable: false },
    value: { name: "value", type, nullable: false },
  };
}

/** The columns of a message, in the order of the schema; extensions come last. Refuses two of one name. */
export function columnsOf(plan: MessagePlan, options: PlanOptions): readonly ColumnField[] {
  const columns: ColumnField[] = [];
  flatColumns(plan, options, "", false, columns);
  const names = new Set<string>();
  for (const { name } of columns) {
    if (names.has(name)) {
      const why = `two fields become the column ${name}: choose another separator, or do not flatten`;
      throw new DecodeError("decode.schema", name, `${plan.desc.typeName}: ${why}`);
    }
    names.add(name);
  }
  return columns;
}

function flatColumns(
  plan: MessagePlan,
  options: PlanOptions,
  prefix: string,
  within: boolean,
  columns: ColumnField[],
): void {
  for (const f of plan.fields) {
    const name = prefix + f.name;
    if (f.flat && f.shape.is === "message") {
      const below = f.presence !== "required" || within;
      flatColumns(f.shape.plan, options, name + (options.flatten?.separator ?? ""), below, columns);
      continue;
    }
    const nullable = within || (f.label === "one" && f.presence === "explicit");
    columns.push({ name, type: fieldType(f, options), nullable });
  }
}

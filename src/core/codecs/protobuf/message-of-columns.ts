/**
 * The Protobuf message of a table's columns, for whoever writes rows as Protobuf: such that every cell of every column can be
 * written by it, and what comes back is what was written.
 *
 *   a column is `optional`, so null and zero are two things        struct   a message within: ItemsRecord
 *   list<T>   repeated T; of elements that may be null, or are     map      map<K, T>; of other keys than the format allows,
 *             lists or maps: a message with a field `value`                 repeated messages of key and value
 *   instants with a zone are Timestamps; what the format has no type for (decimals, dates, times, UUIDs) is its text, as in JSON
 *
 * Fields of earlier versions stay, whether there is a column now or not, in the order of their numbers: lanes that met other
 * schemas make one message then, and readers of the newest know the rows of all.
 *
 * A list or map that is null is written as an empty one: the format has no other. A column of nothing but null has no field
 * until it has a type.
 */
import { Failure } from "../../failure/failure.ts";
import type { ColumnField, ColumnType } from "../../types/table-batch.ts";
import { type DeclaredField, type FieldNumbers, NO_NUMBERS } from "./field-numbers.ts";

export type WholeScalar = "bool" | "int32" | "uint32" | "int64" | "uint64" | "float" | "double";
export type ProtoType =
  | { readonly is: WholeScalar | "string" | "bytes" }
  /** Of a field that there is no column of now. */
  | { readonly is: "declared"; readonly text: string }
  /** A string: what JSON has within quotes. */
  | { readonly is: "text" }
  | { readonly is: "instant" }
  /** `wraps`: its one field is the cell itself, and not a field of it. */
  | { readonly is: "message"; readonly message: ProtoMessage; readonly wraps: boolean };

export interface ProtoField {
  readonly name: string;
  readonly number: number;
  readonly label: "optional" | "repeated" | "map";
  /** Of a map. */
  readonly key: ProtoType | null;
  /** Of the elements, or the values of a map. */
  readonly type: ProtoType;
}

export interface ProtoMessage {
  readonly name: string;
  readonly fields: readonly ProtoField[];
  /** Numbers that no column may get; first and last. */
  readonly reserved: readonly (readonly [number, number])[];
}

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
const MAX_NUMBER = 536_870_911;
/** The format's own. */
const FORBIDDEN: readonly [number, number] = [19_000, 19_999];

/** `record`: the message's name, without its package. Fields that `numbers` has not get the next numbers, in order. Throws encode.unsupported. */
export function messageOfColumns(
  fields: readonly ColumnField[],
  record: string,
  numbers: FieldNumbers = NO_NUMBERS,
): ProtoMessage {
  const columns = fields.map((f) => ({ ...f, nullable: true }));
  return message(record, columns, numbers, "");
}

function message(
  name: string,
  given: readonly ColumnField[],
  known: FieldNumbers,
  path: string,
): ProtoMessage {
  const columns = given.filter((f) => f.type.id !== "null");
  const numbers = numbered(columns, known, path);
  const scope = new Set<string>();
  const claim = (claimed: string, place: string): void => {
    if (scope.has(claimed)) throw unsupported(place, `its message and another column are both ${claimed}`);
    scope.add(claimed);
  };
  for (const f of columns) {
    const place = placeOf(path, f.name);
    if (!NAME.test(f.name))
      throw unsupported(
        place,
        "the name is none of Protobuf's: letters, digits and _, not beginning with a digit",
      );
    claim(f.name, place);
  }
  const fields = columns.map((f) =>
    fieldOf(f, numbers.get(f.name)!, known.within.get(f.name) ?? NO_NUMBERS, placeOf(path, f.name)),
  );
  for (const f of fields) refuseOther(f, known, placeOf(path, f.name));
  for (const kept of keptOf(known, numbers, path)) {
    claim(kept.name, placeOf(path, kept.name));
    fields.push(kept);
  }
  for (const { name: field, type, label } of fields) {
    const place = placeOf(path, field);
    if (type.is === "message") claim(type.message.name, place);
    // Compilers make a message of this name for it.
    if (label === "map") claim(`${camel(field)}Entry`, place);
  }
  fields.sort((a, b) => a.number - b.number);
  return { name, fields, reserved: reservedOf(known, new Set(fields.map((f) => f.number))) };
}

/** Numbers that readers of one version take for those of another. */
const INTEGERS = ["bool", "int32", "uint32", "int64", "uint64"];

/** Readers of an earlier version must find in the field what they know, or what they know to be wider. */
function refuseOther(now: ProtoField, { numbers, declared }: FieldNumbers, place: string): void {
  if (!numbers.has(now.name)) return;
  const before = declared.get(now.name);
  const [was, is] = [before === undefined ? "of a type of its own" : shown(before), shown(asDeclared(now))];
  if (was === is) return;
  const both = before?.label === now.label && before.key === null && now.key === null;
  if (both && INTEGERS.includes(textOf(before.type)) && INTEGERS.includes(textOf(asDeclared(now).type)))
    return;
  throw unsupported(
    place,
    `an earlier version of the schema has it as ${was}, whose readers would take ${is} for that`,
  );
}

function asDeclared({ label, key, type }: ProtoField): DeclaredField {
  const scalar = ({ is }: ProtoType) => (is === "text" ? "string" : is);
  return {
    label,
    key: key === null ? null : scalar(key),
    type:
      type.is === "message"
        ? { is: "within", name: type.message.name }
        : type.is === "instant"
          ? type
          : { is: "scalar", text: scalar(type) },
  };
}

function textOf(type: DeclaredField["type"]): string {
  return type.is === "scalar" ? type.text : type.is === "within" ? "a message" : "google.protobuf.Timestamp";
}

function shown({ label, key, type }: DeclaredField): string {
  return key === null ? `${label} ${textOf(type)}` : `${label}<${key}, ${textOf(type)}>`;
}

/** Fields that there is no column of. */
function keptOf(known: FieldNumbers, columns: ReadonlyMap<string, number>, path: string): ProtoField[] {
  return [...known.declared].flatMap(([name, { label, key, type }]) => {
    if (columns.has(name)) return [];
    const inner = (of: string) => message(of, [], known.within.get(name) ?? NO_NUMBERS, placeOf(path, name));
    const made: ProtoType =
      type.is === "scalar"
        ? { is: "declared", text: type.text }
        : type.is === "instant"
          ? type
          : { is: "message", wraps: false, message: inner(type.name) };
    const keyType: ProtoType | null = key === null ? null : { is: "declared", text: key };
    return [{ name, number: known.numbers.get(name)!, label, key: keyType, type: made }];
  });
}

function numbered(
  columns: readonly ColumnField[],
  known: FieldNumbers,
  path: string,
): ReadonlyMap<string, number> {
  const numbers = new Map<string, number>();
  let last = Math.max(0, ...known.numbers.values());
  const taken = [FORBIDDEN, ...known.reserved];
  for (const { name } of columns) {
    const before = known.numbers.get(name);
    if (before !== undefined) {
      numbers.set(name, before);
      continue;
    }
    last++;
    for (let range = within(taken, last); range !== undefined; range = within(taken, last))
      last = range[1] + 1;
    if (last > MAX_NUMBER) throw unsupported(placeOf(path, name), "every number is taken or reserved");
    numbers.set(name, last);
  }
  return numbers;
}

function within(
  ranges: readonly (readonly [number, number])[],
  n: number,
): readonly [number, number] | undefined {
  return ranges.find(([first, end]) => first <= n && n <= end);
}

function reservedOf(known: FieldNumbers, used: ReadonlySet<number>): readonly (readonly [number, number])[] {
  const gone = [...known.numbers.values()].filter((n) => !used.has(n)).map((n) => [n, n] as const);
  // What one version reserved an earlier one may have a field for.
  const ranges = known.reserved.filter((r) => ![...used].some((n) => r[0] <= n && n <= r[1]));
  const all = [...gone, ...ranges].sort(([a, ae], [b, be]) => a - b || be - ae);
  return all.filter(([first], i) => !all.slice(0, i).some(([a, end]) => a <= first && first <= end));
}

function fieldOf({ name, type }: ColumnField, number: number, known: FieldNumbers, path: string): ProtoField {
  const own = typeName(name);
  if (type.id === "list") {
    const inner = itemOf(type.item, `${own}Element`, known, `${path}[]`);
    return { name, number, label: "repeated", key: null, type: inner };
  }
  if (type.id !== "map")
    return { name, number, label: "optional", key: null, type: typeOf(type, `${own}Record`, known, path) };
  const key = typeOf(type.key.type, `${own}Key`, NO_NUMBERS, `${path}{key}`);
  if (isKey(key))
    return { name, number, label: "map", key, type: itemOf(type.value, `${own}Value`, known, `${path}{}`) };
  const pair = [
    { ...type.key, name: "key", nullable: false },
    { ...type.value, name: "value" },
  ];
  const entry: ColumnType = { id: "struct", fields: pair };
  return {
    name,
    number,
    label: "repeated",
    key: null,
    type: typeOf(entry, `${own}Entries`, known, `${path}{}`),
  };
}

/** Of a list or a map: within them nothing is absent. */
function itemOf(item: ColumnField, name: string, known: FieldNumbers, path: string): ProtoType {
  const { id } = item.type;
  if (!item.nullable && id !== "list" && id !== "map" && id !== "null")
    return typeOf(item.type, name, known, path);
  return { is: "message", wraps: true, message: message(name, [{ ...item, name: "value" }], known, path) };
}

function typeOf(type: ColumnType, name: string, known: FieldNumbers, path: string): ProtoType {
  switch (type.id) {
    case "bool":
      return { is: "bool" };
    case "utf8":
    case "json":
      return { is: "string" };
    case "binary":
      return { is: "bytes" };
    case "int":
      return { is: `${type.signed ? "" : "u"}int${type.bits === 64 ? 64 : 32}` };
    case "float":
      return { is: type.bits === 64 ? "double" : "float" };
    case "fixed":
      return { is: type.as === "uuid" ? "text" : "bytes" };
    case "timestamp":
      return { is: type.zone === null ? "text" : "instant" };
    case "struct":
      return { is: "message", wraps: false, message: message(name, type.fields, known, path) };
    case "list":
    case "map":
    case "null":
      throw new Failure("internal.bug", `a column of ${type.id} within ${path}`);
    default:
      return { is: "text" };
  }
}

function isKey({ is }: ProtoType): boolean {
  return !["bytes", "float", "double", "instant", "message"].includes(is);
}

function placeOf(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}

function typeName(name: string): string {
  return name.slice(0, 1).toUpperCase() + name.slice(1);
}

/** As compilers name what they make of a field. */
export function camel(name: string): string {
  return typeName(name).replaceAll(/_+([A-Za-z0-9]?)/g, (_, c: string) => c.toUpperCase());
}

function unsupported(path: string, why: string): Failure {
  return new Failure("encode.unsupported", `the column ${path}: ${why}`, {
    hint: 'Rename it where it is written, or write JSON: encode.format = "json"',
  });
}

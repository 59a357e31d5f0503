/**
 * Which number each field of a message has, for whoever writes the schema of a table anew when it grew: readers are made for
 * one version and meet the bytes of all, so a number stands for one name for ever.
 *
 * Nothing of ours keeps the numbers. They are in the versions of the subject, which a registry never changes and gives out in
 * one order: of versions that contradict each other the earlier one holds, and the later counts as if it were not there.
 */
import type { DescField, DescMessage } from "@bufbuild/protobuf";
import type { SchemaText } from "../../schema/resolver.ts";
import { DecodeError } from "../record-codec.ts";
import { registryOf } from "./descriptors.ts";
import { SCALARS } from "./type-map.ts";
import { MAX_DEPTH } from "./wire.ts";

/** A field as it was declared. */
export interface DeclaredField {
  readonly label: "optional" | "repeated" | "map";
  /** Of a map: a scalar's name. */
  readonly key: string | null;
  readonly type:
    | { readonly is: "scalar"; readonly text: string }
    | { readonly is: "instant" }
    /** A message that is declared within the one that has the field. */
    | { readonly is: "within"; readonly name: string };
}

export interface FieldNumbers {
  /** By name. */
  readonly numbers: ReadonlyMap<string, number>;
  /** Those of them that can be declared again. */
  readonly declared: ReadonlyMap<string, DeclaredField>;
  /** Numbers that no field may have: first and last. */
  readonly reserved: readonly (readonly [number, number])[];
  /** Of the messages that fields hold, by the field's name. */
  readonly within: ReadonlyMap<string, FieldNumbers>;
}

export const NO_NUMBERS: FieldNumbers = {
  numbers: new Map(),
  declared: new Map(),
  reserved: [],
  within: new Map(),
};

/** Of a message of one schema. Null: the schema has no such message, or is none. */
export function numbersIn(schema: SchemaText, message: string): FieldNumbers | null {
  if (schema.format !== "protobuf") return null;
  try {
    const desc = registryOf(schema).registry.getMessage(message);
    return desc === undefined ? null : numbersOf(desc, 1);
  } catch (e) {
    if (e instanceof DecodeError) return null;
    throw e;
  }
}

/** `versions` ascending. */
export function numbersOfVersions(versions: readonly SchemaText[], message: string): FieldNumbers {
  let all = NO_NUMBERS;
  for (const version of versions) {
    const next = numbersIn(version, message);
    if (next !== null && !contradicts(all, next)) all = joined(all, next);
  }
  return all;
}

/** Each field with its number, those within behind it; in order of declaration. */
export function fieldPaths({ numbers, within }: FieldNumbers, path = ""): string[] {
  return [...numbers].flatMap(([name, n]) => {
    const own = `${path}/${name}=${n}`;
    const inner = within.get(name);
    return inner === undefined ? [own] : [own, ...fieldPaths(inner, own)];
  });
}

function numbersOf(desc: DescMessage, depth: number): FieldNumbers {
  const within = new Map<string, FieldNumbers>();
  const declared = new Map<string, DeclaredField>();
  for (const f of desc.fields) {
    const own = declaredOf(f);
    if (own !== null) declared.set(f.name, own);
    const inner = innerOf(f);
    if (inner !== null && depth < MAX_DEPTH) within.set(f.name, numbersOf(inner, depth + 1));
  }
  return {
    numbers: new Map(desc.fields.map((f) => [f.name, f.number])),
    declared,
    // In descriptors the end is exclusive.
    reserved: desc.proto.reservedRange.map((r) => [r.start, r.end - 1] as const),
    within,
  };
}

/** Null: its type stands elsewhere, or is none that tables have. */
function declaredOf(f: DescField): DeclaredField | null {
  const label = f.fieldKind === "list" ? "repeated" : f.fieldKind === "map" ? "map" : "optional";
  const key = f.fieldKind === "map" ? SCALARS[f.mapKey].name : null;
  const { message, scalar } = f;
  if (scalar !== undefined) return { label, key, type: { is: "scalar", text: SCALARS[scalar].name } };
  if (message === undefined) return null;
  if (message.typeName === "google.protobuf.Timestamp") return { label, key, type: { is: "instant" } };
  return message.parent === f.parent ? { label, key, type: { is: "within", name: message.name } } : null;
}

/** Not those of the format's own types, which no table has columns of. */
function innerOf(f: DescField): DescMessage | null {
  const { message } = f;
  return message === undefined || message.typeName.startsWith("google.protobuf.") ? null : message;
}

function contradicts(all: FieldNumbers, next: FieldNumbers): boolean {
  const names = new Map([...all.numbers].map(([name, n]) => [n, name]));
  for (const [name, n] of next.numbers) {
    if ((all.numbers.get(name) ?? n) !== n || (names.get(n) ?? name) !== name) return true;
  }
  return [...next.within].some(([name, inner]) => {
    const known = all.within.get(name);
    return known !== undefined && contradicts(known, inner);
  });
}

function joined(all: FieldNumbers, next: FieldNumbers): FieldNumbers {
  const within = new Map(all.within);
  for (const [name, inner] of next.within) within.set(name, joined(within.get(name) ?? NO_NUMBERS, inner));
  return {
    numbers: new Map([...all.numbers, ...next.numbers]),
    declared: new Map([...all.declared, ...next.declared]),
    reserved: [...all.reserved, ...next.reserved],
    within,
  };
}

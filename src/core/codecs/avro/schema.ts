/** Avro schemas after parsing: names are full names, references are the types themselves, so recursive ones are cyclic. */

/** JSON as it stands in a schema; integers that a double would bend are bigints. */
export type Json =
  | null
  | boolean
  | number
  | bigint
  | string
  | readonly Json[]
  | { readonly [key: string]: Json };

export type PrimitiveName = "null" | "boolean" | "int" | "long" | "float" | "double" | "bytes" | "string";

/** What a value of a primitive or fixed type stands for. */
export type Logical =
  | { readonly as: "decimal"; readonly precision: number; readonly scale: number }
  /** Unscaled bytes and scale in one value. */
  | { readonly as: "big-decimal" }
  | { readonly as: "uuid" }
  | { readonly as: "date" }
  | { readonly as: "time"; readonly unit: "ms" | "us" | "ns" }
  | { readonly as: "timestamp"; readonly unit: "ms" | "us" | "ns"; readonly zone: "UTC" | null }
  | { readonly as: "duration" };

export interface PrimitiveType {
  readonly kind: PrimitiveName;
  readonly logical: Logical | null;
}

export interface FixedType {
  readonly kind: "fixed";
  readonly name: string;
  readonly aliases: readonly string[];
  readonly size: number;
  readonly logical: Logical | null;
}

export interface EnumType {
  readonly kind: "enum";
  readonly name: string;
  readonly aliases: readonly string[];
  readonly symbols: readonly string[];
  /** What a reader takes for a symbol that it does not know. */
  readonly fallback: string | null;
}

export interface ArrayType {
  readonly kind: "array";
  readonly items: AvroType;
}

export interface MapType {
  readonly kind: "map";
  readonly values: AvroType;
}

export interface AvroField {
  readonly name: string;
  readonly aliases: readonly string[];
  readonly type: AvroType;
  /** Undefined: none. */
  readonly fallback: Json | undefined;
}

export interface RecordType {
  readonly kind: "record";
  readonly name: string;
  readonly aliases: readonly string[];
  /** Filled once the fields are parsed, which may name the record. */
  readonly fields: AvroField[];
}

export interface UnionType {
  readonly kind: "union";
  readonly branches: readonly AvroType[];
}

export type NamedType = FixedType | EnumType | RecordType;
export type AvroType = PrimitiveType | NamedType | ArrayType | MapType | UnionType;

export function isNamed(type: AvroType): type is NamedType {
  return type.kind === "record" || type.kind === "enum" || type.kind === "fixed";
}

/** Behind the last dot. */
export function simpleName(fullName: string): string {
  return fullName.slice(fullName.lastIndexOf(".") + 1);
}

/** As messages and paths name it. */
export function nameOf(type: AvroType): string {
  return isNamed(type) ? type.name : type.kind;
}

/** What a union names its branches: the simple name, or the full one where two branches share the simple one. */
export function branchNames(union: UnionType): string[] {
  const simple = union.branches.map((b) => simpleName(nameOf(b)));
  return union.branches.map((b, i) =>
    simple.indexOf(simple[i]!) === simple.lastIndexOf(simple[i]!) ? simple[i]! : nameOf(b),
  );
}

/** The one branch beside null; null if the type is no union, or one of other branches. */
export function optional(type: AvroType): AvroType | null {
  if (type.kind !== "union" || type.branches.length !== 2) return null;
  const [a, b] = type.branches as [AvroType, AvroType];
  if (a.kind === "null") return b;
  return b.kind === "null" ? a : null;
}

/** Bytes that any value of the type takes at least. */
export function leastBytes(type: AvroType): number {
  switch (type.kind) {
    case "null":
      return 0;
    case "float":
      return 4;
    case "double":
      return 8;
    case "fixed":
      return type.size;
    case "record":
      return leastOfRecord(type);
    default:
      return 1;
  }
}

/** Kept, since types that name each other often would be walked again and again. */
const LEAST = new WeakMap<RecordType, number>();
/** More is not needed to bound a count by the bytes there are. */
const MOST_LEAST = 1 << 20;

function leastOfRecord(type: RecordType): number {
  const known = LEAST.get(type);
  if (known !== undefined) return known;
  // While it is being counted, a record within itself counts nothing: still no more than it takes.
  LEAST.set(type, 0);
  const bytes = type.fields.reduce((n, f) => Math.min(MOST_LEAST, n + leastBytes(f.type)), 0);
  LEAST.set(type, bytes);
  return bytes;
}

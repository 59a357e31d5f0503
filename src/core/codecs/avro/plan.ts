/**
 * What is to be done with a writer's bytes so that they become a reader's value: the one resolution that both paths
 * follow, the generated code into columns and the reader of Values. Plans of recursive types are cyclic.
 */
import type { EnumType, FixedType, PrimitiveType, RecordType } from "./schema.ts";

export type Scalar = PrimitiveType | FixedType;

export type Plan =
  | { readonly op: "null" }
  /** Written as `wire`, taken as `reader`: the same type or one that it is promoted to. */
  | { readonly op: "scalar"; readonly wire: Scalar; readonly reader: Scalar }
  /** By the writer's index; null: the reader has no such symbol. */
  | { readonly op: "enum"; readonly symbols: readonly (string | null)[]; readonly reader: EnumType }
  /** `least`: bytes that an item takes at least. */
  | { readonly op: "array"; readonly items: Plan; readonly least: number }
  | { readonly op: "map"; readonly values: Plan; readonly least: number }
  | RecordPlan
  /** By the writer's branch. */
  | { readonly op: "union"; readonly branches: readonly Plan[] }
  /** Into one of several branches (beside null) of the reader: `member` among them. */
  | { readonly op: "branch"; readonly member: number; readonly name: string; readonly plan: Plan }
  /** What the reader's schema has no place for. */
  | { readonly op: "fault"; readonly reason: string };

export interface RecordPlan {
  readonly op: "record";
  readonly reader: RecordType;
  /** The writer's fields in order. */
  readonly steps: Step[];
  /** Fields that the writer does not have. */
  readonly defaults: Default[];
}

export interface Step {
  readonly name: string;
  /** Of the reader's field; null: it has none, the value is passed over. */
  readonly field: number | null;
  readonly plan: Plan;
}

export interface Default {
  readonly field: number;
  /** The default as Avro of the reader's type. */
  readonly bytes: Uint8Array;
  readonly plan: Plan;
}

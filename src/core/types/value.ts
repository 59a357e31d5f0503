/**
 * A value of any format, for those who work record by record. Every case says its kind, so that a 64-bit integer, a
 * decimal or an instant never passes through a double. Columns hold the same values without an object each
 * (table-batch.ts); the two forms are turned into each other by value-cells.ts.
 */

export type TimeUnit = "s" | "ms" | "us" | "ns";

export interface ValueField {
  readonly name: string;
  readonly value: Value;
}

export type Value =
  | { readonly kind: "null" }
  | { readonly kind: "bool"; readonly value: boolean }
  /** Up to 32 bits, of either sign. */
  | { readonly kind: "int"; readonly value: number }
  /** Up to 64 bits, of either sign. */
  | { readonly kind: "long"; readonly value: bigint }
  /** Of 32 bits: `value` is what the float holds exactly. */
  | { readonly kind: "float"; readonly value: number }
  | { readonly kind: "double"; readonly value: number }
  /** unscaled / 10^scale */
  | { readonly kind: "decimal"; readonly unscaled: bigint; readonly scale: number }
  | { readonly kind: "bytes"; readonly value: Uint8Array }
  | { readonly kind: "string"; readonly value: string }
  /** Days since 1970-01-01. */
  | { readonly kind: "date"; readonly days: number }
  /** Since midnight. */
  | { readonly kind: "time"; readonly unit: TimeUnit; readonly value: bigint }
  /** Since 1970-01-01T00:00; `zone` null: wall-clock time of no zone. */
  | {
      readonly kind: "timestamp";
      readonly unit: TimeUnit;
      readonly zone: string | null;
      readonly value: bigint;
    }
  | {
      readonly kind: "interval";
      readonly months: number;
      readonly days: number;
      readonly nanoseconds: bigint;
    }
  /** 16 bytes, big endian. */
  | { readonly kind: "uuid"; readonly value: Uint8Array }
  | { readonly kind: "enum"; readonly symbol: string }
  | { readonly kind: "list"; readonly items: readonly Value[] }
  /** In the order of the source, duplicate keys refused by codecs. */
  | { readonly kind: "map"; readonly entries: readonly (readonly [Value, Value])[] }
  /** In the order of the schema. A field that the source left out is not there. */
  | { readonly kind: "record"; readonly fields: readonly ValueField[] }
  /** A value of a union with more than one branch beside null; `branch` is its name in the schema. */
  | { readonly kind: "union"; readonly branch: string; readonly value: Value };

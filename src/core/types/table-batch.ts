/**
 * Decoded rows as columns in Arrow's memory layout (little endian, validity bitmaps least significant bit first),
 * whatever made them: DuckDB, a codec, an Arrow file. Sinks read them without another copy.
 */

/** The types that a table column can have; the names and parameters are Arrow's. */
export type ColumnType =
  | { readonly id: "null" | "bool" | "utf8" | "binary" | "date32" | "interval" }
  | { readonly id: "int"; readonly bits: 8 | 16 | 32 | 64; readonly signed: boolean }
  | { readonly id: "float"; readonly bits: 32 | 64 }
  | { readonly id: "decimal"; readonly precision: number; readonly scale: number }
  | { readonly id: "fixed"; readonly bytes: number /** Canonical extension. */; readonly as?: "uuid" }
  | { readonly id: "time64"; readonly unit: "us" | "ns" }
  | {
      readonly id: "timestamp";
      readonly unit: "s" | "ms" | "us" | "ns";
      /** Null: wall-clock time of no zone. */
      readonly zone: string | null;
    }
  | { readonly id: "json" }
  | { readonly id: "list"; readonly item: ColumnField }
  | { readonly id: "struct"; readonly fields: readonly ColumnField[] }
  | { readonly id: "map"; readonly key: ColumnField; readonly value: ColumnField };

export interface ColumnField {
  readonly name: string;
  readonly type: ColumnType;
  readonly nullable: boolean;
}

/**
 * One column, `length` rows, always from row 0 of its buffers. Fixed-width values are in `data` (bool: a bitmap;
 * decimal: 16 bytes two's complement; interval: int32 months, int32 days, int64 nanoseconds). utf8, binary and json: bytes in `data`, `offsets`
 * of length + 1 entries. list and map: `offsets` into children[0] (a map's child is a struct of key and value). struct: children.
 */
export interface TableColumn {
  readonly type: ColumnType;
  readonly length: number;
  readonly nullCount: number;
  /** Null: every row is valid. */
  readonly validity: Uint8Array | null;
  readonly offsets: Int32Array | null;
  readonly data: Uint8Array;
  readonly children: readonly TableColumn[];
  /** Of utf8 and binary: what every row holds, where that is known. The buffers hold it too. */
  readonly constant?: Uint8Array;
}

export interface TableBatch {
  readonly fields: readonly ColumnField[];
  readonly columns: readonly TableColumn[];
  readonly rows: number;
}

/** What a codec makes of a piece of a file: accepted rows in column builders, and the rows that it refuses. */

import type { ColumnBuilder } from "../types/column-builder.ts";
import type { TableSchema } from "../types/table-schema.ts";
import type { DecodeCode } from "./record-codec.ts";

/** Why a row is refused. Names are a promise: they stand in rejects files. */
export type RejectCode =
  | "row.columns"
  | "row.quote"
  | "row.encoding"
  | "value.type"
  | "value.range"
  | "value.precision"
  | "value.null"
  | "value.zone"
  | "value.nul"
  | "json.syntax"
  | "json.not_object"
  | "json.duplicate_key"
  | "json.unknown_key"
  | "json.kind"
  | "json.depth";

export interface Reject {
  /** Row of the file, from 0. */
  readonly row: number;
  /** Where the record stands in the piece. */
  readonly from: number;
  readonly to: number;
  readonly code: RejectCode | DecodeCode;
  /** Name of the column, null where the whole record is at fault. */
  readonly column: string | null;
  /** The stored value at fault, where a record has no text of its own. */
  readonly value?: Uint8Array;
  /** What was seen and what is allowed. */
  readonly reason: string;
}

/** Where accepted rows go. All builders have the same number of rows between two calls of a codec. */
export interface RowTarget {
  readonly schema: TableSchema;
  readonly columns: readonly ColumnBuilder[];
  /** Row numbers of accepted rows: first row of a run and how many. */
  addRun(firstRow: number, rows: number): void;
  reject(reject: Reject): void;
}

/** One piece of one file: whole records. */
export interface Piece {
  /** Behind `end` there may be room that the codec uses. */
  readonly bytes: Uint8Array;
  readonly from: number;
  readonly end: number;
  /** Row number of its first record. */
  readonly firstRow: number;
  /** Rows that are covered already: read over, and neither given on nor refused again. */
  readonly skip: readonly { readonly from: number; readonly next: number }[];
}

export interface PieceDecoder {
  /** Reads the whole piece; gives the number of its records, accepted and refused. Calls `full` after every batch. */
  decode(piece: Piece, target: RowTarget, batchDone: () => void): number;
}

export function isSkipped(skip: Piece["skip"], row: number): boolean {
  return skip.some((r) => row >= r.from && row < r.next);
}

/** By the number of a cell's fault (`CELL_FAULTS`): its code, and how the reason reads between value and type. */
export const VALUE_REASONS: readonly (readonly [RejectCode, string])[] = [
  ["value.type", ""],
  ["value.type", "is no"],
  ["value.range", "does not fit in"],
  ["value.precision", "would be rounded as"],
  ["value.null", "null, and the column is required"],
  ["value.zone", "has a zone where there must be none, or none where there must be one, for"],
];

/** What is said of a single value of a column. */
import type { TableColumn } from "../../../core/types/table-batch.ts";

/** Codes of refused values; they stand in reject lines. */
export type CellProblem =
  | "nul_in_text"
  | "not_utf8"
  | "json_invalid"
  | "out_of_range"
  | "precision"
  | "null_not_allowed"
  | "key_too_long";

export function isValid(column: TableColumn, row: number): boolean {
  const { validity } = column;
  return validity === null || (validity[row >> 3]! & (1 << (row & 7))) !== 0;
}

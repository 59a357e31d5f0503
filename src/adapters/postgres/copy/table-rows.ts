/** Rows of a table batch as rows of a binary COPY; those with a value that PostgreSQL cannot hold are left out and told. */
import type { ColumnField, TableBatch } from "../../../core/types/table-batch.ts";
import type { CopyBlocks } from "./blocks.ts";
import type { CellProblem } from "./cell.ts";
import { type Cells, cellsOf } from "./cells.ts";

export interface RefusedRow {
  /** Within the batch. */
  readonly row: number;
  readonly column: ColumnField;
  readonly problem: CellProblem;
}

/** What a column of the table is. */
export interface TargetColumn {
  readonly type: string;
  readonly notNull: boolean;
  /** Most bytes of a value; null: as many as the type takes. */
  readonly maxBytes: number | null;
}

/** How many rows were appended. `targets`: the table's column for each field. */
export function appendTableRows(
  batch: TableBatch,
  targets: readonly TargetColumn[],
  blocks: CopyBlocks,
  refused: (row: RefusedRow) => void,
): number {
  const cells = batch.columns.map((c, i) => checked(cellsOf(c, targets[i]!.type), targets[i]!));
  const count = cells.length;
  let appended = 0;
  for (let row = 0; row < batch.rows; row++) {
    let size = 2 + 4 * count;
    let problem: CellProblem | null = null;
    for (let c = 0; c < count && problem === null; c++) {
      problem = cells[c]!.problem(row);
      if (problem !== null) refused({ row, column: batch.fields[c]!, problem });
      else size += Math.max(0, cells[c]!.size(row));
    }
    if (problem !== null) continue;
    let at = blocks.row(size);
    const { bytes, view } = blocks;
    view.setInt16(at, count);
    at += 2;
    for (let c = 0; c < count; c++) {
      const n = cells[c]!.size(row);
      view.setInt32(at, n);
      if (n >= 0) cells[c]!.put(bytes, view, at + 4, row);
      at += 4 + Math.max(0, n);
    }
    appended++;
  }
  return appended;
}

function checked(cells: Cells, { notNull, maxBytes }: TargetColumn): Cells {
  if (!notNull && maxBytes === null) return cells;
  const problem = (row: number): CellProblem | null => {
    const size = cells.size(row);
    if (notNull && size < 0) return "null_not_allowed";
    return maxBytes !== null && size > maxBytes ? "key_too_long" : cells.problem(row);
  };
  return { ...cells, problem };
}

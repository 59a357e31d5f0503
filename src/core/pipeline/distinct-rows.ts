/** The rows of a batch without those whose natural key an earlier record has. */
import { Failure } from "../failure/failure.ts";
import type { TableBatch } from "../types/table-batch.ts";
import { takeRows } from "../types/take-rows.ts";
import type { DerivedBatch } from "./derived.ts";

export interface DistinctRows {
  readonly table: TableBatch | null;
  /** Of each of its rows the record of the batch. */
  readonly tableRows: Int32Array;
  /** Records that are left out. */
  readonly duplicates: number;
}

/** `judged`: of each record of the batch 1 where it is a duplicate; null: none is. A Failure: it cannot be said. */
export function distinctOf(
  batch: Pick<DerivedBatch, "table" | "tableRows">,
  judged: Uint8Array | Failure | null,
): DistinctRows | Failure {
  const { table, tableRows } = batch;
  if (judged instanceof Failure) return judged;
  if (judged === null || table === null) return { table, tableRows, duplicates: 0 };
  const kept = new Int32Array(tableRows.length);
  let rows = 0;
  for (let i = 0; i < tableRows.length; i++) if (judged[tableRows[i]!] !== 1) kept[rows++] = i;
  const taken = kept.subarray(0, rows);
  const columns = rows === 0 ? [] : table.columns.map((c) => takeRows(c, taken));
  return {
    table: rows === 0 ? null : { fields: table.fields, columns, rows },
    tableRows: taken.map((i) => tableRows[i]!),
    duplicates: tableRows.length - rows,
  };
}

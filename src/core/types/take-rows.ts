/** Some of the rows of columns, in the order of their numbers: runs of bytes, no value looked at. */
import { appendRows } from "./append-rows.ts";
import { builderOf } from "./column-builder.ts";
import type { TableColumn } from "./table-batch.ts";

/** `rows`: ascending. */
export function takeRows(column: TableColumn, rows: Int32Array): TableColumn {
  const b = builderOf(column.type);
  eachRun(rows, (from, end) => appendRows(b, column, from, end));
  const taken = b.finish();
  return column.constant === undefined ? taken : { ...taken, constant: column.constant };
}

/** Runs of neighbours in ascending numbers, as [from, end). */
function eachRun(numbers: Int32Array, run: (from: number, end: number) => void): void {
  for (let i = 0; i < numbers.length; ) {
    let n = 1;
    while (i + n < numbers.length && numbers[i + n] === numbers[i]! + n) n++;
    run(numbers[i]!, numbers[i]! + n);
    i += n;
  }
}

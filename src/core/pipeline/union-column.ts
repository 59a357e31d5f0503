/** Rows that were decoded by several schemas as those of one table, which has the columns of all. */
import { widenColumn } from "../schema/widen-column.ts";
import { appendRows } from "../types/append-rows.ts";
import { builderOf } from "../types/column-builder.ts";
import type { ColumnField, TableColumn } from "../types/table-batch.ts";

/** Rows of one schema. */
export interface ColumnsOfSchema {
  readonly known: { readonly decoder: { readonly fields: readonly ColumnField[] } | null };
  /** Of the batch, ascending. */
  readonly rows: Int32Array;
  readonly columns: readonly TableColumn[];
}

/** The table's column of one group: null where its schema has none of that name, widened where its own is narrower. */
export function ownColumn(field: ColumnField, { known, columns }: ColumnsOfSchema): TableColumn | null {
  const at = known.decoder?.fields.findIndex((f) => f.name === field.name) ?? -1;
  return at < 0 ? null : widenColumn(columns[at]!, field.type);
}

/** The same over all groups. */
export function unionColumn(
  field: ColumnField,
  groups: readonly ColumnsOfSchema[],
  count: number,
): TableColumn {
  const found = groups.map((g) => ownColumn(field, g));
  const [only] = found;
  if (found.length === 1 && only !== null && only !== undefined) return only;
  const b = builderOf(field.type);
  b.reserve(count);
  for (const [i, g] of groups.entries()) {
    const column = found[i];
    if (column !== null && column !== undefined) appendRows(b, column, 0, g.rows.length);
    else for (let n = 0; n < g.rows.length; n++) b.pushNull();
  }
  return b.finish();
}

/** The records of all groups, one group behind the other. */
export function rowsOf(groups: readonly ColumnsOfSchema[]): Int32Array {
  const rows = new Int32Array(groups.reduce((n, g) => n + g.rows.length, 0));
  let at = 0;
  for (const g of groups) {
    rows.set(g.rows, at);
    at += g.rows.length;
  }
  return rows;
}

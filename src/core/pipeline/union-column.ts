/** Rows that were decoded by several schemas as those of one table, which has the columns of all. */
import { widenColumn } from "../schema/widen-column.ts";
import { appendRows } from "../types/append-rows.ts";
import { builderOf } from "../types/column-builder.ts";
import type { ColumnField, TableColumn } from "../types/table-batch.ts";

export interface ColumnsOfSchema {
  readonly known: { readonly decoder: { readonly fields: readonly ColumnField[] } | null };
  readonly rows: ArrayLike<number>;
  readonly columns: readonly TableColumn[];
}

/** The table's column over all groups: null where a schema has none of that name, widened where its own is narrower. */
export function unionColumn(
  field: ColumnField,
  groups: readonly ColumnsOfSchema[],
  count: number,
): TableColumn {
  const found = groups.map(({ known, columns }) => {
    const at = known.decoder?.fields.findIndex((f) => f.name === field.name) ?? -1;
    return at < 0 ? null : widenColumn(columns[at]!, field.type);
  });
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

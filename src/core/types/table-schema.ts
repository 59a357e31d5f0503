/** The schema of a table: its columns in order, and how each is found in the source. */
import type { ColumnField } from "./table-batch.ts";

export interface TableField extends ColumnField {
  /** Name of the column or key in the source; default: `name`. */
  readonly source?: string;
}

export interface TableSchema {
  readonly fields: readonly TableField[];
}

export function sourceOf(field: TableField): string {
  return field.source ?? field.name;
}

/** The columns of a table in a line, for people. */
import type { ColumnField } from "../core/types/table-batch.ts";
import { typeText } from "../core/types/type-text.ts";

/** Columns that are named; a wider table is counted. */
const SHOWN_COLUMNS = 12;

export function columnsText(fields: readonly Pick<ColumnField, "name" | "type">[]): string {
  const named = fields.slice(0, SHOWN_COLUMNS).map((f) => `${f.name} ${typeText(f.type)}`);
  const more = fields.length - named.length;
  return `${fields.length} columns: ${named.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

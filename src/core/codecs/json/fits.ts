/** Which kinds of JSON values are of which column types. */
import type { ColumnType } from "../../types/table-batch.ts";
import { KIND } from "./cursor.ts";

/** Whether a value of this kind can be of the type. Numbers may be texts: that is how JSON carries 64 bits safely. */
export function fits(type: ColumnType, kind: number): boolean {
  switch (type.id) {
    case "json":
      return true;
    case "bool":
      return kind === KIND.true || kind === KIND.false;
    case "int":
    case "float":
    case "decimal":
      return kind === KIND.number || kind === KIND.string;
    case "list":
      return kind === KIND.array;
    case "struct":
    case "map":
      return kind === KIND.object;
    default:
      return kind === KIND.string;
  }
}

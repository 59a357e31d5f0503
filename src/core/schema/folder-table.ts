/**
 * What a table can become that is a folder of files, none of which is ever written anew: a reader meets old and new files
 * beside each other, and has to take them for one table.
 */
import type { ColumnField, ColumnType } from "../types/table-batch.ts";
import type { TargetAbilities } from "./evolution.ts";

/**
 * Signed whole numbers become wider: DuckDB (union_by_name), Arrow (one schema over all files) and Spark 4 read both, and
 * whoever takes a narrow file's type for all gets an error and no wrong number. A float that becomes a double is
 * refused: Arrow, which takes the first file's type where nobody names one, reads a double as a float without a word, and
 * what does not fit as infinity. Decimals are read together by too few.
 */
export const FOLDER_TABLE: TargetAbilities = { relax: true, nested: true, widen: widens };

function widens(from: ColumnType, to: ColumnType): boolean {
  return from.id === "int" && to.id === "int" && from.signed && to.signed;
}

/** What a file says of a type: some that are told apart here are stored alike. */
export function asStored(type: ColumnType): ColumnType {
  const inside = (f: ColumnField): ColumnField => ({ ...f, type: asStored(f.type) });
  switch (type.id) {
    case "json":
      return { id: "utf8" };
    case "fixed":
      return type.as === undefined ? { id: "binary" } : type;
    case "timestamp":
      return type.unit === "s" ? { ...type, unit: "us" } : type;
    case "list":
      return { id: "list", item: inside(type.item) };
    case "struct":
      return { id: "struct", fields: type.fields.map(inside) };
    case "map":
      return { id: "map", key: inside(type.key), value: inside(type.value) };
    default:
      return type;
  }
}

/** Rows of one row group as stored values, by DuckDB out of a file that holds nothing but that group. */

import { Failure } from "../../core/failure/failure.ts";
import type { ColumnField, TableBatch } from "../../core/types/table-batch.ts";
import { typeText } from "../../core/types/type-text.ts";
import { type DuckEngine, sqlText } from "./engine.ts";

/** `fields`: what the file was written to look like. Throws duckdb.* with DuckDB's words where a page is damaged. */
export function* rowGroupBatches(
  engine: DuckEngine,
  path: string,
  fields: readonly ColumnField[],
): Generator<TableBatch> {
  const sql = `SELECT * FROM read_parquet(${sqlText(path)})`;
  const found = engine.fieldsOf(sql);
  const differs = fields.findIndex(
    (f, i) => found[i] === undefined || shape(found[i].type) !== shape(f.type),
  );
  // What follows reads native memory by these types.
  if (differs >= 0 || found.length !== fields.length)
    throw new Failure(
      "internal.bug",
      `DuckDB sees column ${differs} as ${found[differs] === undefined ? "nothing" : typeText(found[differs].type)}`,
    );
  yield* engine.stream(sql, found);
}

function shape(type: ColumnField["type"]): string {
  switch (type.id) {
    case "list":
      return `[${shape(type.item.type)}]`;
    case "struct":
      return `{${type.fields.map((f) => shape(f.type)).join()}}`;
    default:
      return typeText(type);
  }
}

/**
 * Rows that were encoded for a column which has become wider since, by another lane or member or by somebody's hand. A binary
 * COPY wants the very type, so the server refuses them all. They go into a table of the transaction's own that has the types
 * they were made for, and are moved on from there: the server knows how to make a bigint of an integer.
 */
import { Failure } from "../../core/failure/failure.ts";
import type { PgConnection } from "./client.ts";
import { quoted, quotedTable, type TableName } from "./table/names.ts";
import { STAGING } from "./table/upsert.ts";
import { wideningOf } from "./table/widenings.ts";
import { ServerError } from "./wire/errors.ts";

export interface TypedColumn {
  readonly name: string;
  /** That its values were encoded for. */
  readonly type: string;
}

/** Wrong binary format, fewer bytes than the type has. */
const STATES = ["22P03", "08P01"];

/** Whether it may be what the server says where a type is another now. */
export function mayBeStale(e: unknown): boolean {
  return e instanceof Failure && e.cause instanceof ServerError && STATES.includes(e.cause.notice.sqlstate);
}

/** Some are other types now, and each of those holds every value of the old one. */
export async function onlyWidened(
  connection: PgConnection,
  table: TableName,
  columns: readonly TypedColumn[],
): Promise<boolean> {
  const { rows } = await connection.query(
    `SELECT a.attname::text, pg_catalog.format_type(a.atttypid, a.atttypmod) FROM pg_catalog.pg_attribute a
      WHERE a.attrelid = $1::pg_catalog.regclass AND a.attnum > 0 AND NOT a.attisdropped`,
    quotedTable(table),
  );
  const now = new Map(rows.map(([name, type]) => [name, type ?? ""]));
  const changed = columns.filter((c) => now.get(c.name) !== c.type);
  const isWider = ({ name, type }: TypedColumn) => wideningOf(type, now.get(name) ?? "", true) !== null;
  return changed.length > 0 && changed.every(isWider);
}

/** The table for rows of these types, and how they come from there where they are not merged. */
export function staleStaging(table: TableName, columns: readonly TypedColumn[]) {
  const typed = columns.map((c) => `${quoted(c.name)} ${c.type}`).join(", ");
  const names = columns.map((c) => quoted(c.name)).join(", ");
  return {
    name: STAGING,
    make: [`CREATE TEMP TABLE twg_staged (${typed}) ON COMMIT DROP`],
    move: `INSERT INTO ${quotedTable(table)} (${names}) SELECT ${names} FROM ${STAGING}`,
  };
}

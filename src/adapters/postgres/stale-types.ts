/**
 * Rows that were encoded for a column whose type is another by now, by another lane or member or by somebody's hand.
 *
 * One that has become wider takes another number of bytes in a binary COPY, so the server refuses them all. They go into a
 * table of the transaction's own that has the types they were made for, and are moved on from there: the server knows how
 * to make a bigint of an integer.
 *
 * Of any other change the server may see nothing, so it is looked for before COMMIT.
 */
import { Failure } from "../../core/failure/failure.ts";
import type { PgConnection } from "./client.ts";
import { quoted, quotedTable, shownTable, type TableName } from "./table/names.ts";
import { STAGING } from "./table/upsert.ts";
import { wideningOf } from "./table/widenings.ts";
import { ServerError } from "./wire/errors.ts";

export interface TypedColumn {
  readonly name: string;
  /** That its values were encoded for. */
  readonly type: string;
}

/** Wrong binary format, fewer bytes than the type has; a column is gone, it is another type than what goes into it from a staging. */
const STATES = ["22P03", "08P01", "42703", "42804"];

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
  const changed = await changedTypes(connection, table, columns);
  return changed.length > 0 && changed.every((c) => wideningOf(c.type, c.now ?? "", true) !== null);
}

/**
 * Within a transaction that has copied rows, and with them a lock on the table: they are values of its columns. The server
 * looks at the length of what it is sent, and takes eight bytes of a bigint for a double or for a numeric of zero.
 * Throws postgres.table_mismatch.
 */
export async function requireTypes(
  connection: PgConnection,
  table: TableName,
  columns: readonly TypedColumn[],
): Promise<void> {
  const other = (await changedTypes(connection, table, columns)).find(
    ({ type, now }) => !isText(type, now) && wideningOf(type, now ?? "", true) === null,
  );
  if (other === undefined) return;
  const { name, type, now } = other;
  const is = now === undefined ? "is gone" : `is ${now} now`;
  throw new Failure("postgres.table_mismatch", `column ${name} ${is}, and rows were made for ${type}`, {
    at: `${connection.at} ${shownTable(table)}`,
    hint: "Somebody changed the table meanwhile; nothing of the set has landed. Change it back, or name another table",
  });
}

/** The very same bytes; a text that is too long for the column is refused by the server. */
const isText = (type: string, now = ""): boolean =>
  [type, now].every((t) => t === "text" || /^character varying(\(\d+\))?$/.test(t));

async function changedTypes(
  connection: PgConnection,
  table: TableName,
  columns: readonly TypedColumn[],
): Promise<readonly (TypedColumn & { readonly now: string | undefined })[]> {
  const { rows } = await connection.query(
    `SELECT a.attname::text, pg_catalog.format_type(a.atttypid, a.atttypmod) FROM pg_catalog.pg_attribute a
      WHERE a.attrelid = pg_catalog.to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped`,
    quotedTable(table),
  );
  const types = new Map(rows.map(([name, type]) => [name, type ?? ""]));
  return columns.map((c) => ({ ...c, now: types.get(c.name) })).filter((c) => c.now !== c.type);
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

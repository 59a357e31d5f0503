/**
 * Rows that replace those of the same key: they are copied into a table of the transaction's own and merged from there.
 * A row never replaces one of a later position, since recovery brings older rows after newer ones.
 */
import { quoted, quotedTable, type TableName } from "./names.ts";

export interface Upsert {
  /** Columns of a unique index of the table. */
  readonly key: readonly string[];
  /** Columns by which two rows of a key are ordered: the position of their source, the largest is the latest. */
  readonly order: readonly string[];
  /** All columns that the rows hold. */
  readonly columns: readonly string[];
}

const STAGING = "pg_temp.twg_staged";

/** Statements that make the table for the rows, and its name. */
export function intoStaging(table: TableName, columns: string): { name: string; make: readonly string[] } {
  return {
    name: STAGING,
    make: [
      `CREATE TEMP TABLE twg_staged ON COMMIT DROP AS SELECT ${columns} FROM ${quotedTable(table)} WITH NO DATA`,
    ],
  };
}

/**
 * One row for each key, the latest; sorted by the key, so that two transactions lock in the same order. Nulls in the
 * order columns count as the earliest.
 */
export function mergeStatement(
  table: TableName,
  columns: string,
  { key, order, columns: all }: Upsert,
): string {
  const keys = key.map(quoted).join(", ");
  const descending = order.map((c) => `${quoted(c)} DESC NULLS LAST`).join(", ");
  const others = all.filter((c) => !key.includes(c)).map(quoted);
  const set = others.map((c) => `${c} = excluded.${c}`).join(", ");
  const place = (of: string) => `(${order.map((c) => `${of}.${quoted(c)}`).join(", ")})`;
  const unknown = order.map((c) => `t.${quoted(c)} IS NULL`).join(" OR ");
  const action =
    others.length === 0
      ? "DO NOTHING"
      : `DO UPDATE SET ${set} WHERE ${unknown} OR ${place("t")} <= ${place("excluded")}`;
  const latest = `SELECT DISTINCT ON (${keys}) ${columns} FROM ${STAGING} ORDER BY ${keys}, ${descending}`;
  return `INSERT INTO ${quotedTable(table)} AS t (${columns}) ${latest} ON CONFLICT (${keys}) ${action}`;
}

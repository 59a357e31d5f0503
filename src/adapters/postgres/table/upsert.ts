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
  /**
   * Rows of a key may come from several streams, whose positions say nothing about each other: the column that names the
   * stream, and the columns that order rows of two streams. Null: all have one order.
   */
  readonly across: { readonly stream: string; readonly order: readonly string[] } | null;
  /** All columns that the rows hold. */
  readonly columns: readonly string[];
}

export const STAGING = "pg_temp.twg_staged";

/** Statements that make the table for the rows, and its name. */
export function intoStaging(table: TableName, columns: string): { name: string; make: readonly string[] } {
  return {
    name: STAGING,
    make: [
      `CREATE TEMP TABLE twg_staged ON COMMIT DROP AS SELECT ${columns} FROM ${quotedTable(table)} WITH NO DATA`,
    ],
  };
}

/** Makes room for further rows of the same transaction. */
export const emptyStaging = (): string => `DELETE FROM ${STAGING}`;

/**
 * One row for each key, the latest; sorted by the key, so that two transactions lock in the same order. Nulls in the
 * order columns count as the earliest.
 */
export function mergeStatement(table: TableName, columns: string, upsert: Upsert): string {
  const { key, columns: all } = upsert;
  const keys = key.map(quoted).join(", ");
  const others = all.filter((c) => !key.includes(c)).map(quoted);
  const set = others.map((c) => `${c} = excluded.${c}`).join(", ");
  const action = others.length === 0 ? "DO NOTHING" : `DO UPDATE SET ${set} WHERE ${isLater(upsert)}`;
  const latest = latestOf(columns, upsert);
  return `INSERT INTO ${quotedTable(table)} AS t (${columns}) ${latest} ON CONFLICT (${keys}) ${action}`;
}

function latestOf(columns: string, { key, order, across }: Upsert): string {
  const one = (from: string, by: readonly string[], ordered: readonly string[]) => {
    const distinct = by.map(quoted).join(", ");
    const descending = ordered.map((c) => `${quoted(c)} DESC NULLS LAST`).join(", ");
    return `SELECT DISTINCT ON (${distinct}) ${columns} FROM ${from} ORDER BY ${distinct}, ${descending}`;
  };
  if (across === null) return one(STAGING, key, order);
  // First of each stream, by its own order: only these are compared with rows of other streams.
  return one(`(${one(STAGING, [...key, across.stream], order)}) AS s`, key, across.order);
}

/** Whether the row that comes is at least as late as the one that is there. */
function isLater({ order, across }: Upsert): string {
  const place = (of: string, by: readonly string[]) => `(${by.map((c) => `${of}.${quoted(c)}`).join(", ")})`;
  const unknown = (of: string, by: readonly string[]) =>
    by.map((c) => `${of}.${quoted(c)} IS NULL`).join(" OR ");
  const later = (by: readonly string[]) =>
    `(${unknown("t", by)} OR ${place("t", by)} <= ${place("excluded", by)})`;
  if (across === null) return later(order);
  const stream = quoted(across.stream);
  return `CASE WHEN t.${stream} = excluded.${stream} THEN ${later(order)} ELSE ${later(across.order)} END`;
}

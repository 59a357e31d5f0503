/**
 * A table that takes what it could not: columns are added, types become wider ones. In one transaction under the table's
 * lock, since others may grow it at the same moment: what is there is looked at again once nobody else can change it, so
 * nobody's wider type is made narrower.
 */
import { asFailure, Failure } from "../../../core/failure/failure.ts";
import type { PgConnection } from "../client.ts";
import type { FoundColumn, WantedColumn } from "./column-specs.ts";
import { quoted, quotedTable, shownTable, type TableName } from "./names.ts";
import { type Widening, wideningOf, widerType } from "./widenings.ts";

export interface TableGrowth {
  /** Longest wait for the table's lock. */
  readonly lockTimeoutMs: number;
  /** Largest table, with its indexes, that is written anew. */
  readonly rewriteMaxBytes: number;
  /** A column of dates may become one of timestamps without a zone, at midnight. */
  readonly dateToTimestamp: boolean;
}

interface Changes {
  /** Of ALTER TABLE. */
  readonly actions: readonly string[];
  readonly rewrites: boolean;
}

/** `found`: the table's columns; `look`: as they are now. False: there is nothing to change in `found`, or it may not be. */
export async function growTable(
  connection: PgConnection,
  name: TableName,
  found: readonly FoundColumn[],
  wanted: readonly WantedColumn[],
  growth: TableGrowth,
  look: () => Promise<readonly FoundColumn[] | null>,
): Promise<boolean> {
  const before = changesOf(found, wanted, growth);
  if (before.actions.length === 0 || !(await isAllowed(connection, name, before, growth))) return false;
  const table = quotedTable(name);
  const timeout = `SET LOCAL lock_timeout = ${Math.round(growth.lockTimeoutMs)}`;
  try {
    await connection.script(`BEGIN;${timeout};LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`);
    const { actions } = changesOf((await look()) ?? [], wanted, growth);
    if (actions.length > 0) await connection.script(`ALTER TABLE ${table} ${actions.join(", ")}`);
    await connection.script("COMMIT");
    return true;
  } catch (e) {
    const failure = asFailure(e);
    if (connection.failure === null) await connection.script("ROLLBACK");
    // Views, rules, generated columns and keys of partitions that hang on the column.
    if (failure.code !== "postgres.refused" && failure.code !== "postgres.table_mismatch") throw failure;
    throw new Failure(
      "postgres.table_mismatch",
      `${shownTable(name)} cannot be changed: ${failure.message}`,
      {
        at: `${connection.at} ${shownTable(name)}`,
        hint: `Change it by hand: ALTER TABLE ${table} ${before.actions.join(", ")}`,
        cause: failure,
      },
    );
  }
}

/** What one has to run to make the column fit; null: no such change loses nothing. */
export function widenAction(found: FoundColumn, wanted: WantedColumn, dateToTimestamp: boolean) {
  if (found.generated || wanted.takes?.(found.type) !== false) return null;
  const to = widerType(found.type, wanted.type);
  const widening: Widening | null = wideningOf(found.type, to, dateToTimestamp);
  if (widening === null || !wanted.takes(to)) return null;
  return { widening, action: `ALTER COLUMN ${quoted(found.name)} TYPE ${to}` };
}

function changesOf(
  found: readonly FoundColumn[],
  wanted: readonly WantedColumn[],
  { dateToTimestamp }: TableGrowth,
): Changes {
  const there = new Map(found.map((c) => [c.name, c]));
  const actions: string[] = [];
  let rewrites = false;
  for (const column of wanted) {
    const own = there.get(column.name);
    if (own === undefined) {
      if (column.nullable) actions.push(`ADD COLUMN IF NOT EXISTS ${quoted(column.name)} ${column.type}`);
      continue;
    }
    const widened = widenAction(own, column, dateToTimestamp);
    if (widened === null) continue;
    actions.push(widened.action);
    rewrites ||= widened.widening === "rewrite";
  }
  return { actions, rewrites };
}

async function isAllowed(
  connection: PgConnection,
  name: TableName,
  { rewrites }: Changes,
  { rewriteMaxBytes }: TableGrowth,
): Promise<boolean> {
  return !rewrites || (await tableBytes(connection, name)) <= rewriteMaxBytes;
}

/** With indexes, long values and partitions. */
export async function tableBytes(connection: PgConnection, name: TableName): Promise<number> {
  const { rows } = await connection.query(
    `SELECT sum(pg_catalog.pg_total_relation_size(t.oid))::text FROM (
       SELECT $1::pg_catalog.regclass AS oid UNION
       SELECT relid FROM pg_catalog.pg_partition_tree($1::pg_catalog.regclass)) t`,
    quotedTable(name),
  );
  return Number(rows[0]?.[0] ?? 0);
}

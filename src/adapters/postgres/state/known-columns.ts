/**
 * What the columns of a table of decoded rows were when it last fitted, so that a table that somebody changed is told from
 * a schema that never went into it. Written before rows are made for a column, so what rows were made for is known
 * whenever a difference is judged; behind a change of our own it may be for a moment, and then no rows have it yet.
 */
import type { PgConnection } from "../client.ts";
import type { FoundColumn, KnownColumn, KnownColumns } from "../table/column-specs.ts";
import { literal, quotedTable, shownTable, type TableName } from "../table/names.ts";
import { makeState, type SinkKey, type StateNames } from "./tables.ts";

export interface KnownTable {
  readonly names: StateNames;
  readonly key: SinkKey;
  readonly table: TableName;
}

/** Makes the state if there is none: lanes may come to it before whoever owns the sink. */
export async function readKnownColumns(
  connection: PgConnection,
  { names, key, table }: KnownTable,
): Promise<KnownColumns> {
  const there = await connection.query("SELECT to_regclass($1)::text", names.table("table_column"));
  if ((there.rows[0]?.[0] ?? null) === null) await makeState(connection, names);
  const { rows } = await connection.query(
    `SELECT name, type, not_null::text, has_default::text FROM ${names.table("table_column")}
      WHERE pipeline = $1 AND sink = $2 AND relation = $3`,
    key.pipeline,
    key.sink,
    shownTable(table),
  );
  return new Map(
    rows.map(([name, type, notNull, hasDefault]) => [
      name ?? "",
      { type: type ?? "", notNull: notNull === "true", hasDefault: hasDefault === "true" },
    ]),
  );
}

/** Of a table that fits; columns that nobody can write are left out. Returns what was known before. */
export async function keepKnownColumns(
  connection: PgConnection,
  place: KnownTable,
  found: readonly FoundColumn[],
): Promise<KnownColumns> {
  const { names, key, table } = place;
  // Not what was read before: a table that was made anew has nothing of that.
  const known = await readKnownColumns(connection, place);
  const news = found.filter((c) => !c.generated && isNews(known.get(c.name), c));
  if (news.length === 0) return known;
  const columns = news.map(({ name, type, notNull: not_null, hasDefault: has_default }) => {
    return { name, type, not_null, has_default };
  });
  // A column that took nulls is known for one that did, whatever became of it: what it refuses is judged by the server.
  await connection.query(
    `INSERT INTO ${names.table("table_column")} AS k (pipeline, sink, relation, name, type, not_null, has_default)
     SELECT $1, $2, $3, name, type, not_null, has_default
       FROM jsonb_to_recordset($4::jsonb) AS c(name text, type text, not_null boolean, has_default boolean)
      ORDER BY name
         ON CONFLICT (pipeline, sink, relation, name)
         DO UPDATE SET type = EXCLUDED.type, not_null = k.not_null AND EXCLUDED.not_null, has_default = EXCLUDED.has_default`,
    key.pipeline,
    key.sink,
    shownTable(table),
    JSON.stringify(columns),
  );
  return known;
}

function isNews(before: KnownColumn | undefined, now: FoundColumn): boolean {
  if (before === undefined) return true;
  return before.type !== now.type || before.hasDefault !== now.hasDefault || (before.notNull && !now.notNull);
}

/** Before the table is made, and in that transaction: an earlier one of its name was another. Nothing where it is there by then. */
export function forgetKnownColumns({ names, key, table }: KnownTable): string {
  return `DELETE FROM ${names.table("table_column")} WHERE pipeline = ${literal(key.pipeline)}
             AND sink = ${literal(key.sink)} AND relation = ${literal(shownTable(table))}
             AND to_regclass(${literal(quotedTable(table))}) IS NULL`;
}

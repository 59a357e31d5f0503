/** The table of a sink: created where that is asked for, else compared with what the sink needs, difference by difference. */
import { asFailure, Failure } from "../../../core/failure/failure.ts";
import type { PgConnection } from "../client.ts";
import {
  type FoundColumn,
  type KnownColumns,
  NOTHING_KNOWN,
  type TableColumnSpec,
  type WantedColumn,
} from "./column-specs.ts";
import { growTable, type TableGrowth, tableBytes, widenAction } from "./grow.ts";
import { columnDifferences, type Difference, UnfitColumns } from "./misfit.ts";
import { literal, quoted, quotedTable, shownTable, type TableName } from "./names.ts";

/** The oldest server that is tested against has what we use: partition trees, jsonb, xid8-free upserts. */
const MIN_VERSION = 12;

/** What a server must be for any table of ours. */
export function checkServer(connection: PgConnection): void {
  const { at } = connection;
  const encoding = connection.parameter("server_encoding") ?? "unknown";
  if (encoding !== "UTF8") {
    throw new Failure("postgres.encoding", `the database is encoded in ${encoding}`, {
      at,
      hint: "Make it with ENCODING 'UTF8': another one cannot hold every text",
    });
  }
  const version = connection.parameter("server_version") ?? "0";
  if (Number.parseInt(version, 10) < MIN_VERSION) {
    throw new Failure("postgres.table_mismatch", `PostgreSQL ${version}: ${MIN_VERSION} or later is needed`, {
      at,
    });
  }
}

export interface TableHistory {
  /** A table that is there gets columns that are missing and may be null, and wider types; null: it is compared. */
  readonly growth: TableGrowth | null;
  readonly known: KnownColumns;
  /** Statements for a table that is not there when they run, before it is made and in the same transaction. */
  readonly beforeCreate: readonly string[];
}

const NO_HISTORY: TableHistory = { growth: null, known: NOTHING_KNOWN, beforeCreate: [] };

/**
 * Makes the table or proves that it fits; what each of its columns is. `unique`: columns by which rows replace each other; none:
 * rows are added. Throws postgres.missing, .not_durable, .denied or .table_mismatch, as UnfitColumns where it is the columns
 * that do not fit.
 */
export async function prepareTable(
  connection: PgConnection,
  name: TableName,
  columns: readonly WantedColumn[],
  create: boolean,
  unique: readonly string[] = [],
  history: TableHistory = NO_HISTORY,
): Promise<readonly FoundColumn[]> {
  const at = `${connection.at} ${shownTable(name)}`;
  let found = await look(connection, name, unique);
  if (found === null) {
    if (!create) {
      throw new Failure("postgres.missing", `there is no table ${shownTable(name)}`, {
        at,
        hint: `Set create = true, or run: ${createStatement(name, columns, unique)}`,
      });
    }
    // IF NOT EXISTS alone fails where two processes create it at the same moment.
    const lock = `SELECT pg_advisory_xact_lock(hashtext(${literal(`twg.create.${shownTable(name)}`)}))`;
    // No BEGIN and COMMIT: one script is one transaction, or part of the caller's, who may want to roll it back.
    const statements = [lock, ...history.beforeCreate, createStatement(name, columns, unique)];
    await connection.script(statements.join(";"));
    found = await look(connection, name, unique);
  }
  if (found !== null && (await grown(connection, name, { found, columns, unique, ...history })))
    found = await look(connection, name, unique);
  if (found === null) throw new Failure("postgres.missing", "the table was created and is not there", { at });
  const problems = differences(found, columns, unique, history);
  if (problems.length > 0) {
    const why = `${shownTable(name)} does not fit: ${problems.map((p) => p.text).join("; ")}`;
    const isSomebodys = problems.every((p) => p.undo !== null);
    const hint = isSomebodys
      ? howToUndo(name, problems)
      : await howToFit(connection, name, found, columns, history.growth);
    // Of a table whose columns are the same for all there is nothing to tell apart.
    if (isSomebodys || history === NO_HISTORY)
      throw new Failure("postgres.table_mismatch", why, { at, hint });
    throw new UnfitColumns(why, { at, hint }, history.known.size > 0);
  }
  if (found.unlogged.length > 0) {
    const which = found.unlogged.join(", ");
    throw new Failure("postgres.not_durable", `${which} is unlogged or temporary: a crash empties it`, {
      at,
      hint: `Run: ALTER TABLE ${quotedTable(name)} SET LOGGED`,
    });
  }
  if (found.lacking.length > 0) {
    const rights = found.lacking.join(", ");
    throw new Failure("postgres.denied", `the user may not ${rights} on ${shownTable(name)}`, {
      at,
      hint: found.lacking.includes(TEMPORARY)
        ? "Run: GRANT TEMPORARY ON DATABASE ... TO the user of the url; rows of an upsert stand in such a table first"
        : `Run: GRANT ${rights} ON ${quotedTable(name)} TO the user of the url`,
    });
  }
  return found.columns;
}

interface Growing extends TableHistory {
  readonly found: Found;
  readonly columns: readonly WantedColumn[];
  readonly unique: readonly string[];
}

/** Whether the table is another by now. What somebody took away is not made anew: its values are gone. */
async function grown(connection: PgConnection, name: TableName, o: Growing): Promise<boolean> {
  const { found, columns, unique, growth, known } = o;
  if (growth === null || !isTable(found)) return false;
  const there = new Set(found.columns.map((c) => c.name));
  const wanted = columns.filter((c) => there.has(c.name) || !known.has(c.name));
  const columnsNow = async () => (await look(connection, name, unique))?.columns ?? null;
  try {
    return await growTable(connection, name, found.columns, wanted, growth, columnsNow);
  } catch (e) {
    const failure = asFailure(e);
    // Those that would be added are no difference.
    const old = columns.filter((c) => there.has(c.name) || known.has(c.name));
    const problems = differences(found, old, unique, o);
    const changed = problems.length > 0 && problems.every((p) => p.undo !== null);
    if (failure.code !== "postgres.table_mismatch" || changed) throw failure;
    const { message, at, hint } = failure;
    const told = { ...(at === null ? {} : { at }), ...(hint === null ? {} : { hint }), cause: failure };
    throw new UnfitColumns(message, told, known.size > 0);
  }
}

function howToUndo(name: TableName, problems: readonly Difference[]): string {
  const actions = problems.flatMap((p) => (p.undo === null || p.undo === "" ? [] : [p.undo]));
  const how = actions.length === 0 ? "" : `: ALTER TABLE ${quotedTable(name)} ${actions.join(", ")}`;
  return `Somebody changed the table: change it back, and the sink goes on by itself; nothing went to the rejects${how}`;
}

/** For people: which types they may change themselves, and why that was not done. */
async function howToFit(
  connection: PgConnection,
  name: TableName,
  found: Found,
  columns: readonly WantedColumn[],
  growth: TableGrowth | null,
): Promise<string> {
  const byName = new Map(found.columns.map((c) => [c.name, c]));
  const actions = columns.flatMap((c) => {
    const there = byName.get(c.name);
    const widened = there === undefined ? null : widenAction(there, c, true);
    return widened === null ? [] : [widened.action];
  });
  if (actions.length === 0) return "Change the table, or name another one";
  const run = `Run: ALTER TABLE ${quotedTable(name)} ${actions.join(", ")}`;
  if (growth === null) return run;
  const bytes = await tableBytes(connection, name);
  return `${run}; that writes ${bytes} bytes anew under a lock, rewrite_max_bytes allows ${growth.rewriteMaxBytes}`;
}

export function createStatement(
  name: TableName,
  columns: readonly TableColumnSpec[],
  unique: readonly string[] = [],
): string {
  const lines = columns.map((c) => `${quoted(c.name)} ${c.type}${c.nullable ? "" : " NOT NULL"}`);
  if (unique.length > 0) lines.push(`PRIMARY KEY (${unique.map(quoted).join(", ")})`);
  return `CREATE TABLE IF NOT EXISTS ${quotedTable(name)} (${lines.join(", ")})`;
}

interface Found {
  readonly kind: string;
  /** Rights that are needed and not there. */
  readonly lacking: readonly string[];
  /** There is a unique index of just the columns that were asked for. */
  readonly isUnique: boolean;
  /** Names of the table and its partitions that a crash empties. */
  readonly unlogged: readonly string[];
  readonly columns: readonly FoundColumn[];
}

const TEMPORARY = "TEMPORARY";

async function look(
  connection: PgConnection,
  { schema, table }: TableName,
  unique: readonly string[],
): Promise<Found | null> {
  const rights = unique.length === 0 ? ["INSERT"] : ["INSERT", "SELECT", "UPDATE"];
  const { rows } = await connection.query(
    `SELECT c.oid::text, c.relkind::text, has_database_privilege(current_database(), 'TEMPORARY')::text,
            ${rights.map((r) => `has_table_privilege(c.oid, '${r}')::text`).join(", ")}
       FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname = $1 AND c.relname = $2`,
    schema,
    table,
  );
  const [oid = null, kind = "", temporary = "", ...has] = rows[0] ?? [];
  if (oid === null) return null;
  const lacking = rights.filter((_, i) => has[i] !== "true");
  if (unique.length > 0 && temporary !== "true") lacking.push(TEMPORARY);
  const [unlogged, columns, index] = await connection.pipeline([
    {
      sql: `SELECT c.oid::regclass::text FROM pg_catalog.pg_class c
             WHERE c.relpersistence <> 'p' AND (c.oid = $1::oid
                OR c.oid IN (SELECT relid FROM pg_catalog.pg_partition_tree($1::oid::regclass)))`,
      parameters: [oid],
    },
    {
      sql: `SELECT a.attname::text, pg_catalog.format_type(a.atttypid, a.atttypmod), a.attnotnull::text,
                   (a.atthasdef OR a.attidentity <> '')::text, (a.attgenerated <> '' OR a.attidentity = 'a')::text
              FROM pg_catalog.pg_attribute a
             WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`,
      parameters: [oid],
    },
    {
      // As ON CONFLICT (columns) wants it: whole, checked at once, and of no other column.
      sql: `SELECT 1 FROM pg_catalog.pg_index i
             WHERE i.indrelid = $1::oid AND i.indisunique AND i.indisvalid AND i.indimmediate
               AND i.indpred IS NULL AND i.indexprs IS NULL
               AND i.indnkeyatts = jsonb_array_length($2::jsonb)
               AND i.indnkeyatts = (SELECT count(*) FROM pg_catalog.pg_attribute a
                    WHERE a.attrelid = i.indrelid AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1])
                      AND a.attname IN (SELECT jsonb_array_elements_text($2::jsonb)))`,
      parameters: [oid, JSON.stringify(unique)],
    },
  ]);
  return {
    kind: kind ?? "",
    lacking,
    isUnique: (index?.rows.length ?? 0) > 0,
    unlogged: (unlogged?.rows ?? []).map((r) => r[0] ?? ""),
    columns: (columns?.rows ?? []).map(([name, type, notNull, hasDefault, generated]) => ({
      name: name ?? "",
      type: type ?? "",
      notNull: notNull === "true",
      hasDefault: hasDefault === "true",
      generated: generated === "true",
    })),
  };
}

function isTable({ kind }: Found): boolean {
  return kind === "r" || kind === "p";
}

const KINDS: Readonly<Record<string, string>> = {
  v: "a view",
  m: "a materialized view",
  f: "a foreign table",
};

/** Every difference that matters. What the table is besides its columns is nobody's fault but its own. */
function differences(
  there: Found,
  columns: readonly WantedColumn[],
  unique: readonly string[],
  { known, growth }: TableHistory,
): readonly Difference[] {
  const { kind, isUnique, columns: found } = there;
  if (!isTable(there)) {
    const text = `it is ${KINDS[kind] ?? `a relation of kind ${kind}`}, wanted is a table`;
    return [{ text, undo: "" }];
  }
  const lacks = unique.length > 0 && !isUnique;
  const text = `there is no unique index of just the columns ${unique.join(", ")}`;
  return [...(lacks ? [{ text, undo: "" }] : []), ...columnDifferences({ found, known, growth }, columns)];
}

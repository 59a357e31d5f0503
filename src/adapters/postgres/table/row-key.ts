/**
 * Rows once, whoever wrote them: a unique index on the record's id, which is the row key of a table whose rows are one of a
 * record each (decision 0044). Rows are copied straight into the table as without it. Only where the server says that one
 * is there already the set goes into a table of the transaction's own first, and what the table has is compared with it.
 */
import { asFailure, Failure } from "../../../core/failure/failure.ts";
import { METADATA_COLUMNS } from "../../../core/records/metadata-columns.ts";
import type { PgConnection } from "../client.ts";
import { ServerError } from "../wire/errors.ts";
import { tableBytes } from "./grow.ts";
import { literal, nameProblem, quoted, quotedTable, shownTable, type TableName } from "./names.ts";
import { STAGING } from "./upsert.ts";

/** Rows of the set that the table has already. */
const THERE = "pg_temp.twg_there";
const UNIQUE_VIOLATION = "23505";

/** Plain data: it crosses to the lane's thread. */
export interface RowKey {
  readonly column: string;
  /** Columns that say how a row came here: two rows of a record may differ in them. */
  readonly stamped: readonly string[];
}

/** `prefix`: of the metadata columns. */
export function rowKeyOf(prefix: string): RowKey {
  const stamped = METADATA_COLUMNS.filter((c) => c.provenance === "stamped" && c.name !== RECORD_ID);
  return { column: prefix + RECORD_ID, stamped: stamped.map((c) => prefix + c.name) };
}

const RECORD_ID = "record_id";

export interface RowKeyOptions {
  readonly key: RowKey;
  readonly create: boolean;
  /** Largest table that an index is built for: nobody writes it meanwhile. */
  readonly maxBytes: number;
  readonly lockTimeoutMs: number;
}

/** Whether it may be what the server says of a row that is there already. */
export function mayBeThere(e: unknown): boolean {
  return (
    e instanceof Failure && e.cause instanceof ServerError && e.cause.notice.sqlstate === UNIQUE_VIOLATION
  );
}

/** Makes the table for rows that turn out to be there. `columns`: quoted, all that rows have. */
export function makeThere(table: TableName, columns: string): string {
  return `CREATE TEMP TABLE twg_there ON COMMIT DROP AS SELECT ${columns} FROM ${quotedTable(table)} WITH NO DATA`;
}

/** Rows on their way from the staging table: those that are new go into the table, the others to where they are compared. */
export function moveNew(table: TableName, columns: string, { column }: RowKey): string {
  const key = quoted(column);
  return (
    `WITH taken AS (INSERT INTO ${quotedTable(table)} (${columns}) SELECT ${columns} FROM ${STAGING} ` +
    `ON CONFLICT (${key}) DO NOTHING RETURNING ${key}) INSERT INTO ${THERE} (${columns}) ` +
    `SELECT ${columns} FROM ${STAGING} s WHERE NOT EXISTS (SELECT FROM taken WHERE taken.${key} = s.${key})`
  );
}

/**
 * How many rows of the transaction's set the table had already. Throws postgres.row_differs where one of them is another
 * row. Compared byte for byte, since not every type has an equality.
 */
export async function rowsThere(
  connection: PgConnection,
  table: TableName,
  columns: readonly string[],
  { column, stamped }: RowKey,
): Promise<number> {
  const { rows: counted } = await connection.query(`SELECT count(*)::text FROM ${THERE}`);
  const there = Number(counted[0]?.[0] ?? 0);
  if (there === 0) return 0;
  const compared = columns.filter((c) => c !== column && !stamped.includes(c));
  const key = quoted(column);
  const row = (of: string, names: readonly string[]) =>
    `ROW(${names.map((c) => `${of}.${quoted(c)}`).join(", ")})::record`;
  const differs = (names: readonly string[]) =>
    `${row("s", names)} OPERATOR(pg_catalog.*<>) ${row("t", names)}`;
  const named = compared.map((c) => `CASE WHEN ${differs([c])} THEN ${literal(c)} END`).join(", ");
  const { rows } = await connection.query(
    `SELECT s.${key}::text, (t.${key} IS NULL)::text, array_to_string(ARRAY[${named}]::text[], ', '), count(*) OVER ()::text
       FROM ${THERE} s LEFT JOIN ${quotedTable(table)} t ON t.${key} = s.${key}
      WHERE t.${key} IS NULL OR ${differs(compared)} ORDER BY 1 LIMIT 1`,
  );
  const [id, isMissing, names, count] = rows[0] ?? [];
  if (id === undefined) return there;
  const at = `${connection.at} ${shownTable(table)}`;
  if (isMissing === "true")
    throw new Failure("postgres.table_mismatch", `the table neither took nor has ${count} rows`, {
      at,
      hint: "A trigger or a rule of the table leaves rows out: the raw lane keeps every record",
    });
  throw new Failure(
    "postgres.row_differs",
    `${count} of ${there} rows that are there already have the key of a record and other values; the first is ${id}, in ${names}`,
    {
      at,
      hint: `Who wrote it? Look with: SELECT * FROM ${quotedTable(table)} WHERE ${key} = ${literal(id ?? "")}; once it is deleted, ours lands`,
    },
  );
}

/** Proves the index of the row key, or builds it. Throws postgres.table_mismatch and postgres.denied. */
export async function prepareRowKey(
  connection: PgConnection,
  table: TableName,
  { key, create, maxBytes, lockTimeoutMs }: RowKeyOptions,
): Promise<void> {
  const at = `${connection.at} ${shownTable(table)}`;
  await checkRights(connection, table, at);
  if (await hasIndex(connection, table, key.column)) return;
  const build = (name: string) =>
    `CREATE UNIQUE INDEX ${name} ON ${quotedTable(table)} (${quoted(key.column)})`;
  const lacking = `${shownTable(table)} has no unique index of just the column ${key.column}, as row_key wants it`;
  const bytes = await tableBytes(connection, table);
  if (!create || bytes > maxBytes) {
    const how = create ? `; it has ${bytes} bytes, rewrite_max_bytes allows ${maxBytes}` : "";
    throw new Failure("postgres.table_mismatch", lacking, {
      at,
      hint: `Run, which keeps nobody from writing: ${build("CONCURRENTLY")}${how}`,
    });
  }
  await refuseWithoutKey(connection, table, key.column, at);
  try {
    // One script is one transaction, or part of the caller's, who may want to roll it back.
    const lock = `SELECT pg_advisory_xact_lock(hashtext(${literal(`twg.create.${shownTable(table)}`)}))`;
    const timeout = `SET LOCAL lock_timeout = ${Math.round(lockTimeoutMs)}`;
    await connection.script([timeout, lock, build(`IF NOT EXISTS ${indexName(table)}`)].join(";"));
  } catch (e) {
    const failure = asFailure(e);
    const isTwice = mayBeThere(failure);
    if (!isTwice && failure.code !== "postgres.refused") throw failure;
    const twice = `SELECT ${quoted(key.column)}, count(*) FROM ${quotedTable(table)} GROUP BY 1 HAVING count(*) > 1`;
    throw new Failure("postgres.table_mismatch", `${lacking}, and it cannot be built: ${failure.message}`, {
      at,
      hint: isTwice ? `Rows are in it twice already: ${twice}` : "Name a table of its own",
      cause: failure,
    });
  }
  if (await hasIndex(connection, table, key.column)) return;
  throw new Failure("postgres.table_mismatch", lacking, {
    at,
    hint: `Another index has the name that it would get. Run: ${build("CONCURRENTLY")}`,
  });
}

/** As ON CONFLICT (column) wants it: whole, checked at once, and of no other column. */
async function hasIndex(connection: PgConnection, table: TableName, column: string): Promise<boolean> {
  const { rows } = await connection.query(
    `SELECT FROM pg_catalog.pg_index i
       JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
      WHERE i.indrelid = $1::pg_catalog.regclass AND a.attname = $2 AND i.indnkeyatts = 1
        AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL`,
    quotedTable(table),
    column,
  );
  return rows.length > 0;
}

/** Rows from before the table had the column could be there a second time, and nobody would know. */
async function refuseWithoutKey(
  connection: PgConnection,
  table: TableName,
  column: string,
  at: string,
): Promise<void> {
  const { rows } = await connection.query(
    `SELECT FROM ${quotedTable(table)} WHERE ${quoted(column)} IS NULL LIMIT 1`,
  );
  if (rows.length === 0) return;
  throw new Failure("postgres.table_mismatch", `${shownTable(table)} has rows without ${column}`, {
    at,
    hint: "Rows that landed before row_key was set could come twice. Name another table, which recovery fills from raw, or delete them and what is known of the sink",
  });
}

async function checkRights(connection: PgConnection, table: TableName, at: string): Promise<void> {
  const { rows } = await connection.query(
    `SELECT has_table_privilege($1::pg_catalog.regclass, 'SELECT')::text,
            has_database_privilege(current_database(), 'TEMPORARY')::text`,
    quotedTable(table),
  );
  const [select, temporary] = rows[0] ?? [];
  if (select === "true" && temporary === "true") return;
  const right = select === "true" ? "TEMPORARY" : "SELECT";
  const on = select === "true" ? "DATABASE ..." : quotedTable(table);
  throw new Failure("postgres.denied", `the user lacks ${right}, which row_key needs`, {
    at,
    hint: `Run: GRANT ${right} ON ${on} TO the user of the url; a row that is there already is compared`,
  });
}

/** A name for IF NOT EXISTS; where the table's is too long for one, the server finds one itself. */
function indexName({ table }: TableName): string {
  const name = `${table}_row_key`;
  return nameProblem(name) === null ? quoted(name) : quoted(`${[...table].slice(0, 12).join("")}_row_key`);
}

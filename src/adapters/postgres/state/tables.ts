/**
 * The tables of coverage beside a Postgres sink. They are persisted state: `FORMAT` grows with every change of their
 * shape, and test/golden/state holds each released one.
 *
 *   owner     processes that have a sink open        stream    generation of each stream: its row is locked by every commit
 *   coverage  [first, next) -> durable in the sink   lost      ranges that will never be there, with the reason
 *   topic     incarnations                           lease     recovery windows
 *   reject    rows that were refused, with the reason, durable with the set that they were in
 *   receipt   the newest committed set of each writer: settles a COMMIT whose answer was lost; and what recovery brought
 *   raw_index rows and bytes of each stretch of a stream in a raw table, of which recovery fills other sinks
 *   table_column columns of a table of decoded rows as they were when it last fitted: tells a table that was changed from a
 *             schema that never went into it
 */
import { Failure } from "../../../core/failure/failure.ts";
import type { PgConnection } from "../client.ts";
import { literal, quoted } from "../table/names.ts";

export const FORMAT = 1;

/** Names of the state tables, quoted. */
export interface StateNames {
  readonly schema: string;
  table(name: StateTable): string;
}

export const STATE_TABLES = [
  "format",
  "owner",
  "stream",
  "coverage",
  "lost",
  "topic",
  "lease",
  "receipt",
  "reject",
  "raw_index",
  "table_column",
] as const;

export type StateTable = (typeof STATE_TABLES)[number];

export function stateNames(schema: string): StateNames {
  return { schema, table: (name) => `${quoted(schema)}.${quoted(name)}` };
}

/** One sink of one pipeline: the first columns of every key. */
export interface SinkKey {
  readonly pipeline: string;
  readonly sink: string;
}

const SINK = "pipeline text NOT NULL, sink text NOT NULL";

export function stateDdl({ schema, table }: StateNames): readonly string[] {
  const made = (name: StateTable, columns: string) =>
    `CREATE TABLE IF NOT EXISTS ${table(name)} (${columns})`;
  return [
    `CREATE SCHEMA IF NOT EXISTS ${quoted(schema)}`,
    made("format", "version integer NOT NULL"),
    `INSERT INTO ${table("format")} SELECT ${FORMAT} WHERE NOT EXISTS (SELECT FROM ${table("format")})`,
    made(
      "owner",
      `${SINK}, instance text NOT NULL, host jsonb NOT NULL, since bigint NOT NULL, beat bigint NOT NULL,
       PRIMARY KEY (pipeline, sink, instance)`,
    ),
    made(
      "stream",
      `${SINK}, stream text NOT NULL, generation bigint NOT NULL, group_epoch bigint, owner text, origin bigint, stale_commit bigint,
       rows bigint NOT NULL DEFAULT 0, bytes bigint NOT NULL DEFAULT 0, PRIMARY KEY (pipeline, sink, stream)`,
    ),
    made(
      "coverage",
      `${SINK}, stream text NOT NULL, first bigint NOT NULL, next bigint NOT NULL,
       PRIMARY KEY (pipeline, sink, stream, first), CHECK (first < next)`,
    ),
    made(
      "lost",
      `${SINK}, stream text NOT NULL, first bigint NOT NULL, next bigint NOT NULL, reason text NOT NULL,
       PRIMARY KEY (pipeline, sink, stream, reason, first), CHECK (first < next)`,
    ),
    made(
      "topic",
      `${SINK}, name text NOT NULL, topic_id text NOT NULL, incarnation integer NOT NULL,
       PRIMARY KEY (pipeline, sink, name)`,
    ),
    made(
      "lease",
      `${SINK}, name text NOT NULL, lease bigint NOT NULL, owner text NOT NULL,
       PRIMARY KEY (pipeline, sink, name)`,
    ),
    made(
      "reject",
      `${SINK}, set_id text NOT NULL, line text NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp()`,
    ),
    made(
      "receipt",
      `${SINK}, writer text NOT NULL, set_id text NOT NULL, rows bigint NOT NULL, bytes bigint NOT NULL,
       committed_at timestamptz NOT NULL DEFAULT clock_timestamp(), PRIMARY KEY (pipeline, sink, writer)`,
    ),
    ...ADDED.map((name) => addedDdl({ schema, table }, name)),
  ];
}

/** Versions before did not make them: a state of theirs gets them with the next start. */
const ADDED = ["raw_index", "table_column"] as const;

const ADDED_COLUMNS: Readonly<Record<(typeof ADDED)[number], string>> = {
  raw_index: `stream text NOT NULL, first bigint NOT NULL, next bigint NOT NULL,
       rows bigint NOT NULL, bytes bigint NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp(),
       PRIMARY KEY (pipeline, sink, stream, first), CHECK (first < next)`,
  table_column: `relation text NOT NULL, name text NOT NULL, type text NOT NULL, not_null boolean NOT NULL,
       has_default boolean NOT NULL, PRIMARY KEY (pipeline, sink, relation, name)`,
};

function addedDdl({ table }: StateNames, name: (typeof ADDED)[number]): string {
  return `CREATE TABLE IF NOT EXISTS ${table(name)} (${SINK}, ${ADDED_COLUMNS[name]})`;
}

/** "there", or null where nothing was made yet. Throws coverage.newer_version, coverage.corrupt, postgres.not_durable. */
export async function lookAtState(connection: PgConnection, names: StateNames): Promise<"there" | null> {
  const at = `${connection.at} schema ${names.schema}`;
  const { rows } = await connection.query("SELECT to_regclass($1)::text", names.table("format"));
  if (rows[0]?.[0] === null) return null;
  const found = await connection.query(`SELECT version::text FROM ${names.table("format")}`);
  const version = Number(found.rows[0]?.[0]);
  if (found.rows.length !== 1 || !Number.isInteger(version) || version < 1) {
    throw new Failure("coverage.corrupt", `table format holds ${found.rows.length} rows`, {
      at,
      hint: "One row with the version of the state's format is expected",
    });
  }
  if (version > FORMAT) {
    throw new Failure("coverage.newer_version", `format ${version}, known is ${FORMAT}`, { at });
  }
  const unlogged = await connection.query(
    `SELECT c.relname::text FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname = $1 AND c.relkind = 'r' AND c.relpersistence <> 'p'`,
    names.schema,
  );
  if (unlogged.rows.length > 0) {
    throw new Failure("postgres.not_durable", `${unlogged.rows.map((r) => r[0]).join(", ")} is unlogged`, {
      at,
      hint: "A crash would empty what is known of the sink: ALTER TABLE ... SET LOGGED",
    });
  }
  return "there";
}

/** Makes what is missing. Two processes at once do not disturb each other. */
export async function makeState(connection: PgConnection, names: StateNames): Promise<void> {
  const isThere = (await lookAtState(connection, names)) !== null;
  const missing = isThere ? await lacking(connection, names) : stateDdl(names);
  if (missing.length === 0) return;
  const lock = `SELECT pg_advisory_xact_lock(hashtext(${literal(`twg.state.${names.schema}`)}))`;
  await connection.script(["BEGIN", lock, ...missing, "COMMIT"].join(";\n"));
  await lookAtState(connection, names);
}

async function lacking(connection: PgConnection, names: StateNames): Promise<readonly string[]> {
  const { rows } = await connection.query(
    `SELECT ${ADDED.map((name) => `to_regclass(${literal(names.table(name))})::text`).join(", ")}`,
  );
  return ADDED.filter((_, i) => (rows[0]?.[i] ?? null) === null).map((name) => addedDdl(names, name));
}

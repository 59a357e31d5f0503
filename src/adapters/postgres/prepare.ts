/** Proves at the start that the sink can be written: the server is up, and the table is there and fits. */
import { asFailure, Failure } from "../../core/failure/failure.ts";
import { sleep } from "../../core/time/clock.ts";
import type { ColumnField } from "../../core/types/table-batch.ts";
import { type ClientParts, PgConnection } from "./client.ts";
import type { TargetColumn } from "./copy/table-rows.ts";
import type { PostgresSettings } from "./settings.ts";
import {
  forgetKnownColumns,
  type KnownTable,
  keepKnownColumns,
  readKnownColumns,
} from "./state/known-columns.ts";
import { REJECT_COLUMNS } from "./state/rejects.ts";
import { type SinkKey, stateNames } from "./state/tables.ts";
import { type FoundColumn, NOTHING_KNOWN, type WantedColumn } from "./table/column-specs.ts";
import { columnType, takes } from "./table/column-types.ts";
import type { TableGrowth } from "./table/grow.ts";
import { quotedTable, shownTable, type TableName } from "./table/names.ts";
import { rawColumns, rawKey } from "./table/raw-columns.ts";
import { prepareRowKey, type RowKeyOptions } from "./table/row-key.ts";
import { checkServer, prepareTable, type TableHistory } from "./table/table.ts";

const PAUSE_MS = 250;

export interface Prepared {
  readonly settings: PostgresSettings;
  readonly table: TableName;
  readonly create: boolean;
  /** Table of refused rows; null: the one beside the coverage, which is made with it. */
  readonly rejects: TableName | null;
  /** Where the coverage of the sink lies. */
  readonly stateSchema: string;
  readonly key: SinkKey;
  /** How a table of decoded rows that is there becomes a larger one; absent: it does not. */
  readonly growth?: TableGrowth | null;
  /** Rows are there once by this; absent: nobody looks. */
  readonly rowKey?: RowKeyOptions | null;
  /** What the table's columns are is kept, and a table that was changed told from columns that never fitted it. */
  readonly remembers?: boolean;
}

/** For raw records. */
export async function prepareSink(
  o: Prepared & { readonly prefix: string; readonly upsert: boolean },
  parts: ClientParts,
): Promise<void> {
  await prepared(o, rawColumns(o.prefix, o.upsert), o.upsert ? rawKey(o.prefix) : [], parts);
}

/** An index takes entries of a third of its page, 2,704 bytes; all columns of a key share it. */
const MAX_KEY_BYTES = 2400;

/** For decoded rows: the table's column for each field. `unique`: columns by which rows replace each other; none: they are added. */
export async function prepareFields(
  o: Prepared & { readonly unique: readonly string[] },
  fields: readonly ColumnField[],
  parts: ClientParts,
): Promise<readonly TargetColumn[]> {
  const inKey = (name: string) => o.unique.includes(name);
  const columns = fields.map(({ name, type, nullable }) => ({
    name,
    type: columnType(type),
    nullable: nullable && !inKey(name),
    takes: (found: string) => takes(found, type),
    nullsRefused: true as const,
  }));
  const found = new Map((await prepared(o, columns, o.unique, parts)).map((c) => [c.name, c]));
  return fields.map((f) => {
    const { type = columnType(f.type), notNull = false } = found.get(f.name) ?? {};
    const maxBytes = inKey(f.name) ? Math.floor(MAX_KEY_BYTES / o.unique.length) : null;
    return { type, notNull: notNull || inKey(f.name), maxBytes };
  });
}

/** A server that is not up yet is waited for as long as a connection may take; what will not pass is told at once. */
async function prepared(
  o: Prepared,
  columns: readonly WantedColumn[],
  unique: readonly string[],
  parts: ClientParts,
): Promise<readonly FoundColumn[]> {
  const until = parts.clock.monotonic() + o.settings.connectTimeoutMs;
  for (;;) {
    try {
      return await once(o, columns, unique, parts);
    } catch (e) {
      const failure = asFailure(e);
      // Whoever waits for a lock on the table keeps all others waiting: it is asked for again later.
      if (failure.code === "postgres.conflict" && (o.growth ?? null) !== null) throw failure;
      if (!failure.retry || parts.clock.monotonic() + PAUSE_MS >= until) throw failure;
      await sleep(parts.clock, PAUSE_MS);
    }
  }
}

async function once(
  o: Prepared,
  columns: readonly WantedColumn[],
  unique: readonly string[],
  parts: ClientParts,
): Promise<readonly FoundColumn[]> {
  const { settings, table, create, rejects } = o;
  const connection = await PgConnection.open(settings, parts);
  try {
    checkServer(connection);
    await refuseLost(connection, o);
    if (rejects !== null) await prepareTable(connection, rejects, REJECT_COLUMNS, create);
    const history = await historyOf(connection, o);
    const found = await prepareTable(connection, table, columns, create, unique, history);
    if ((o.rowKey ?? null) !== null) await prepareRowKey(connection, table, o.rowKey!);
    if (o.remembers !== true) return found;
    const known = await keepKnownColumns(connection, knownTable(o), found);
    // A column that took nulls is written as one that does, and the server says of what it refuses whether it is a few rows.
    return found.map((c) => (known.get(c.name)?.notNull === false ? { ...c, notNull: false } : c));
  } finally {
    connection.close();
  }
}

async function historyOf(connection: PgConnection, o: Prepared): Promise<TableHistory> {
  const growth = o.growth ?? null;
  if (o.remembers !== true) return { growth, known: NOTHING_KNOWN, beforeCreate: [] };
  const known = await readKnownColumns(connection, knownTable(o));
  return { growth, known, beforeCreate: [forgetKnownColumns(knownTable(o))] };
}

const knownTable = ({ stateSchema, key, table }: Prepared): KnownTable => ({
  names: stateNames(stateSchema),
  key,
  table,
});

/** A table that is gone, and whose rows count as landed, must not be made anew as if nothing were missing. */
async function refuseLost(
  connection: PgConnection,
  { table, create, stateSchema, key }: Prepared,
): Promise<void> {
  if (!create) return;
  const coverage = stateNames(stateSchema).table("coverage");
  const looked = await connection.query(
    "SELECT to_regclass($1)::text, to_regclass($2)::text",
    quotedTable(table),
    coverage,
  );
  const [there = null, state = null] = looked.rows[0] ?? [];
  if (there !== null || state === null) return;
  const { rows } = await connection.query(
    `SELECT FROM ${coverage} WHERE pipeline = $1 AND sink = $2 LIMIT 1`,
    key.pipeline,
    key.sink,
  );
  if (rows.length === 0) return;
  const name = shownTable(table);
  const whose = `pipeline ${key.pipeline}, sink ${key.sink}`;
  throw new Failure(
    "postgres.missing",
    `the table ${name} is gone, and rows of it count as landed (${whose})`,
    {
      at: `${connection.at} ${name}`,
      hint: `Bring the table back; or, to land everything again, delete what is known of the sink in the schema ${stateSchema}, or name another sink`,
    },
  );
}

/** Proves at the start that the sink can be written: the server is up, and the table is there and fits. */
import { asFailure } from "../../core/failure/failure.ts";
import { sleep } from "../../core/time/clock.ts";
import type { ColumnField } from "../../core/types/table-batch.ts";
import { type ClientParts, PgConnection } from "./client.ts";
import type { TargetColumn } from "./copy/table-rows.ts";
import type { PostgresSettings } from "./settings.ts";
import { REJECT_COLUMNS } from "./state/rejects.ts";
import { columnType, takes } from "./table/column-types.ts";
import type { TableName } from "./table/names.ts";
import { rawColumns, rawKey } from "./table/raw-columns.ts";
import { checkServer, type FoundColumn, prepareTable, type WantedColumn } from "./table/table.ts";

const PAUSE_MS = 250;

export interface Prepared {
  readonly settings: PostgresSettings;
  readonly table: TableName;
  readonly create: boolean;
  /** Table of refused rows; null: the one beside the coverage, which is made with it. */
  readonly rejects: TableName | null;
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

/** For decoded rows: the table's column for each field. `key`: columns by which rows replace each other; none: they are added. */
export async function prepareFields(
  o: Prepared & { readonly key: readonly string[] },
  fields: readonly ColumnField[],
  parts: ClientParts,
): Promise<readonly TargetColumn[]> {
  const inKey = (name: string) => o.key.includes(name);
  const columns = fields.map(({ name, type, nullable }) => ({
    name,
    type: columnType(type),
    nullable: nullable && !inKey(name),
    takes: (found: string) => takes(found, type),
    nullsRefused: true as const,
  }));
  const found = new Map((await prepared(o, columns, o.key, parts)).map((c) => [c.name, c]));
  return fields.map((f) => {
    const { type = columnType(f.type), notNull = false } = found.get(f.name) ?? {};
    const maxBytes = inKey(f.name) ? Math.floor(MAX_KEY_BYTES / o.key.length) : null;
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
      if (!failure.retry || parts.clock.monotonic() + PAUSE_MS >= until) throw failure;
      await sleep(parts.clock, PAUSE_MS);
    }
  }
}

async function once(
  { settings, table, create, rejects }: Prepared,
  columns: readonly WantedColumn[],
  unique: readonly string[],
  parts: ClientParts,
): Promise<readonly FoundColumn[]> {
  const connection = await PgConnection.open(settings, parts);
  try {
    checkServer(connection);
    if (rejects !== null) await prepareTable(connection, rejects, REJECT_COLUMNS, create);
    return await prepareTable(connection, table, columns, create, unique);
  } finally {
    connection.close();
  }
}

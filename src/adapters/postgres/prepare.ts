/** Proves at the start that the sink can be written: the server is up, and the table is there and fits. */
import { asFailure } from "../../core/failure/failure.ts";
import { sleep } from "../../core/time/clock.ts";
import type { ColumnField } from "../../core/types/table-batch.ts";
import { type ClientParts, PgConnection } from "./client.ts";
import type { TargetColumn } from "./copy/table-rows.ts";
import type { PostgresSettings } from "./settings.ts";
import { columnType, takes } from "./table/column-types.ts";
import type { TableName } from "./table/names.ts";
import { rawColumns } from "./table/raw-columns.ts";
import { checkServer, type FoundColumn, prepareTable, type WantedColumn } from "./table/table.ts";

const PAUSE_MS = 250;

export interface Prepared {
  readonly settings: PostgresSettings;
  readonly table: TableName;
  readonly create: boolean;
}

/** For raw records. */
export async function prepareSink(
  o: Prepared & { readonly prefix: string },
  parts: ClientParts,
): Promise<void> {
  await prepared(o, rawColumns(o.prefix), parts);
}

/** For decoded rows: the table's column for each field. */
export async function prepareFields(
  o: Prepared,
  fields: readonly ColumnField[],
  parts: ClientParts,
): Promise<readonly TargetColumn[]> {
  const columns = fields.map(({ name, type, nullable }) => ({
    name,
    type: columnType(type),
    nullable,
    takes: (found: string) => takes(found, type),
    nullsRefused: true as const,
  }));
  const found = new Map((await prepared(o, columns, parts)).map((c) => [c.name, c]));
  return fields.map((f) => {
    const { type = columnType(f.type), notNull = false } = found.get(f.name) ?? {};
    return { type, notNull };
  });
}

/** A server that is not up yet is waited for as long as a connection may take; what will not pass is told at once. */
async function prepared(
  o: Prepared,
  columns: readonly WantedColumn[],
  parts: ClientParts,
): Promise<readonly FoundColumn[]> {
  const until = parts.clock.monotonic() + o.settings.connectTimeoutMs;
  for (;;) {
    try {
      return await once(o, columns, parts);
    } catch (e) {
      const failure = asFailure(e);
      if (!failure.retry || parts.clock.monotonic() + PAUSE_MS >= until) throw failure;
      await sleep(parts.clock, PAUSE_MS);
    }
  }
}

async function once(
  { settings, table, create }: Prepared,
  columns: readonly WantedColumn[],
  parts: ClientParts,
): Promise<readonly FoundColumn[]> {
  const connection = await PgConnection.open(settings, parts);
  try {
    checkServer(connection);
    return await prepareTable(connection, table, columns, create);
  } finally {
    connection.close();
  }
}

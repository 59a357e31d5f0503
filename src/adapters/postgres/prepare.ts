/** Proves at the start that the sink can be written: the server is up, and the table is there and fits. */
import { asFailure } from "../../core/failure/failure.ts";
import { sleep } from "../../core/time/clock.ts";
import { type ClientParts, PgConnection } from "./client.ts";
import type { PostgresSettings } from "./settings.ts";
import type { TableName } from "./table/names.ts";
import { rawColumns } from "./table/raw-columns.ts";
import { checkServer, prepareTable } from "./table/table.ts";

const PAUSE_MS = 250;

export interface Prepared {
  readonly settings: PostgresSettings;
  readonly table: TableName;
  readonly prefix: string;
  readonly create: boolean;
}

/** A server that is not up yet is waited for as long as a connection may take; what will not pass is told at once. */
export async function prepareSink(o: Prepared, parts: ClientParts): Promise<void> {
  const until = parts.clock.monotonic() + o.settings.connectTimeoutMs;
  for (;;) {
    try {
      return await once(o, parts);
    } catch (e) {
      const failure = asFailure(e);
      if (!failure.retry || parts.clock.monotonic() + PAUSE_MS >= until) throw failure;
      await sleep(parts.clock, PAUSE_MS);
    }
  }
}

async function once({ settings, table, prefix, create }: Prepared, parts: ClientParts): Promise<void> {
  const connection = await PgConnection.open(settings, parts);
  try {
    checkServer(connection);
    await prepareTable(connection, table, rawColumns(prefix), create);
  } finally {
    connection.close();
  }
}

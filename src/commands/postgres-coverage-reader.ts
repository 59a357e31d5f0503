/** Reads the coverage of a Postgres sink from its database, without taking the sink: a running pipeline goes on. */
import { PgConnection } from "../adapters/postgres/client.ts";
import { readState } from "../adapters/postgres/state/streams.ts";
import { lookAtState, stateNames } from "../adapters/postgres/state/tables.ts";
import { readLeases } from "../adapters/postgres/state/windows.ts";
import type { CoverageState } from "../core/coverage/state.ts";
import type { ResolvedConfig } from "./config-file.ts";
import { postgresClientParts, settingsOf } from "./postgres-parts.ts";

export interface DatabaseCoverage {
  readonly place: string;
  readonly state: CoverageState;
}

/** Null if nothing was ever covered there, or the configuration's sink is another. */
export async function readPostgresCoverage(
  config: ResolvedConfig,
  name: string,
): Promise<DatabaseCoverage | null> {
  const { pipeline, sinks } = config;
  const sink = sinks.find((s) => s.name === name);
  if (sink?.type !== "postgres") return null;
  const connection = await PgConnection.open(settingsOf(config, sink), postgresClientParts);
  try {
    const names = stateNames(sink.state_schema);
    if ((await lookAtState(connection, names)) === null) return null;
    await connection.script("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    const key = { pipeline: pipeline.name, sink: sink.name };
    const leases = await readLeases(connection, names, key);
    const state = { ...(await readState(connection, names, key)), leases };
    await connection.script("COMMIT");
    const place = `${connection.at} schema ${sink.state_schema}, sink ${sink.name} of ${pipeline.name}`;
    return state.streams.size === 0 ? null : { place, state };
  } finally {
    connection.close();
  }
}

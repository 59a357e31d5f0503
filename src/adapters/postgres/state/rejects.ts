/**
 * The table of refused rows: a line of text each, in the transaction of the set that they were in. `twg.reject` unless
 * the configuration names another.
 */
import { asFailure, type Failure } from "../../../core/failure/failure.ts";
import type { PgConnection } from "../client.ts";
import type { WantedColumn } from "../table/column-specs.ts";
import type { SinkKey } from "./tables.ts";

/** Bytes of lines that go out in one statement. */
const CHUNK_BYTES = 4 * 1024 * 1024;

export const REJECT_COLUMNS: readonly WantedColumn[] = [
  { name: "pipeline", type: "text", nullable: false, nullsRefused: true },
  { name: "sink", type: "text", nullable: false, nullsRefused: true },
  { name: "set_id", type: "text", nullable: false, nullsRefused: true },
  { name: "line", type: "text", nullable: false, nullsRefused: true },
  { name: "at", type: "timestamp with time zone", nullable: false, nullsRefused: true },
];

/**
 * Within the set's transaction: null when they are in it. `mayFail`: a table that does not take them is told, and the
 * transaction goes on without them; what ends the connection is thrown all the same. `table`: quoted.
 */
export async function rejectsKept(
  connection: PgConnection,
  table: string,
  key: SinkKey,
  setId: string,
  lines: readonly string[],
  mayFail: boolean,
): Promise<Failure | null> {
  if (!mayFail) {
    await insertRejects(connection, table, key, setId, lines);
    return null;
  }
  await connection.script("SAVEPOINT twg_rejects");
  try {
    await insertRejects(connection, table, key, setId, lines);
    return null;
  } catch (e) {
    const failure = asFailure(e);
    if (connection.failure !== null) throw failure;
    await connection.script("ROLLBACK TO SAVEPOINT twg_rejects");
    return failure;
  }
}

async function insertRejects(
  connection: PgConnection,
  table: string,
  { pipeline, sink }: SinkKey,
  setId: string,
  lines: readonly string[],
): Promise<void> {
  for (const chunk of chunksOf(lines, CHUNK_BYTES)) {
    await connection.query(
      `INSERT INTO ${table} (pipeline, sink, set_id, line, at)
       SELECT $1, $2, $3, l, clock_timestamp() FROM jsonb_array_elements_text($4::jsonb) l`,
      pipeline,
      sink,
      setId,
      JSON.stringify(chunk),
    );
  }
}

function* chunksOf(lines: readonly string[], bytes: number): Generator<string[]> {
  let chunk: string[] = [];
  let held = 0;
  for (const line of lines) {
    chunk.push(line);
    held += line.length;
    if (held < bytes) continue;
    yield chunk;
    chunk = [];
    held = 0;
  }
  if (chunk.length > 0) yield chunk;
}

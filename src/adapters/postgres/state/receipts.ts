/**
 * Receipts of writers that are gone, and how much recovery brought, which stands beside them: rows of streams, where live
 * ingest counts, are not changed under leases, since commits would wait for each other there.
 *
 *   <writer>              its newest set
 *   <writer> recovered    all that it committed under leases
 *   " recovered"          the same of writers that are gone
 */
import type { PgConnection } from "../client.ts";
import type { Statement } from "../wire/frontend.ts";
import type { SinkKey, StateNames } from "./tables.ts";

/** No name of a writer has a space. */
const RECOVERED = " recovered";

interface Sizes {
  readonly rows: number;
  readonly bytes: number;
}

interface Committed {
  readonly writer: string;
  readonly byStream: ReadonlyMap<string, Sizes>;
}

const added = "SET rows = r.rows + excluded.rows, bytes = r.bytes + excluded.bytes";

/** Within the transaction of the set. No other transaction has the writer's row. */
export function addRecovered(
  names: StateNames,
  { pipeline, sink }: SinkKey,
  { writer, byStream }: Committed,
): Statement {
  const sum = (of: (s: Sizes) => number) => String([...byStream.values()].reduce((n, s) => n + of(s), 0));
  return {
    sql: `INSERT INTO ${names.table("receipt")} AS r (pipeline, sink, writer, set_id, rows, bytes)
          VALUES ($1, $2, $3, '', $4::bigint, $5::bigint) ON CONFLICT (pipeline, sink, writer) DO UPDATE ${added}`,
    parameters: [pipeline, sink, writer + RECOVERED, sum((s) => s.rows), sum((s) => s.bytes)],
  };
}

/**
 * Removes the receipts of the owners in $3, a list as JSON: nobody asks for them any more, since what they committed is covered
 * and they commit nothing more; what recovery brought by them stays counted. Lanes of recovery are named by what follows the
 * mark in the name of its instance. After the owners' windows have ended: who commits locks those first.
 */
export function receiptsEnd(names: StateNames): string {
  const receipt = names.table("receipt");
  return `WITH ended AS (
            DELETE FROM ${receipt} r USING jsonb_array_elements_text($3::jsonb) i
             WHERE pipeline = $1 AND sink = $2 AND starts_with(r.writer, regexp_replace(i, '^recovery-', ''))
            RETURNING r.writer, r.rows, r.bytes)
          INSERT INTO ${receipt} AS r (pipeline, sink, writer, set_id, rows, bytes)
          SELECT $1, $2, '${RECOVERED}', '', sum(rows)::bigint, sum(bytes)::bigint FROM ended
           WHERE right(writer, ${RECOVERED.length}) = '${RECOVERED}' HAVING count(*) > 0
          ON CONFLICT (pipeline, sink, writer) DO UPDATE ${added}`;
}

/** All that recovery brought. */
export async function readRecovered(
  connection: PgConnection,
  names: StateNames,
  { pipeline, sink }: SinkKey,
): Promise<Sizes> {
  const { rows } = await connection.query(
    `SELECT coalesce(sum(rows), 0)::text, coalesce(sum(bytes), 0)::text FROM ${names.table("receipt")}
      WHERE pipeline = $1 AND sink = $2 AND right(writer, ${RECOVERED.length}) = '${RECOVERED}'`,
    pipeline,
    sink,
  );
  const [found, bytes] = rows[0] ?? [];
  return { rows: Number(found), bytes: Number(bytes) };
}

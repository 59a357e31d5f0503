/**
 * Which processes have a sink open, in rows of the table `owner`. Every change of coverage proves that ours is there.
 *
 * Whatever a transaction locks, it locks in this order, so that no two wait for each other: the sink, rows of owners (ours,
 * then those of others by name), the gate (gate.ts), rows of streams by name, leases, ranges, receipts.
 */
import { ownerText } from "../../../core/coverage/changes.ts";
import type { Owner } from "../../../core/coverage/state.ts";
import { Failure } from "../../../core/failure/failure.ts";
import type { PgConnection } from "../client.ts";
import type { SinkKey, StateNames } from "./tables.ts";

export async function readOwners(
  connection: PgConnection,
  names: StateNames,
  key: SinkKey,
): Promise<Owner[]> {
  const { rows } = await connection.query(
    `SELECT instance, host::text, since::text, beat::text FROM ${names.table("owner")}
      WHERE pipeline = $1 AND sink = $2 ORDER BY instance`,
    key.pipeline,
    key.sink,
  );
  return rows.map(([instance, host, since, beat]) => ({
    instance: instance ?? "",
    host: { hostname: "", pid: 0, bootId: "", pidNamespace: "", startTime: "", ...JSON.parse(host ?? "{}") },
    since: Number(since),
    beat: Number(beat),
  }));
}

/** Nobody of these writes or leaves until the transaction ends. Within a transaction that has the sink's lock. */
export async function lockOwners(
  connection: PgConnection,
  names: StateNames,
  { pipeline, sink }: SinkKey,
  instances: readonly string[],
): Promise<void> {
  if (instances.length === 0) return;
  await connection.query(
    `SELECT FROM ${names.table("owner")} WHERE pipeline = $1 AND sink = $2
        AND instance IN (SELECT jsonb_array_elements_text($3::jsonb)) ORDER BY instance FOR UPDATE`,
    pipeline,
    sink,
    JSON.stringify(instances),
  );
}

/** Serialises all who enter, leave or write as an owner of this sink. Within a transaction. */
export async function lockSink(connection: PgConnection, key: SinkKey): Promise<void> {
  await connection.query(
    "SELECT pg_advisory_xact_lock(hashtext('twg.owner'), hashtext($1))",
    `${key.pipeline}/${key.sink}`,
  );
}

/** Raises our beat and proves that the sink is still ours. Throws coverage.fenced. Within a transaction. */
export async function requireOwner(
  connection: PgConnection,
  names: StateNames,
  key: SinkKey,
  instance: string,
): Promise<void> {
  const { tag } = await connection.query(
    `UPDATE ${names.table("owner")} SET beat = beat + 1 WHERE pipeline = $1 AND sink = $2 AND instance = $3`,
    key.pipeline,
    key.sink,
    instance,
  );
  if (tag === "UPDATE 1") return;
  const by = (await readOwners(connection, names, key)).map(ownerText).join("; ");
  throw new Failure(
    "coverage.fenced",
    `another process took over${by === "" ? " and left again" : `: ${by}`}`,
    {
      at: connection.at,
      hint: "Was this process stopped or cut off for longer than the lease? What it had not covered is read again by its successor",
    },
  );
}

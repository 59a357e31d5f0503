/**
 * The gate of a sink: commits under leases pass it beside each other, and whoever has to see none of them under way (a claim,
 * and who takes others out) closes it, until its transaction ends.
 *
 * Rows of streams alone would keep them apart as well. But such commits share a row, and who wants a row for itself waits
 * for as long as others come to share it, which with many recoveries is for ever. Locks of the gate are given in the
 * order in which they were asked for.
 */
import type { Statement } from "../wire/frontend.ts";
import type { SinkKey } from "./tables.ts";

/** Beside others that pass. */
export const passGate = (key: SinkKey): Statement => gate("pg_advisory_xact_lock_shared", key);

/** Once all that passed have ended. */
export const closeGate = (key: SinkKey): Statement => gate("pg_advisory_xact_lock", key);

function gate(lock: string, { pipeline, sink }: SinkKey): Statement {
  return {
    sql: `SELECT ${lock}(hashtext('twg.lease'), hashtext($1))`,
    parameters: [`${pipeline}/${sink}`],
  };
}

/** Codes of the Postgres sink and its client. See codes.ts. */
import { spec } from "./code-spec.ts";

export const POSTGRES_CODES = {
  "postgres.url_invalid": spec(
    "config",
    false,
    "The url of a Postgres sink cannot be read, or contradicts an option.",
  ),
  "postgres.auth_failed": spec(
    "environment",
    false,
    "The server let the user not in. Check user, password and pg_hba.conf.",
  ),
  "postgres.auth_unsupported": spec(
    "environment",
    false,
    "The server asks for a way to log in that twg does not know, or that is not safe on this connection.",
  ),
  "postgres.not_postgres": spec(
    "environment",
    false,
    "The peer's answer is not PostgreSQL's protocol; often another service's port.",
  ),
  "postgres.tls_refused": spec("environment", false, "The server speaks no TLS and sslmode wants it."),
  "postgres.response_invalid": spec(
    "runtime",
    true,
    "A server's message can't be read; the connection is given up.",
  ),
  "postgres.disconnected": spec(
    "environment",
    true,
    "The connection to the server ended in the midst of work.",
  ),
  "postgres.timeout": spec(
    "environment",
    true,
    "The server did not answer in time, or a statement was cancelled.",
  ),
  "postgres.unavailable": spec(
    "environment",
    true,
    "The server is starting, stopping, out of connections or ended this session.",
  ),
  "postgres.read_only": spec(
    "environment",
    true,
    "The server takes no writes: a standby, or the side of a failover that lost.",
  ),
  "postgres.conflict": spec(
    "runtime",
    true,
    "A lock or another transaction stood in the way; the transaction is tried again.",
  ),
  "postgres.full": spec(
    "environment",
    true,
    "No space left on the server. Free some: the job goes on by itself.",
  ),
  "postgres.denied": spec("environment", false, "The user lacks a right in the database."),
  "postgres.missing": spec("environment", false, "The database, schema or table does not exist."),
  "postgres.table_mismatch": spec(
    "environment",
    false,
    "The table is not what the sink needs; each difference is named.",
  ),
  "postgres.not_durable": spec(
    "environment",
    false,
    "The table or the server is set so that a crash loses committed rows (unlogged).",
  ),
  "postgres.encoding": spec("environment", false, "The database's encoding is not UTF8."),
  "postgres.constraint": spec(
    "runtime",
    false,
    "A constraint of the table refused rows. Take it off: raw keeps every record.",
  ),
  "postgres.row_differs": spec(
    "runtime",
    false,
    "A row is there already under the row key of a record, and is another row. Nothing of the set has landed.",
  ),
  "postgres.value_refused": spec("runtime", false, "The server refused a value."),
  "postgres.refused": spec("runtime", false, "The server answered with an error of no other kind."),
} as const;

/**
 * A server's error as one Failure: the SQLSTATE (documentation, appendix "PostgreSQL Error Codes") decides the code,
 * whether the same may succeed later, and whether it may be said of single rows. The one place that decides any of it.
 * The DETAIL field is left out: it quotes rows. So is any statement.
 */
import type { Code } from "../../../core/failure/codes.ts";
import { Failure } from "../../../core/failure/failure.ts";
import type { ServerNotice } from "./backend.ts";

interface Sorted {
  readonly code: Code;
  readonly hint?: string;
  /** Said of a row and not of the server or the table: without the row the rest may be taken. Unknown means no. */
  readonly row?: true;
}

/** Whole SQLSTATEs first. */
const STATES: Readonly<Record<string, Sorted>> = {
  "28P01": { code: "postgres.auth_failed", hint: "Check user and password of the url" },
  "28000": {
    code: "postgres.auth_failed",
    hint: "Does pg_hba.conf let this user in from here, with or without TLS?",
  },
  "3D000": { code: "postgres.missing", hint: "Create the database, or correct its name in the url" },
  "3F000": { code: "postgres.missing", hint: "Create the schema, or set create = true" },
  "42P01": {
    code: "postgres.missing",
    hint: "Was the table dropped or renamed? Create it, or set create = true",
  },
  "42501": { code: "postgres.denied", hint: "Grant the right: nothing is lost, the job goes on by itself" },
  "25006": {
    code: "postgres.read_only",
    hint: "The server is a standby or was made read-only: name the primary, or all hosts of the cluster, in the url",
  },
  "53100": { code: "postgres.full", hint: "Free space: nothing is lost, the job goes on by itself" },
  "53200": { code: "postgres.unavailable" },
  "53300": {
    code: "postgres.unavailable",
    hint: "max_connections of the server, or a limit of the user, is reached",
  },
  "57P01": { code: "postgres.unavailable" },
  "57P02": { code: "postgres.unavailable" },
  "57P03": { code: "postgres.unavailable" },
  "57P05": { code: "postgres.unavailable", hint: "idle_session_timeout of the server" },
  "57014": {
    code: "postgres.timeout",
    hint: "The statement was cancelled, by somebody or by statement_timeout; is the table locked or the server overloaded?",
  },
  "55P03": { code: "postgres.conflict", hint: "Another session holds a lock on the table for long" },
  "55000": { code: "postgres.unavailable" },
  "55006": { code: "postgres.conflict" },
  "25P04": {
    code: "postgres.timeout",
    hint: "transaction_timeout of the server is shorter than a set takes",
  },
  "25P03": { code: "postgres.timeout", hint: "idle_in_transaction_session_timeout of the server" },
  "22021": {
    code: "postgres.value_refused",
    row: true,
    hint: "The database's encoding cannot hold the text, or it has a NUL",
  },
  "22P05": {
    code: "postgres.value_refused",
    hint: "The database's encoding cannot hold the text",
    row: true,
  },
  // How we write the type of a column is not how the server reads it: each row would be refused.
  "22P03": { code: "postgres.table_mismatch", hint: "Was the type of a column changed? Start again" },
  // The same, where the type that is there is longer. Poolers say it of connections, and then it is fatal.
  "08P01 in a row": {
    code: "postgres.table_mismatch",
    hint: "Was the type of a column changed? Start again",
  },
  // Not a row: whoever forgot the next partition makes it, and all that is meant for it would go to the rejects until then.
  "23514 of no constraint": { code: "postgres.constraint", hint: "Make the partition, or a default one" },
  // The same: an identity or a serial column has no more numbers, for no row that will ever come.
  "2200H": {
    code: "postgres.refused",
    hint: "A sequence that a column takes its numbers from is at its end: raise its maximum",
  },
  "22P04": { code: "postgres.table_mismatch", hint: "Was a column added or dropped? Start again" },
  // A row that is larger than a page of an index, or has a text that is too long to be searched.
  "54000": { code: "postgres.value_refused", row: true },
  "42P10": {
    code: "postgres.table_mismatch",
    hint: 'mode = "upsert" needs a unique index on the key columns',
  },
  "58030": { code: "postgres.unavailable", hint: "The server's disk reported an error: look at its log" },
};

/** Then the class, the first two characters. */
const CLASSES: Readonly<Record<string, Sorted>> = {
  "08": { code: "postgres.disconnected" },
  "22": { code: "postgres.value_refused", row: true },
  "23": {
    code: "postgres.constraint",
    hint: "The raw lane takes every record: take the constraint off the table",
    row: true,
  },
  "40": { code: "postgres.conflict" },
  "42": {
    code: "postgres.table_mismatch",
    hint: "Was the table changed? `twg` names the differences at its start",
  },
  "44": { code: "postgres.constraint", hint: "A view with CHECK OPTION does not show such rows", row: true },
  "53": { code: "postgres.unavailable" },
  "57": { code: "postgres.unavailable" },
  // The system below the server, its files and memory.
  "58": { code: "postgres.unavailable" },
  "72": { code: "postgres.conflict" },
  // What triggers raise in PL/pgSQL.
  P0: { code: "postgres.refused", hint: "A trigger of the table says so", row: true },
};

export class ServerError extends Error {
  readonly notice: ServerNotice;

  constructor(notice: ServerNotice) {
    super(notice.message);
    this.notice = notice;
  }
}

function sortedBy({ sqlstate, severity, constraint }: ServerNotice): Sorted {
  if (sqlstate === "23514" && constraint === null) return STATES["23514 of no constraint"]!;
  if (sqlstate === "08P01" && severity === "ERROR") return STATES["08P01 in a row"]!;
  return STATES[sqlstate] ?? CLASSES[sqlstate.slice(0, 2)] ?? { code: "postgres.refused" };
}

/** What the server said of a row, if it was one that it refused; null: anything else. */
export function rowRefusal(failure: Failure): ServerNotice | null {
  if (!(failure.cause instanceof ServerError)) return null;
  const { notice } = failure.cause;
  return sortedBy(notice).row === true ? notice : null;
}

export function serverFailure(notice: ServerNotice, at: string): Failure {
  const { sqlstate, message } = notice;
  const sorted = sortedBy(notice);
  const where = [
    notice.table === null ? null : `table ${notice.schema ?? ""}.${notice.table}`,
    notice.column === null ? null : `column ${notice.column}`,
    notice.constraint === null ? null : `constraint ${notice.constraint}`,
  ].filter((w) => w !== null);
  const named = where.length === 0 ? "" : ` (${where.join(", ")})`;
  const hint = sorted.hint ?? notice.hint ?? undefined;
  return new Failure(sorted.code, `${message}${named} [${sqlstate}]`, {
    at,
    ...(hint === undefined ? {} : { hint }),
    cause: new ServerError(notice),
  });
}

/**
 * A set of which the server refuses rows goes into its transaction in parts, each behind a savepoint: what is taken stays,
 * and of what is refused the halves are tried, down to single rows. Only what a server says of rows (wire/errors.ts) is
 * taken for a refusal; anything else (a lock, a full disk, a right, a connection) ends the attempt with all rows kept.
 *
 * Constraints that wait for COMMIT are looked at with each part, else nobody could tell whose fault it was.
 */
import { type RefusedRow as Bisected, bisect } from "../../core/delivery/bisect.ts";
import { asFailure, Failure } from "../../core/failure/failure.ts";
import type { StreamKey } from "../../core/records/stream.ts";
import type { PgConnection } from "./client.ts";
import { trailerMessage } from "./copy/blocks.ts";
import type { CopiedRows } from "./copy/copied-rows.ts";
import type { ServerNotice } from "./wire/backend.ts";
import { rowRefusal } from "./wire/errors.ts";

/** A row that the server refused, with its fields as they were sent. */
export interface RefusedBy {
  readonly stream: StreamKey;
  readonly offset: bigint;
  readonly fields: readonly (Uint8Array | null)[];
  readonly notice: ServerNotice;
}

interface Refusal {
  readonly failure: Failure;
  readonly notice: ServerNotice;
}

export interface SiftStatements {
  readonly copy: string;
  /** Behind each COPY; none: rows are where they belong. */
  readonly merge: readonly string[];
  /** With more the table is at fault. */
  readonly most: number;
  /** With more the search ends, since nothing will come of the set; those that were found are told. */
  readonly enough: number;
}

/** Within the set's transaction, which holds all other rows then, unless there are more than `enough`. */
export async function siftRows(
  connection: PgConnection,
  rows: CopiedRows,
  { copy, merge, most, enough }: SiftStatements,
): Promise<readonly (Refusal & { readonly row: number })[]> {
  const found = await bisect<Refusal>(rows.count, Math.min(most, enough), async (from, next) => {
    try {
      await copyPart(connection, rows, from, next, copy);
      const end = [...merge, "SET CONSTRAINTS ALL IMMEDIATE", "RELEASE SAVEPOINT twg_rows"];
      await connection.script(end.join(";"));
      return null;
    } catch (e) {
      const failure = asFailure(e);
      const notice = rowRefusal(failure);
      // What was said of a row before the session ended is no reason to stop: it is said again on the next one.
      if (notice !== null && connection.failure !== null)
        throw new Failure("postgres.disconnected", `the session ended behind: ${failure.message}`, {
          ...{ at: connection.at, cause: failure, retry: true },
        });
      if (notice === null) throw failure;
      await connection.script("ROLLBACK TO SAVEPOINT twg_rows;RELEASE SAVEPOINT twg_rows");
      return { failure, notice };
    }
  });
  const refused = found.refused.length;
  if ("sink" in found && (refused > most || refused <= enough))
    throw tableAtFault(found.sink.failure, refused, rows.count);
  return found.refused.map(({ row, why }: Bisected<Refusal>) => ({ row, ...why }));
}

async function copyPart(
  connection: PgConnection,
  rows: CopiedRows,
  from: number,
  next: number,
  statement: string,
): Promise<void> {
  const copy = await connection.copyIn(`SAVEPOINT twg_rows;${statement}`);
  for (const message of rows.messages(from, next)) await copy.write(message);
  await copy.write(trailerMessage());
  const taken = await copy.end();
  if (taken === next - from) return;
  throw new Failure("postgres.table_mismatch", `the server took ${taken} of ${next - from} rows`, {
    at: connection.at,
  });
}

function tableAtFault(why: Failure, refused: number, rows: number): Failure {
  const many = refused === rows ? `all ${rows} rows` : `over ${refused - 1} of ${rows} rows`;
  return new Failure(why.code, `${many} of a set are refused, which is no fault of rows: ${why.message}`, {
    ...(why.at === null ? {} : { at: why.at }),
    hint: "Nothing of the set has landed, and nothing went to the rejects. Was the table changed? Else raise max_rejects",
    cause: why,
  });
}

/** Why, as it stands in the rejects. */
export function refusedCode({ sqlstate }: ServerNotice): "row.constraint" | "row.value" | "row.trigger" {
  const kind = sqlstate.slice(0, 2);
  return kind === "23" || kind === "44" ? "row.constraint" : kind === "P0" ? "row.trigger" : "row.value";
}

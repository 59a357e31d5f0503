/**
 * A Postgres sink's part of `twg doctor`: login, server, clock, and in one transaction that is rolled back everything
 * that a start would make or compare. Leaves nothing.
 */
import { asFailure } from "../../core/failure/failure.ts";
import { type Checkup, clockSkew, failedBy, ok, skipped, warning } from "../../core/ports/doctor.ts";
import { type ClientParts, PgConnection } from "./client.ts";
import type { Prepared } from "./prepare.ts";
import type { PostgresSettings } from "./settings.ts";
import { REJECT_COLUMNS } from "./state/rejects.ts";
import { lookAtState, stateDdl, stateNames } from "./state/tables.ts";
import { shownTable } from "./table/names.ts";
import { rawColumns, rawKey } from "./table/raw-columns.ts";
import { prepareRowKey } from "./table/row-key.ts";
import { checkServer, prepareTable } from "./table/table.ts";

/** Somebody's long transaction on the table must not make us wait. */
const LOCK_TIMEOUT_MS = 2_000;

export interface PostgresCheckupOptions extends Prepared {
  readonly prefix: string;
  readonly upsert: boolean;
  readonly stateSchema: string;
  /** Records as received land in the table. Columns of files are looked at by the job, which knows them. */
  readonly raw: boolean;
}

export function postgresCheckup(o: PostgresCheckupOptions, parts: ClientParts): Checkup {
  const at = o.settings.hosts.map((h) => `${h.host}:${h.port}`).join(", ");
  return {
    name: "postgres",
    at,
    async run({ report, signal, clock }) {
      let connection: PgConnection;
      try {
        connection = await PgConnection.open(o.settings, parts);
      } catch (e) {
        report(failedBy("postgres.login", at, asFailure(e)));
        return;
      }
      const close = () => connection.close();
      signal.addEventListener("abort", close, { once: true });
      const attempt = async (check: string, where: string, work: () => Promise<string>) => {
        try {
          report(ok(check, where, await work()));
        } catch (e) {
          report(failedBy(check, where, asFailure(e)));
        }
      };
      try {
        report(loginOf(o.settings, connection));
        await attempt("postgres.server", connection.at, async () => {
          checkServer(connection);
          return `PostgreSQL ${connection.parameter("server_version")}, UTF8`;
        });
        const before = clock.now();
        const { rows } = await connection.query(
          "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint::text",
        );
        report(clockSkew("postgres.clock", connection.at, Number(rows[0]?.[0]), before, clock.now(), 1));
        await connection.script(`BEGIN; SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}`);
        await attempt("postgres.state", `schema ${o.stateSchema}`, () => tryState(connection, o.stateSchema));
        // An error ended the transaction: the table is tried in one of its own.
        await connection.script(`ROLLBACK; BEGIN; SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}`);
        if (!o.raw) {
          report(
            skipped("postgres.table", shownTable(o.table), "the job looks at it, when it knows its columns"),
          );
          return;
        }
        await attempt("postgres.table", shownTable(o.table), async () => {
          const { rejects, prefix, upsert, create } = o;
          if (rejects !== null) await prepareTable(connection, rejects, REJECT_COLUMNS, create);
          const key = upsert ? rawKey(prefix) : [];
          await prepareTable(connection, o.table, rawColumns(prefix, upsert), create, key);
          if ((o.rowKey ?? null) !== null) await prepareRowKey(connection, o.table, o.rowKey!);
          return "the table is there or may be made, fits, and may be written";
        });
        await connection.script("ROLLBACK");
      } catch (e) {
        report(failedBy("postgres.session", connection.at, asFailure(e)));
      } finally {
        signal.removeEventListener("abort", close);
        connection.close();
      }
    },
  };
}

function loginOf(settings: PostgresSettings, connection: PgConnection) {
  const seen = `logged in as ${settings.user} to ${settings.database}, sslmode ${settings.sslMode}`;
  if (settings.sslMode === "verify-full") return ok("postgres.login", connection.at, seen);
  return warning(
    "postgres.login",
    connection.at,
    seen,
    'Set sslmode = "verify-full": nothing less proves who the server is',
  );
}

async function tryState(connection: PgConnection, schema: string): Promise<string> {
  const names = stateNames(schema);
  if ((await lookAtState(connection, names)) === "there") return "the state tables are there";
  for (const statement of stateDdl(names)) await connection.script(statement);
  return "the state tables may be made";
}

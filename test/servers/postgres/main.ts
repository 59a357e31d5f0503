/**
 * A real PostgreSQL for tests, by command line. Used by scripts/with-servers.sh; by hand:
 *
 *   bun test/servers/postgres/main.ts start FOLDER    prints the value of TWG_REAL_POSTGRES
 *   bun test/servers/postgres/main.ts kill FOLDER | up FOLDER | stop FOLDER
 */
import { join, resolve } from "node:path";
import {
  killPostgres,
  type PostgresServer,
  SUPERUSER,
  startPostgres,
  stopPostgres,
  upPostgres,
} from "./server.ts";

/** What TWG_REAL_POSTGRES holds. */
function describe(server: PostgresServer, folder: string) {
  const command = (verb: string) =>
    `${process.execPath} ${join(import.meta.dir, "main.ts")} ${verb} ${folder}`;
  const { ca, wrongCa, clientCert, clientKey } = server.tls;
  return {
    version: server.version,
    host: "127.0.0.1",
    port: server.port,
    bouncerPort: server.bouncerPort,
    ...SUPERUSER,
    ca,
    wrongCa,
    clientCert,
    clientKey,
    folder,
    /** Shell commands: SIGKILL of the whole server, and its return. */
    kill: command("kill"),
    up: command("up"),
  };
}

const [verb, folder = ""] = process.argv.slice(2);
const path = resolve(folder);
switch (verb) {
  case "start": {
    const began = performance.now();
    const server = await startPostgres(path);
    const bouncer = server.bouncerPort === null ? "no pgbouncer" : "with pgbouncer";
    console.error(
      `servers: PostgreSQL ${server.version}, ${bouncer}, ready in ${Math.round(performance.now() - began)} ms`,
    );
    console.log(JSON.stringify(describe(server, path)));
    break;
  }
  case "kill":
    await killPostgres(path);
    break;
  case "up":
    await upPostgres(path);
    break;
  case "stop":
    await stopPostgres(path);
    break;
  default:
    console.error("usage: see the head of test/servers/postgres/main.ts");
    process.exit(2);
}

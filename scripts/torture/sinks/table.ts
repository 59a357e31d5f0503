/** A table of a real PostgreSQL beside the primary sink: behind a proxy, and in a tablespace that can be full. */
import { chmodSync, chownSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import {
  killPostgres,
  type PostgresServer,
  SUPERUSER,
  upPostgres,
} from "../../../test/servers/postgres/server.ts";
import type { SeededChance } from "../../../test/sim/chance.ts";
import { theServer } from "../postgres-sink.ts";
import { TcpProxy } from "../tcp-proxy.ts";
import { type Place, transactionPoints } from "./place.ts";
import { proxyTroubles } from "./proxied.ts";
import { type SmallDisk, smallDisk } from "./small-disk.ts";

const TABLE = "public.torture";
const DISK_BYTES = 96 << 20;

export interface TablePlace extends Place {
  ask(statement: string): Promise<string>;
}

export async function tablePlace(
  folder: string,
  chance: SeededChance,
  say: (text: string) => void,
): Promise<TablePlace> {
  const { place, server, stop } = await theServer(folder);
  const proxy = await TcpProxy.start({ host: "127.0.0.1", port: server.port }, chance);
  const database = `torture_sinks_${process.pid}`;
  const space = `${database}_space`;
  // The server's user must be able to walk down to its tablespace.
  chmodSync(folder, 0o755);
  const disk = smallDisk(join(folder, "tablespace"), DISK_BYTES, say);
  const maintain = (statement: string) => ask(server, "postgres", statement);
  if (disk !== null) await maintain(`create tablespace ${space} location '${spaceIn(disk, server)}'`);
  await maintain(`create database ${database}${disk === null ? "" : ` tablespace ${space}`}`);
  const url = `postgres://${SUPERUSER.user}:${encodeURIComponent(SUPERUSER.password)}@127.0.0.1:${proxy.port}/${database}`;
  const theirs = `datname = '${database}' and application_name like 'twg %'`;
  const endSessions = (share: number) =>
    maintain(
      `select count(pg_terminate_backend(pid)) from pg_stat_activity where ${theirs} and random() < ${share}`,
    );
  return {
    name: "table",
    section: `type = "postgres"
url = ${JSON.stringify(url)}
sslmode = "disable"
table = "${TABLE}"
create = true
hold_bytes = "4MiB"
commit_bytes = "256KiB"
commit_interval_ms = 200
connect_timeout_ms = "3s"
answer_timeout_ms = "4s"`,
    points: transactionPoints("table"),
    troubles: {
      ...proxyTroubles([proxy]),
      sessions: async () => {
        await endSessions(0.7);
        return () => Promise.resolve();
      },
      lock: () => locked(server, database),
      read_only: async () => {
        await maintain(`alter database ${database} set default_transaction_read_only = on`);
        await endSessions(1);
        return async () => {
          await maintain(`alter database ${database} reset default_transaction_read_only`);
          await endSessions(1);
        };
      },
      down: async () => {
        await killPostgres(place);
        return () => upPostgres(place);
      },
      ...disk?.troubles,
    },
    judged: {
      kind: "table",
      place: { ...SUPERUSER, host: "127.0.0.1", port: server.port, database, table: TABLE },
    },
    async orphans() {
      const open = `select pid, state, left(query, 60) from pg_stat_activity where ${theirs} and state <> 'idle'`;
      return (await ask(server, database, open)).split("\n").filter((l) => l !== "");
    },
    ask: (statement) => ask(server, database, statement),
    async stop() {
      await proxy.stop();
      await maintain(`drop database if exists ${database} with (force)`);
      if (disk !== null) await maintain(`drop tablespace if exists ${space}`);
      disk?.remove();
      await stop();
    },
  };
}

function spaceIn(disk: SmallDisk, server: PostgresServer): string {
  const folder = join(disk.folder, "space");
  mkdirSync(folder);
  if (server.runAs !== null) chownSync(folder, server.runAs.uid, server.runAs.gid);
  chmodSync(folder, 0o700);
  return folder;
}

/** Nobody reads or writes the table; who waits for it gets no answer. A table that is not there yet is not locked. */
async function locked(server: PostgresServer, database: string): Promise<() => Promise<void>> {
  const statement = `begin; lock table ${TABLE} in access exclusive mode; select pg_sleep(60)`;
  const child = psqlChild(server, database, statement);
  return async () => {
    // With its client the session goes at its next word alone: it is ended at the server.
    const end =
      "select count(pg_terminate_backend(pid)) from pg_stat_activity where query like '%pg_sleep(60)%' and pid <> pg_backend_pid()";
    await ask(server, database, end);
    child.kill();
    await child.exited;
  };
}

function psqlChild(server: PostgresServer, database: string, statement: string) {
  const target = `host=127.0.0.1 port=${server.port} user=${SUPERUSER.user} dbname=${database}`;
  return Bun.spawn(["psql", "-qtAX", "-v", "ON_ERROR_STOP=1", target, "-c", statement], {
    env: { ...process.env, PGPASSWORD: SUPERUSER.password },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
}

/** Beside the proxies, which must go on: psql() of the server's own file waits for the answer. */
async function ask(server: PostgresServer, database: string, statement: string): Promise<string> {
  const child = psqlChild(server, database, statement);
  const [out, err] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  if ((await child.exited) !== 0) throw new Error(`psql ${statement.slice(0, 80)}: ${err}`);
  return out.trim();
}

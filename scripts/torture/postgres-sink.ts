/**
 * A table of a real PostgreSQL under torture: while twg is killed, so are its sessions and, less often, the whole server.
 * What landed is counted by psql. The server is the one of scripts/with-servers.sh, or one that is started here.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { TRANSACTION_POINTS } from "../../src/core/delivery/crash-points.ts";
import { compareTable } from "../../test/e2e/compare-table.ts";
import {
  killPostgres,
  loadPostgres,
  type PostgresServer,
  psql,
  SUPERUSER,
  startPostgres,
  stopPostgres,
  upPostgres,
} from "../../test/servers/postgres/server.ts";
import type { SeededChance } from "../../test/sim/chance.ts";
import type { Landed } from "./landed.ts";
import { type TortureSink, twice } from "./sink.ts";

const TABLE = "public.torture";
/** Gaps and islands: per partition the ranges of offsets that are there. */
const RANGES = `
select p, min(o), max(o) + 1 from (
  select p, o, o - row_number() over (partition by p order by o) as island from (
    select distinct _twg_source_partition as p, _twg_source_offset as o from ${TABLE}) d) i
group by p, island order by 1, 2`;

export async function postgresSink(
  folder: string,
  chance: SeededChance,
  killServers: boolean,
): Promise<TortureSink> {
  const { place, server, stop } = await theServer(folder);
  const database = `torture_${process.pid}`;
  psql(server, "postgres", `create database ${database}`);
  const figures = { session_kills: 0, server_kills: 0 };
  const url = `postgres://${SUPERUSER.user}:${encodeURIComponent(SUPERUSER.password)}@127.0.0.1:${server.port}/${database}`;

  async function killSessions(): Promise<void> {
    const statement = `select count(pg_terminate_backend(pid)) from pg_stat_activity
      where datname = '${database}' and application_name like 'twg %' and random() < 0.7`;
    figures.session_kills += Number(psql(server, "postgres", statement));
  }

  async function killServer(): Promise<void> {
    await killPostgres(place);
    figures.server_kills++;
    await Bun.sleep(chance.int(800));
    await upPostgres(place);
  }

  return {
    section: `type = "postgres"
url = ${JSON.stringify(url)}
sslmode = "disable"
table = "${TABLE}"
create = true
commit_bytes = "256KiB"
commit_interval_ms = 150
connect_timeout_ms = "30s"`,
    points: [...twice(["sealed", "before_acknowledge", "after_acknowledge"]), ...twice(TRANSACTION_POINTS)],
    before: () => {},
    trouble() {
      if (!killServers) return () => Promise.resolve();
      let stopped = false;
      const work = (async () => {
        for (let n = 1; !stopped; n++) {
          await Bun.sleep(200 + chance.int(1_200));
          if (n % 8 === 0) await killServer();
          else await killSessions();
        }
      })();
      return async () => {
        stopped = true;
        await work;
      };
    },
    count: async () => landedIn(server, database),
    landing: () => Promise.resolve(null),
    // A transaction leaves nothing behind; what could be left is one that is open still.
    orphans: async () => {
      const open = `select pid, state, left(query, 60) from pg_stat_activity
        where datname = '${database}' and application_name like 'twg %' and state <> 'idle'`;
      const text = psql(server, "postgres", open);
      return text === "" ? [] : text.split("\n");
    },
    async compare(bootstrap, topic) {
      const target = { ...SUPERUSER, host: "127.0.0.1", port: server.port, database, table: TABLE };
      return (await compareTable(bootstrap, topic, target)).differences;
    },
    figures: () => figures,
    async stop() {
      psql(server, "postgres", `drop database if exists ${database} with (force)`);
      await stop();
    },
  };
}

export async function theServer(
  folder: string,
): Promise<{ place: string; server: PostgresServer; stop: () => Promise<void> }> {
  const given = process.env.TWG_REAL_POSTGRES;
  if (given !== undefined) {
    const place = (JSON.parse(given) as { folder: string }).folder;
    const server = loadPostgres(place);
    if (server !== null) return { place, server, stop: () => Promise.resolve() };
  }
  const place = join(folder, "postgres");
  mkdirSync(place);
  return { place, server: await startPostgres(place), stop: () => stopPostgres(place) };
}

function landedIn(server: PostgresServer, database: string): Landed {
  const count = `select count(*), count(*) - count(distinct (_twg_source_partition, _twg_source_offset)) from ${TABLE}`;
  const [rows = 0, doubled = 0] = psql(server, database, count).split("|").map(Number);
  const ranges = new Map<number, [number, number][]>();
  for (const line of psql(server, database, RANGES)
    .split("\n")
    .filter((l) => l !== "")) {
    const [partition = 0, from = 0, next = 0] = line.split("|").map(Number);
    const list = ranges.get(partition) ?? [];
    list.push([from, next]);
    ranges.set(partition, list);
  }
  return { reader: "psql", rows, doubled, ranges };
}

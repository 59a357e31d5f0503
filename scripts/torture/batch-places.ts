/** Where `twg batch` lands under torture: folders of Parquet, or tables of a real PostgreSQL. Read by others than us. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Glob } from "bun";
import { asyncBufferFromFile, parquetReadObjects } from "hyparquet";
import { compressors } from "hyparquet-compressors";
import { psql, SUPERUSER } from "../../test/servers/postgres/server.ts";
import type { SeededChance } from "../../test/sim/chance.ts";
import { orphansIn } from "./orphans.ts";
import { theServer } from "./postgres-sink.ts";

export interface Landed {
  readonly ids: readonly number[];
  readonly rejects: readonly string[];
}

const READ = `
import glob, json, sys
import pyarrow.parquet as pq
print(json.dumps([i for f in glob.glob(sys.argv[1] + "/*.parquet") for i in pq.read_table(f, columns=["id"], partitioning=None).column(0).to_pylist()]))
`;

async function landedInFolder(folder: string): Promise<Landed> {
  const python = process.env.TWG_PYTHON;
  let ids: number[] = [];
  if (python !== undefined) {
    const run = Bun.spawnSync([python, "-c", READ, folder]);
    if (run.exitCode !== 0) throw new Error(`pyarrow: ${run.stderr.toString().slice(-500)}`);
    ids = JSON.parse(run.stdout.toString()) as number[];
  } else {
    for (const path of new Glob("*.parquet").scanSync({ cwd: folder, absolute: true })) {
      const rows = await parquetReadObjects({
        file: await asyncBufferFromFile(path),
        columns: ["id"],
        compressors,
      });
      for (const r of rows) ids.push(Number(r.id));
    }
  }
  const files = existsSync(folder)
    ? [...new Glob("_rejects/*.ndjson").scanSync({ cwd: folder, absolute: true })]
    : [];
  const rejects = files.flatMap((f) => readFileSync(f, "utf8").trim().split("\n"));
  return { ids: ids.sort((a, b) => a - b), rejects: rejects.sort() };
}

export interface BatchPlace {
  readonly reader: string;
  /** The sink's options of the job of this name. */
  section(name: string): string;
  landed(name: string): Promise<Landed>;
  /** What a killed run left that a later one should have removed. */
  orphans(name: string): number;
  /** Troubles besides the kills, until the answer is called. */
  trouble(): () => Promise<void>;
  figures(): Record<string, number>;
  stop(): Promise<void>;
}

export function folderPlace(folder: string): BatchPlace {
  const at = (name: string) => join(folder, name);
  return {
    reader: process.env.TWG_PYTHON === undefined ? "hyparquet" : "pyarrow",
    section: (name) =>
      `type = "parquet"\npath = "${at(name)}"\nroll_bytes = "128KiB"\nrow_group_bytes = "64KiB"`,
    landed: (name) => landedInFolder(at(name)),
    orphans: (name) => orphansIn(at(name)).length,
    trouble: () => () => Promise.resolve(),
    figures: () => ({}),
    stop: () => Promise.resolve(),
  };
}

/** A table for each job; while twg is killed, so are its sessions. */
export async function databasePlace(folder: string, chance: SeededChance): Promise<BatchPlace> {
  const { server, stop } = await theServer(folder);
  const database = `torture_batch_${process.pid}`;
  psql(server, "postgres", `create database ${database}`);
  const password = encodeURIComponent(SUPERUSER.password);
  const url = `postgres://${SUPERUSER.user}:${password}@127.0.0.1:${server.port}/${database}`;
  const ask = (statement: string) => psql(server, database, statement);
  const tables = (name: string) => [`public."${name}"`, `public."${name} refused"`] as const;
  const figures = { session_kills: 0 };
  const theirs = `datname = '${database}' and application_name like 'twg %'`;
  return {
    reader: "psql",
    section(name) {
      const [table, rejects] = tables(name).map((t) => JSON.stringify(t));
      return `type = "postgres"\nurl = ${JSON.stringify(url)}\nsslmode = "disable"\ntable = ${table}\nrejects = ${rejects}
create = true\ncommit_bytes = "128KiB"\nstate_schema = "state ${name}"`;
    },
    landed(name) {
      const [table, rejects] = tables(name);
      // A run that was killed before its first step has made no table.
      if (ask(`select to_regclass('${table}')`) === "") return Promise.resolve({ ids: [], rejects: [] });
      const list = (of: string) =>
        ask(of)
          .split("\n")
          .filter((l) => l !== "");
      const ids = list(`select id from ${table} order by id`).map(Number);
      return Promise.resolve({ ids, rejects: list(`select line from ${rejects}`).sort() });
    },
    orphans: () => Number(ask(`select count(*) from pg_stat_activity where ${theirs} and state <> 'idle'`)),
    trouble() {
      let stopped = false;
      const work = (async () => {
        while (!stopped) {
          await Bun.sleep(100 + chance.int(900));
          const kill = `select count(pg_terminate_backend(pid)) from pg_stat_activity where ${theirs} and random() < 0.5`;
          figures.session_kills += Number(psql(server, "postgres", kill));
        }
      })();
      return async () => {
        stopped = true;
        await work;
      };
    },
    figures: () => figures,
    async stop() {
      psql(server, "postgres", `drop database if exists ${database} with (force)`);
      await stop();
    },
  };
}

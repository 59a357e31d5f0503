/**
 * Recovery into a table of a real PostgreSQL: beside live, beside what the table alone takes, and two beside one. And what
 * a server that goes away costs the raw sink.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { findPrograms, type PostgresServer, psql, SUPERUSER } from "../../test/servers/postgres/server.ts";
import { type BenchOptions, type Figure, inTurn, median, ratioOf, round, sameHash } from "../figure.ts";
import { theServer } from "../kafka-postgres.ts";
import type { Ran } from "../process.ts";
import type { Topic } from "../topics.ts";
import { commitLatency, goneAfter } from "./commit-latency.ts";
import { figureOf, Pipeline } from "./pipeline.ts";

const LATENCY_MS = 50;
/** After which the server is gone: its streams are claimed by then. */
const ALIVE_BYTES = 256 * 1024;
const TABLE = "public.landed";

export function intoPostgres(o: BenchOptions, topic: Topic): AsyncGenerator<Figure> {
  return withTable(o, topic, async function* (table) {
    yield* one(o, topic, table);
    yield await dead(o, topic, table);
  });
}

export function twoIntoPostgres(o: BenchOptions, topic: Topic): AsyncGenerator<Figure> {
  return withTable(o, topic, async function* (table) {
    yield await two(o, topic, table);
  });
}

async function* withTable(
  o: BenchOptions,
  topic: Topic,
  measure: (table: Table) => AsyncGenerator<Figure>,
): AsyncGenerator<Figure> {
  if (findPrograms() === null && process.env.TWG_REAL_POSTGRES === undefined) {
    o.say("SKIP: recovery into a table: there is no PostgreSQL server on this machine");
    return;
  }
  const scratch = new Pipeline(o, topic);
  const { server, stop } = await theServer(scratch.folder);
  const database = `bench_recovery_${process.pid}`;
  try {
    psql(server, "postgres", `create database ${database}`);
    yield* measure(new Table(server, database));
  } finally {
    psql(server, "postgres", `drop database if exists ${database} with (force)`);
    await stop();
    scratch.drop();
  }
}

class Table {
  readonly server: PostgresServer;
  readonly #database: string;

  constructor(server: PostgresServer, database: string) {
    this.server = server;
    this.#database = database;
  }

  sql(statement: string): string {
    return psql(this.server, this.#database, statement);
  }

  sink(port: number, more = ""): string {
    const { user, password } = SUPERUSER;
    return `[[sink]]
name = "side"
type = "postgres"
receives = "raw"
url = "postgres://${user}:${encodeURIComponent(password)}@127.0.0.1:${port}/${this.#database}"
sslmode = "disable"
table = "${TABLE}"
create = true
${more}`;
  }

  clear(): void {
    this.sql(`drop schema if exists twg cascade; drop table if exists ${TABLE}`);
  }

  /** Rows, and a hash of what they say. */
  hash(table: string): string {
    const row = "(_twg_source_partition, _twg_source_offset, _twg_source_value)::text";
    return this.sql(
      `select count(*) || '/' || sum(('x' || left(md5(${row}), 8))::bit(32)::bigint) from ${table}`,
    );
  }
}

async function* one(o: BenchOptions, topic: Topic, table: Table): AsyncGenerator<Figure> {
  const [live, late] = [new Pipeline(o, topic), new Pipeline(o, topic)];
  try {
    const side = table.sink(table.server.port);
    await late.stream(await late.config("raw", []));
    const [both, filled] = [await live.config("both", [side]), await late.config("both", [side])];
    const hashes: string[] = [];
    const landed = async (run: Promise<Ran>) => {
      const ran = await run;
      hashes.push(table.hash(TABLE));
      return ran;
    };
    const recovered = () => {
      table.clear();
      return landed(late.recover(filled));
    };
    const runs = await inTurn(o.rounds, recovered, () => {
      table.clear();
      live.clear("raw", "state");
      return landed(live.stream(both));
    });
    const figure = figureOf("recovery into PostgreSQL", topic.records, runs, sameHash("table", hashes));
    yield figure;
    // The rows that are there now, as a file; then the table takes them alone.
    const rows = join(late.folder, "rows.copy");
    table.sql(`\\copy ${TABLE} to '${rows}'`);
    const copied: number[] = [];
    for (let i = 0; i < o.rounds; i++) {
      table.sql(`drop table if exists public.copied; create table public.copied (like ${TABLE})`);
      const begun = performance.now();
      table.sql(`\\copy public.copied from '${rows}'`);
      copied.push((performance.now() - begun) / 1000);
    }
    sameHash("psql", [...hashes, table.hash("public.copied")]);
    rmSync(rows);
    const alone = median(copied.map((seconds) => topic.records / seconds));
    yield {
      ...figure,
      bench: "recovery into PostgreSQL, and what the table alone takes",
      peer: "psql \\copy of the same rows from a file",
      peer_value: Math.round(alone),
      ratio: ratioOf(figure.value, alone),
      peer_cpu_per_million: null,
      cpu_ratio: null,
      peer_rss_mb: null,
    };
  } finally {
    live.drop();
    late.drop();
  }
}

/** A backlog of many small sets in small row groups: there are windows for two, and what a commit waits for shows. */
async function two(o: BenchOptions, topic: Topic, table: Table): Promise<Figure> {
  const proxy = await commitLatency(table.server.port, LATENCY_MS);
  const pipeline = new Pipeline(o, topic, 'roll_bytes = "512KiB"\nrow_group_bytes = "256KiB"');
  try {
    const side = table.sink(proxy.port, 'commit_bytes = "64KiB"');
    await pipeline.stream(await pipeline.config("raw", []));
    const config = await pipeline.config("both", [side], '[recovery]\nwindow_bytes = "2MiB"');
    const commits: number[] = [];
    const run = (processes: number) => async () => {
      table.clear();
      const before = proxy.commits;
      const begun = performance.now();
      const ran = await Promise.all(Array.from({ length: processes }, () => pipeline.recover(config)));
      const seconds = (performance.now() - begun) / 1000;
      if (processes === 1) commits.push(proxy.commits - before);
      const hash = table.hash(TABLE);
      if (!hash.startsWith(`${topic.records}/`)) throw new Error(`two recoveries: ${hash}`);
      return { seconds, cpu: ran.reduce((n, r) => n + r.cpu, 0) };
    };
    const runs = await inTurn(o.rounds, run(2), run(1));
    const [pair, alone] = [
      median(runs.subject.map((r) => r.seconds)),
      median(runs.peer.map((r) => r.seconds)),
    ];
    const cpu = (ran: readonly { readonly cpu: number }[]) =>
      round(median(ran.map((r) => (r.cpu / topic.records) * 1e6)));
    return {
      bench: `two recoveries of one backlog, ${LATENCY_MS} ms a commit`,
      subject: "two processes of twg recover, until both have ended",
      peer: "one",
      unit: "s",
      value: round(pair),
      peer_value: round(alone),
      ratio: ratioOf(pair, alone),
      hash: null,
      n: topic.records,
      cpu_per_million: cpu(runs.subject),
      peer_cpu_per_million: cpu(runs.peer),
      commits: median(commits),
    };
  } finally {
    proxy.stop();
    pipeline.drop();
  }
}

async function dead(o: BenchOptions, topic: Topic, table: Table): Promise<Figure> {
  const pipeline = new Pipeline(o, topic);
  try {
    const alone = await pipeline.config("raw", []);
    const fresh = () => {
      pipeline.clear("raw", "state");
      table.clear();
    };
    // At its end the process waits for a sink that may come back: what counts is when the raw files are there.
    const landed = async (config: string) => {
      const begun = Date.now();
      const ran = await pipeline.stream(config);
      return { ...ran, seconds: pipeline.rawSeconds(begun) };
    };
    const runs = await inTurn(
      o.rounds,
      async () => {
        fresh();
        const proxy = await goneAfter(table.server.port, ALIVE_BYTES);
        const ran = await landed(await pipeline.config("dead", [table.sink(proxy.port)]));
        proxy.stop();
        return ran;
      },
      () => {
        fresh();
        return landed(alone);
      },
    );
    const rate = (ran: readonly Ran[]) => median(ran.map((r) => topic.records / r.seconds));
    const cpu = (ran: readonly Ran[]) => round(median(ran.map((r) => (r.cpu / topic.records) * 1e6)));
    return {
      bench: "raw Parquet beside a table whose server goes away",
      subject: "twg stream into both, until all raw files are there",
      peer: "twg stream into raw Parquet, until then",
      unit: "records/s",
      value: Math.round(rate(runs.subject)),
      peer_value: Math.round(rate(runs.peer)),
      ratio: ratioOf(rate(runs.subject), rate(runs.peer)),
      hash: null,
      n: topic.records,
      cpu_per_million: cpu(runs.subject),
      peer_cpu_per_million: cpu(runs.peer),
    };
  } finally {
    pipeline.drop();
  }
}

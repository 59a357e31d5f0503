/**
 * A topic into a table of a real PostgreSQL, every guarantee and metadata column included, beside `psql \copy` of the same
 * rows from a file: the server's own client, without Kafka, decoding, receipts or coverage.
 */
import { existsSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { copiedColumns } from "../src/adapters/postgres/table/raw-columns.ts";
import {
  findPrograms,
  loadPostgres,
  type PostgresServer,
  psql,
  SUPERUSER,
  startPostgres,
  stopPostgres,
} from "../test/servers/postgres/server.ts";
import { type BenchOptions, type Figure, inTurn, median, ratioOf, round } from "./figure.ts";
import { runProcess } from "./process.ts";
import { type Topic, topicOf } from "./topics.ts";

const COPIED = copiedColumns(false);
const COLUMNS = COPIED.map((c) => `_twg_${c}`).join(", ");
/** Equal for equal rows, in whatever order they were written; the stamps of the landing are left out. */
const HASHED = COPIED.filter((c) => c !== "emit_ts" && c !== "ingest_ts").map((c) => `_twg_${c}`);

export async function* kafkaPostgres(o: BenchOptions): AsyncGenerator<Figure> {
  if (findPrograms() === null && process.env.TWG_REAL_POSTGRES === undefined) {
    o.say("SKIP: kafka-postgres: there is no PostgreSQL server on this machine");
    return;
  }
  const topic = await topicOf(o, "orders", "none", o.small ? 20_000 : 1_000_000);
  if (topic === null) return;
  const folder = mkdtempSync(join(tmpdir(), "twg-bench-pg-"));
  const { server, stop } = await theServer(folder);
  const database = `bench_${process.pid}`;
  try {
    psql(server, "postgres", `create database ${database}`);
    yield await beside(o, topic, server, database, folder);
  } finally {
    psql(server, "postgres", `drop database if exists ${database} with (force)`);
    await stop();
    rmSync(folder, { recursive: true, force: true });
    await topic.release();
  }
}

/** The one of the test runner, or one that is started in the folder. */
export async function theServer(
  folder: string,
): Promise<{ server: PostgresServer; stop: () => Promise<void> }> {
  const given = process.env.TWG_REAL_POSTGRES;
  const known = given === undefined ? null : loadPostgres((JSON.parse(given) as { folder: string }).folder);
  if (known !== null) return { server: known, stop: () => Promise.resolve() };
  const place = join(folder, "postgres");
  return { server: await startPostgres(place), stop: () => stopPostgres(place) };
}

async function beside(
  o: BenchOptions,
  topic: Topic,
  server: PostgresServer,
  database: string,
  folder: string,
): Promise<Figure> {
  const config = join(folder, "bench.toml");
  const url = `postgres://${SUPERUSER.user}:${encodeURIComponent(SUPERUSER.password)}@127.0.0.1:${server.port}/${database}`;
  await Bun.write(
    config,
    `[pipeline]
name = "bench"
state_dir = "${join(folder, "state")}"
[source]
type = "kafka"
bootstrap = ["${topic.bootstrap}"]
topics = ["${topic.name}"]
[[sink]]
name = "raw"
type = "postgres"
url = "${url}"
sslmode = "disable"
table = "public.landed"
create = true
[observability]
listen = "off"
`,
  );
  const file = join(folder, "rows.copy");
  const sql = (statement: string) => psql(server, database, statement);
  const land = async () => {
    sql("drop schema if exists twg cascade");
    sql("drop table if exists public.landed");
    return await runProcess([...o.twg, "stream", "-c", config, "--until-caught-up"]);
  };
  const copy = async () => {
    // The rows of the first landing; in a file, as people copy them.
    if (!existsSync(file)) sql(`\\copy (select ${COLUMNS} from public.landed) to '${file}'`);
    sql("drop table if exists public.copied");
    sql("create table public.copied (like public.landed)");
    const begun = performance.now();
    sql(`\\copy public.copied (${COLUMNS}) from '${file}'`);
    return (performance.now() - begun) / 1000;
  };
  const runs = await inTurn(o.rounds, land, copy);
  const sum = `sum(('x' || left(md5((${HASHED.join(", ")})::text), 8))::bit(32)::bigint)`;
  const [rows = "", hash = ""] = sql(`select count(*), ${sum} from public.landed`).split("|");
  const [copied = "", copiedHash = ""] = sql(`select count(*), ${sum} from public.copied`).split("|");
  if (Number(rows) !== topic.records || rows !== copied || hash !== copiedHash) {
    throw new Error(`${topic.records} records, ${rows} landed (${hash}), ${copied} copied (${copiedHash})`);
  }
  const value = median(runs.subject.map((r) => topic.records / r.seconds));
  const peer = median(runs.peer.map((seconds) => topic.records / seconds));
  return {
    bench: "kafka-postgres",
    subject: "twg stream --until-caught-up, whole process",
    peer: "psql \\copy of the same rows from a file",
    unit: "records/s",
    value: Math.round(value),
    peer_value: Math.round(peer),
    ratio: ratioOf(value, peer),
    hash,
    n: topic.records,
    cpu_per_million: round(median(runs.subject.map((r) => (r.cpu / topic.records) * 1e6))),
    peer_cpu_per_million: null,
    file_bytes: statSync(file).size,
  };
}

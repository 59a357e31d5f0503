/**
 * Goal: processes that only recover share a backlog, follow one that is killed, hold nothing while nothing is behind, and see new
 * gaps by themselves; one that does both ends with every sink filled. Method: real broker and database, processes killed at named
 * points; psql and pyarrow read what landed, and the database says who is connected.
 */
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { demandPostgres, freshDatabase, POSTGRES, psql } from "../real/postgres/server.ts";
import { demandBrokers } from "./demand-brokers.ts";
import { get, metric, ready } from "./http.ts";
import { filesSink, pipelineToml, tableSink } from "./pipeline-toml.ts";
import { compareWithKafka, createTopic, fresh, MAIN, python_, type Served } from "./real-kafka.ts";
import { catchUp, command, stream, type Twg, workFolder } from "./twg.ts";
import { until } from "./until.ts";

const PARTITIONS = 2;
const LIMIT = 120_000;

demandBrokers("roles");
demandPostgres("roles");

interface Job {
  readonly served: Served;
  readonly topic: string;
  readonly database: string;
  readonly folder: string;
}

/** A file for one role; what they share is in the folder and the database. */
function role({ served, topic, database, folder }: Job, name: string, beside = true) {
  const config = join(folder, `${name}-${beside}.toml`);
  const lake = join(folder, "lake");
  const sinks = [
    filesSink(folder, "copy", { roll_interval_ms: "200ms" }),
    tableSink(database, "table", { table: "public.landed", commit_interval_ms: "200ms" }),
  ];
  writeFileSync(
    config,
    pipelineToml(folder, {
      pipeline: { role: name, lanes: 1 },
      source: { bootstrap: served.plain, topics: [topic], group: `g-${topic}` },
      sink: [
        filesSink(folder, "raw", { role: "primary_raw", path: lake, roll_interval_ms: "100ms" }),
        ...(beside ? sinks : []),
      ],
      recovery: { window_bytes: "64KiB", poll_ms: "200ms", poll_max_ms: "1s" },
      observability: { listen: name === "recovery" ? "127.0.0.1:0" : "off" },
    }),
  );
  return { folder, lake, config };
}

async function more({ served, topic }: Job, records: number, seed: number): Promise<number> {
  const wanted = JSON.stringify({ records, partitions: PARTITIONS, seed });
  const made = await python_<{ visible: number }>("produce.py", [served.plain.join(","), topic, wanted]);
  return made.visible;
}

interface Place {
  readonly sink: string;
  readonly rows: number;
  readonly gaps?: readonly unknown[];
  readonly holders: readonly { readonly role: string; readonly life: string }[];
}

async function places(config: string): Promise<Place[]> {
  const told = await command(["inspect", "coverage", "-c", config, "--json"]);
  return (JSON.parse(told.output) as { places: Place[] }).places;
}

/** Rows of each sink; null while one has a gap. */
async function whole(config: string): Promise<readonly number[] | null> {
  const all = await places(config);
  return all.length < 3 || all.some((p) => (p.gaps ?? []).length > 0) ? null : all.map((p) => p.rows);
}

async function filled(job: Job, config: string, records: number): Promise<void> {
  await until(`${records} rows in each sink`, async () => {
    const rows = await whole(config);
    return rows?.every((n) => n === records) ?? false;
  });
  const counts = "select count(*), count(distinct (_twg_source_partition, _twg_source_offset)) from landed";
  expect(await psql(job.database, counts)).toBe(`${records}|${records}`);
}

const connections = (database: string) =>
  psql(
    database,
    "select count(*) from pg_stat_activity where datname = current_database() and application_name like 'twg %'",
  );

/** Nothing is behind, and nothing is open. */
async function rests(twg: Twg, { database }: Job): Promise<void> {
  await until("recovery to rest", async () => {
    const active = await metric(twg, "twg_recovery_active");
    const behind = await metric(twg, "twg_recovery_behind_positions");
    // A look has a connection of its own, for as long as it takes.
    return active === 0 && behind === 0 && (await connections(database)) === "0";
  });
}

describe.skipIf(MAIN === null || POSTGRES === null)("roles", () => {
  test(
    "several processes recover beside each other, rest, and see what is missing next",
    async () => {
      const served = MAIN as Served;
      const topic = fresh("roles");
      await createTopic(served, topic, { partitions: PARTITIONS, config: {} });
      const job: Job = { served, topic, database: await freshDatabase(), folder: workFolder() };
      let records = await more(job, 1500, 61);
      await catchUp(role(job, "ingest", false));

      // Sinks that are new lack everything. Whoever is killed in a commit is followed by two others.
      const [recovery, ingest, both] = [role(job, "recovery"), role(job, "ingest"), role(job, "both")];
      const killed = stream(recovery, { environment: { TWG_CRASH_AT: "table/commit_answered:1" } });
      expect((await killed.ended()).signal).toBe("SIGKILL");
      const [other, beside] = [stream(recovery), stream(recovery, { untilCaughtUp: true })];
      const ended = await beside.ended();
      expect([ended.code, ended.failure]).toEqual([0, null]);
      await filled(job, recovery.config, records);
      await rests(other, job);
      expect(await ready(other)).toMatchObject({ status: 200 });
      expect((await get(other, "/")).body).toContain("<h2>Recovery</h2>");
      const there = (await places(recovery.config)).flatMap((p) => p.holders);
      expect(there.filter((h) => h.life === "alive")).toEqual([]);

      // What a pipeline leaves behind that is killed is seen at the next look, and filled without it.
      records += await more(job, 300, 70);
      const killedAt = (point: string) => stream(ingest, { environment: { TWG_CRASH_AT: point } }).ended();
      expect((await killedAt("table/before_commit:1")).signal).toBe("SIGKILL");
      await until("no gaps", async () => (await whole(recovery.config)) !== null);
      await rests(other, job);
      const windows = { sink: "table", outcome: "filled" };
      expect(await metric(other, "twg_recovery_windows_total", windows)).toBeGreaterThan(0);
      expect(await metric(other, "twg_recovery_replayed_records_total")).toBeGreaterThan(0);
      other.kill("SIGTERM");
      expect((await other.ended()).code).toBe(0);

      // Beside live records, until it is stopped, or once all is there.
      records += await more(job, 300, 80);
      expect((await killedAt("copy/after_intend:1")).signal).toBe("SIGKILL");
      const live = stream(both);
      records += await more(job, 300, 81);
      await filled(job, both.config, records);
      live.kill("SIGTERM");
      expect((await live.ended()).code).toBe(0);
      await catchUp(both);
      const done = await stream(recovery, { untilCaughtUp: true }).ended();
      expect([done.code, done.failure]).toEqual([0, null]);
      const once = await command(["recover", "-c", recovery.config, "--once"]);
      expect([once.code, once.output]).toEqual([0, "no gaps\n"]);
      expect(await compareWithKafka(served, topic, join(job.folder, "copy"))).toMatchObject({
        differences: [],
      });
    },
    LIMIT,
  );
});

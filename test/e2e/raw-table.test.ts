/**
 * Goal: where raw is in a table of PostgreSQL, what sinks beside it miss is filled from its rows, without the source, wherever
 * recovery is killed; rows that somebody deleted are told, and are lost only where that is asked for. Method: real broker and
 * database; sinks that are down or killed while the pipeline runs, a recovery whose source is nowhere; librdkafka, pyarrow and
 * psql compare each sink with what was produced and with raw, every field.
 */
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { demandPostgres, freshDatabase, POSTGRES, psql } from "../real/postgres/server.ts";
import { demandBrokers } from "./demand-brokers.ts";
import { filesSink, pipelineToml, postgresUrl, type Section, tableSink, topicSink } from "./pipeline-toml.ts";
import { compareWithKafka, createTopic, fresh, MAIN, python_, type Served } from "./real-kafka.ts";
import { catchUp, command, type Pipeline, stream, workFolder } from "./twg.ts";

const PARTITIONS = 3;
const LIMIT = 240_000;
const NOWHERE = ["127.0.0.1:1"];

demandBrokers("raw in a table");
demandPostgres("raw in a table");

interface Job {
  readonly served: Served;
  readonly topic: string;
  readonly database: string;
  readonly folder: string;
}

interface Sinks {
  readonly name: string;
  readonly role?: "recovery" | "both";
  /** Of the second table's server; null: there is none. */
  readonly port?: number | null;
  readonly copy?: boolean;
  readonly out?: boolean;
  readonly source?: readonly string[];
}

function pipeline({ served, topic, database, folder }: Job, o: Sinks): Pipeline {
  const table = (name: string, more: Section) =>
    tableSink(database, name, { commit_interval_ms: "200ms", ...more });
  const config = join(folder, `${o.name}.toml`);
  writeFileSync(
    config,
    pipelineToml(folder, {
      pipeline: { lanes: 2, role: o.role },
      source: { bootstrap: o.source ?? served.plain, topics: [topic], group: `g-${topic}` },
      sink: [
        table("raw", { role: "primary_raw" }),
        ...(o.copy === false ? [] : [filesSink(folder, "copy", { roll_interval_ms: "200ms" })]),
        ...(o.port === null ? [] : [table("landed", { url: postgresUrl(database, o.port) })]),
        ...(o.out === true ? [topicSink(served.plain, "out", "copy.{topic}")] : []),
      ],
      recovery: { window_bytes: "64KiB", poll_ms: "200ms", poll_max_ms: "1s" },
    }),
  );
  return { folder, lake: "", config };
}

async function more({ served, topic }: Job, records: number, seed: number): Promise<number> {
  const wanted = JSON.stringify({ records, partitions: PARTITIONS, seed });
  return (await python_<{ visible: number }>("produce.py", [served.plain.join(","), topic, wanted])).visible;
}

interface Place {
  readonly sink: string;
  readonly rows: number;
  readonly gaps?: readonly { readonly gone: readonly unknown[] }[];
  readonly streams: readonly { readonly lost: readonly unknown[] }[];
}

async function places(p: Pipeline): Promise<Place[]> {
  const told = await command(["inspect", "coverage", "-c", p.config, "--json"]);
  return (JSON.parse(told.output) as { places: Place[] }).places;
}

/** Columns that tell of a record, and not of when it was written where. */
const OWN = `select string_agg(quote_ident(column_name), ', ') from information_schema.columns
  where table_name = 'raw' and column_name not in ('_twg_emit_ts')`;

/** Rows of the one table that are not in the other, and the other way round. */
async function differences({ database }: Job): Promise<string> {
  const columns = await psql(database, OWN);
  const without = (a: string, b: string) =>
    `(select count(*) from (select ${columns} from ${a} except all select ${columns} from ${b}) d)`;
  return psql(
    database,
    `select ${without("raw", "landed")}, ${without("landed", "raw")}, (select count(*) from landed)`,
  );
}

async function equal(job: Job, records: number): Promise<void> {
  const { served, topic, folder } = job;
  expect(await compareWithKafka(served, topic, join(folder, "copy"))).toMatchObject({ differences: [] });
  expect(await differences(job)).toBe(`0|0|${records}`);
  const to = [served.plain.join(","), topic, `copy.${topic}`, "bag"];
  expect(await python_<object>("compare_topics.py", to)).toMatchObject({
    ...{ records, copied: records, lost: 0, doubled: 0, foreign: 0, differences: [] },
  });
}

async function job(): Promise<Job> {
  const served = MAIN as Served;
  const topic = fresh("rawtable");
  for (const name of [topic, `copy.${topic}`])
    await createTopic(served, name, { partitions: PARTITIONS, config: {} });
  return { served, topic, database: await freshDatabase(), folder: workFolder() };
}

describe.skipIf(MAIN === null || POSTGRES === null)("raw in a table", () => {
  test(
    "fills sinks that were down, were killed, or are new",
    async () => {
      const j = await job();
      let records = await more(j, 3000, 91);
      // The second table is away, and the files are killed in the middle.
      const away = pipeline(j, { name: "away", port: 1 });
      const killed = await stream(away, { environment: { TWG_CRASH_AT: "copy/after_intend:1" } }).ended();
      expect(killed.signal).toBe("SIGKILL");
      records += await more(j, 500, 92);
      await catchUp(away);
      const all = pipeline(j, { name: "all", out: true, source: NOWHERE });

      const refused = await command(["recover", "-c", all.config, "--once"]);
      expect([refused.code, refused.failure?.code]).toEqual([3, "recovery.no_index"]);
      await psql(
        j.database,
        "create index on raw (_twg_source_topic, _twg_source_partition, _twg_source_offset)",
      );
      for (const point of ["out/before_commit:1", "landed/before_commit:1", "landed/commit_answered:1"]) {
        const ended = await command(["recover", "-c", all.config, "--once"], { TWG_CRASH_AT: point });
        expect([point, ended.signal]).toEqual([point, "SIGKILL"]);
      }
      const done = await command(["recover", "-c", all.config, "--once", "--json"]);
      expect([done.code, done.failure]).toEqual([0, null]);
      await equal(j, records);
      expect((await places(all)).map((x) => [x.sink, x.rows, x.gaps ?? []])).toEqual(
        ["raw", "copy", "landed", "out"].map((sink) => [sink, records, []]),
      );

      // Beside live records: what a killed pipeline leaves is filled by one that does both.
      const both = pipeline(j, { name: "both", role: "both", out: true });
      records += await more(j, 500, 93);
      const again = await stream(both, { environment: { TWG_CRASH_AT: "landed/before_commit:1" } }).ended();
      expect(again.signal).toBe("SIGKILL");
      records += await more(j, 500, 94);
      await catchUp(both);
      await equal(j, records);
      const once = await command(["recover", "-c", all.config, "--once"]);
      expect([once.code, once.output]).toEqual([0, "no gaps\n"]);
    },
    LIMIT,
  );

  test(
    "tells of rows that somebody deleted, and records them as lost where that is asked for",
    async () => {
      const j = await job();
      const records = await more(j, 1000, 95);
      await catchUp(pipeline(j, { name: "alone", port: null, copy: false }));
      await psql(
        j.database,
        `create index on raw (_twg_source_topic, _twg_source_partition, _twg_source_offset);
         delete from raw where _twg_source_partition = 1 and _twg_source_offset < 50`,
      );
      const p = pipeline(j, { name: "all", port: null, source: NOWHERE });
      const told = await command(["recover", "-c", p.config]);
      expect(told.failure?.code).toBe("recovery.raw_missing");
      expect((await places(p))[1]?.gaps).not.toEqual([]);
      const lost = await command(["inspect", "coverage", "-c", p.config, "--record-lost", "--json"]);
      expect(lost.code).toBe(0);
      expect((await command(["recover", "-c", p.config])).code).toBe(0);
      const [raw, copy] = await places(p);
      expect(copy?.gaps).toEqual([]);
      expect(copy?.streams.flatMap((s) => s.lost)).toHaveLength(1);
      expect(raw?.rows).toBe(records);
      const partition = "select count(*) from raw where _twg_source_partition <> 1";
      expect(copy?.rows).toBe(Number(await psql(j.database, partition)));
    },
    LIMIT,
  );
});

/**
 * Goal: two sinks beside the primary one, files and a table, killed at named points of either, hold what the primary
 * holds or show the gap, and a table that is away holds nothing up. Method: real broker and database; pyarrow and psql
 * read what landed, and `inspect coverage` says what should be there.
 */
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { demandPostgres, freshDatabase, POSTGRES, psql } from "../real/postgres/server.ts";
import { demandBrokers } from "./demand-brokers.ts";
import { filesSink, pipelineToml, postgresUrl, tableSink } from "./pipeline-toml.ts";
import { compareWithKafka, createTopic, fresh, MAIN, python_, type Served } from "./real-kafka.ts";
import { catchUp, command, type Pipeline, stream, workFolder } from "./twg.ts";

const PARTITIONS = 3;
const LIMIT = 120_000;

demandBrokers("several sinks");
demandPostgres("several sinks");

function pipeline(
  served: Served,
  topic: string,
  database: string,
  { port, ...beside }: { readonly port?: number; readonly hold_bytes?: string } = {},
): Pipeline {
  const folder = workFolder();
  const config = join(folder, "twg.toml");
  const lake = join(folder, "lake");
  const table = {
    url: postgresUrl(database, port),
    table: "public.landed",
    commit_interval_ms: "200ms",
    ...beside,
  };
  writeFileSync(
    config,
    pipelineToml(folder, {
      pipeline: { lanes: 2 },
      source: { bootstrap: served.plain, topics: [topic], group: `g-${topic}` },
      sink: [
        filesSink(folder, "copy", { roll_interval_ms: "200ms", ...beside }),
        filesSink(folder, "raw", { role: "primary_raw", path: `${lake}/{topic}` }),
        tableSink(database, "table", table),
      ],
    }),
  );
  return { folder, lake, config };
}

async function filled(served: Served, records: number, pad = 0): Promise<{ topic: string; visible: number }> {
  const topic = fresh("sinks");
  const replicas = Math.min(3, served.plain.length);
  const config = { "min.insync.replicas": String(Math.min(2, replicas)) };
  await createTopic(served, topic, { partitions: PARTITIONS, config });
  return { topic, visible: await more(served, topic, records, 21, pad) };
}

async function more(served: Served, topic: string, records: number, seed: number, pad = 0): Promise<number> {
  const wanted = JSON.stringify({ records, partitions: PARTITIONS, seed, pad });
  const made = await python_<{ visible: number }>("produce.py", [served.plain.join(","), topic, wanted]);
  return made.visible;
}

interface Place {
  readonly sink: string;
  readonly rows: number;
  readonly gaps?: readonly { readonly ranges: readonly { readonly from: string; readonly next: string }[] }[];
}

async function places(p: Pipeline): Promise<Place[]> {
  const told = await command(["inspect", "coverage", "-c", p.config, "--json"]);
  return (JSON.parse(told.output) as { places: Place[] }).places;
}

describe.skipIf(MAIN === null || POSTGRES === null)("several sinks", () => {
  const served = MAIN as Served;

  test(
    "hold everything, or show what they lack, wherever the process is killed",
    async () => {
      const { topic, visible } = await filled(served, 2000);
      const database = await freshDatabase();
      const p = pipeline(served, topic, database);
      let records = visible;
      const points = [
        "table/before_commit:1",
        "table/commit_answered:1",
        "copy/after_intend:1",
        "before_acknowledge:1",
      ];
      for (const [i, point] of points.entries()) {
        const ended = await stream(p, { environment: { TWG_CRASH_AT: point } }).ended();
        expect([point, ended.signal]).toEqual([point, "SIGKILL"]);
        records += await more(served, topic, 500, 30 + i);
      }
      await catchUp(p);
      expect(await compareWithKafka(served, topic, p.lake)).toMatchObject({ differences: [] });

      const [raw, copy, table] = await places(p);
      expect([raw?.sink, copy?.sink, table?.sink]).toEqual(["raw", "copy", "table"]);
      expect(raw?.rows).toBe(records);
      const counts =
        "select count(*), count(distinct (_twg_source_partition, _twg_source_offset)) from landed";
      const rows = table?.rows ?? 0;
      expect(await psql(database, counts)).toBe(`${rows}|${rows}`);
      for (const sink of [copy, table]) {
        // Transactions and compaction leave positions without a record: a gap has at least as many as records lack.
        const lack = (sink?.gaps ?? [])
          .flatMap((g) => g.ranges)
          .reduce((n, r) => n + Number(r.next) - Number(r.from), 0);
        expect(lack).toBeGreaterThanOrEqual(records - (sink?.rows ?? 0));
        expect((sink?.rows ?? 0) > 0).toBe(true);
        if (lack === 0) expect(sink?.rows).toBe(records);
      }

      // Recovery beside the pipeline, killed in the middle of a commit and started anew; the pipeline goes on.
      const live = stream(p);
      await live.saw("stream.begun");
      const killed = await command(["recover", "-c", p.config], { TWG_CRASH_AT: "table/commit_answered:1" });
      records += await more(served, topic, 500, 40);
      const beside = await command(["recover", "-c", p.config, "--json"]);
      expect([killed.signal, beside.code, beside.failure]).toEqual(["SIGKILL", 0, null]);
      // The one that was killed had committed something; what is left for the next may be nothing.
      const told = JSON.parse(beside.output) as { sinks: { lacks: string }[] };
      expect(told.sinks.map((s) => s.lacks)).toEqual(["0", "0"]);
      live.kill("SIGTERM");
      expect((await live.ended()).code).toBe(0);
      await catchUp(p);
      const recovered = await command(["recover", "-c", p.config]);
      expect(recovered.code).toBe(0);
      expect((await places(p)).map((x) => [x.sink, x.rows, x.gaps ?? []])).toEqual(
        ["raw", "copy", "table"].map((sink) => [sink, records, []]),
      );
      expect(await compareWithKafka(served, topic, join(p.folder, "copy"))).toMatchObject({
        differences: [],
      });
      expect(await psql(database, counts)).toBe(`${records}|${records}`);
    },
    LIMIT,
  );

  test(
    "a database that is away is told, and holds nothing up",
    async () => {
      const { topic, visible } = await filled(served, 1000);
      // Nobody listens there.
      const p = pipeline(served, topic, await freshDatabase(), { port: 1 });
      const ended = await catchUp(p);
      expect(ended.output).toContain('"sink.troubled"');
      expect(ended.output).toMatch(new RegExp(`"pipeline.stopped".*"rows":${visible}\\b`));
      expect(await compareWithKafka(served, topic, p.lake)).toMatchObject({ differences: [] });
    },
    LIMIT,
  );

  test(
    "records that take more memory than a sink may hold land in it, one after the other",
    async () => {
      const { topic, visible } = await filled(served, 60, 700_000);
      const p = pipeline(served, topic, await freshDatabase(), { hold_bytes: "1MiB" });
      await catchUp(p);
      // A lane that was slow for a moment may have let one by; what is left has to be brought.
      expect(await command(["recover", "-c", p.config])).toMatchObject({ code: 0 });
      expect((await places(p)).map((x) => [x.sink, x.rows, x.gaps ?? []])).toEqual(
        ["raw", "copy", "table"].map((sink) => [sink, visible, []]),
      );
    },
    LIMIT,
  );
});

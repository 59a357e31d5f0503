/**
 * Goal: a table of decoded rows that somebody changed is an outage of its sink: nothing of what fits is refused, the gap is shown, recovery
 * ends with the reason and leaves it, the sink goes on by itself once the column is what it was, and then recovery fills the gap.
 * A schema that the table never took still costs its own records alone. Method: twg as a process that is restarted or runs through
 * it, the test broker, a real server whose table psql changes; psql and hyparquet read what landed.
 */
import { describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/adapters/system/clock.ts";
import { buildBatch } from "../brokers/kafka/batch-builder.ts";
import { FakeCluster } from "../brokers/kafka/cluster.ts";
import { listenCluster } from "../brokers/kafka/sockets.ts";
import { demandPostgres, freshDatabase, POSTGRES, psql } from "../real/postgres/server.ts";
import { landedRows } from "./landed-rows.ts";
import { filesSink, pipelineToml, type Section, tableSink } from "./pipeline-toml.ts";
import { catchUp, command, type LogLine, type Pipeline, stream, type Twg, workFolder } from "./twg.ts";
import { until } from "./until.ts";

demandPostgres("tables that are changed by hand");

const LIMIT = 120_000;
const PARTITIONS = [0, 1];
const SCHEMAS: Record<number, unknown[]> = {
  1: [{ name: "id", type: "int" }],
  2: [
    { name: "id", type: "int" },
    { name: "q", type: ["null", "string"], default: null },
  ],
  3: [{ name: "id", type: "string" }],
};
/** From this id on it is null. */
const WITHOUT_Q = 50;
const avro = (fields: unknown) => JSON.stringify({ type: "record", name: "R", fields });

interface Job extends Pipeline {
  readonly database: string;
  /** Records of a schema, in both partitions. */
  put(...records: readonly (readonly [schema: number, id: number])[]): void;
  ids(): Promise<string>;
  typed(): Promise<readonly number[]>;
  refused(): Promise<readonly string[]>;
  gaps(): Promise<unknown[]>;
  close(): void;
}

/** `values`: Avro in envelopes that name the schema, Avro without, JSON of the same fields. `typed`: a folder of decoded rows besides. */
async function job(
  decodeOf: (folder: string) => Section,
  values: "named" | "plain" | "json",
  typed = false,
): Promise<Job> {
  const cluster = new FakeCluster({ clock: systemClock });
  cluster.createTopic("t", { partitions: PARTITIONS.length });
  const listening = listenCluster(cluster);
  const folder = workFolder();
  mkdirSync(join(folder, "schemas"));
  for (const [id, fields] of Object.entries(SCHEMAS))
    writeFileSync(join(folder, "schemas", `${id}.avsc`), avro(fields));
  const database = await freshDatabase();
  const config = join(folder, "c.toml");
  writeFileSync(
    config,
    pipelineToml(folder, {
      pipeline: { name: "p", lanes: 2 },
      source: { bootstrap: listening.bootstrap, topics: ["t"], group: "g" },
      decode: { format: "avro", ...decodeOf(folder) },
      sink: [
        filesSink(folder, "raw", { role: "primary_raw" }),
        filesSink(folder, "refused", { receives: "rejected" }),
        ...(typed ? [filesSink(folder, "typed", { receives: "decoded" })] : []),
        tableSink(database, "pg", { receives: "decoded", table: "public.o" }),
      ],
    }),
  );
  const json = (schema: number, id: number) => JSON.stringify(schema === 1 ? { id } : { id, q: "a" });
  const head = (schema: number) => (values === "named" ? [0, 0, 0, 0, schema] : []);
  const body = (schema: number, id: number) => {
    if (schema === 3) return [2, 120];
    const q = id < WITHOUT_Q ? [2, 2, 97] : [0];
    return [2 * id, ...(schema === 1 ? [] : q)];
  };
  return {
    ...{ folder, lake: "", config, database },
    put: (...records) => {
      const bytes = (s: number, id: number) =>
        values === "json"
          ? new TextEncoder().encode(json(s, id))
          : Uint8Array.from([...head(s), ...body(s, id)]);
      const sent = records.map(([s, id]) => ({ value: bytes(s, id) }));
      for (const part of PARTITIONS) cluster.append("t", part, buildBatch({ records: sent }));
    },
    ids: async () =>
      (await psql(database, "select string_agg(id::text, ' ' order by id) from o")).replaceAll("\n", " "),
    typed: async () =>
      (await landedRows(join(folder, "typed"))).map((r) => Number(r["id"])).sort((a, b) => a - b),
    refused: async () => {
      const told = (await landedRows(join(folder, "refused"))).map((r) => `${r["code"]} ${r["message"]}`);
      expect(await psql(database, "select count(*) from twg.reject")).toBe("0");
      return told;
    },
    gaps: async () => {
      const told = await command(["inspect", "coverage", "-c", config, "--json"]);
      const places = (JSON.parse(told.output) as { places: { sink: string; gaps?: unknown[] }[] }).places;
      return places.find((x) => x.sink === "pg")?.gaps ?? [];
    },
    close: () => listening.close(),
  };
}

const named = (folder: string) => ({ framing: "confluent", schema_dir: join(folder, "schemas") });
const TOLD = "public.o does not fit: column id is boolean and was integer, wanted is integer";
const says = (text: string) => (line: LogLine) => JSON.stringify(line.fields).includes(text);

/** Recovery ends with a gap that is left, for this reason. */
async function leftBy(j: Job): Promise<string> {
  const { code, failure } = await command(["recover", "-c", j.config, "--once"]);
  expect([code, failure?.code]).toEqual([1, "recovery.behind"]);
  expect(await j.gaps()).not.toEqual([]);
  return /^.* positions: (.*) \(at .*$/.exec(failure!.line)?.[1] ?? failure!.line;
}

/** A pipeline whose table was changed once its first rows were there. */
async function changedBeside(j: Job): Promise<Twg> {
  const live = stream(j);
  j.put([1, 1]);
  await until(
    "the first rows",
    async () => (await psql(j.database, "select to_regclass('o')")) !== "" && (await j.ids()) === "1 1",
  );
  await psql(j.database, "alter table o alter id type boolean using id > 0");
  return live;
}

async function landsAgain(j: Job, live: Twg): Promise<void> {
  await until("rows to land again", async () => {
    j.put([2, 9]);
    return (await j.ids()).includes("9");
  });
  await live.saw("sink.attached");
  live.kill("SIGTERM");
  expect((await live.ended()).code).toBe(0);
}

describe.skipIf(POSTGRES === null)("a table that somebody changed", () => {
  test(
    "before a restart costs a gap and none of the records that fitted it; recovery leaves the gap until it is what it was",
    async () => {
      const j = await job(named, "named");
      j.put([1, 1]);
      await catchUp(j);
      expect(await j.ids()).toBe("1 1");
      await psql(j.database, "alter table o alter id type boolean using id > 0");
      j.put([3, 0], [1, 2], [2, 3]);
      const restarted = await catchUp(j);
      expect(restarted.output).toContain(TOLD);
      // The odd schema's records alone.
      const odd = /^decode.incompatible .* column id is boolean and was integer, wanted is text$/;
      expect((await j.refused()).map((t) => odd.test(t) || t)).toEqual([true, true]);
      expect(await psql(j.database, "select count(*) from o")).toBe("2");
      expect(await j.gaps()).not.toEqual([]);

      expect(await leftBy(j)).toBe(`postgres.table_mismatch: ${TOLD}`);

      const live = stream(j);
      j.put([1, 4]);
      await live.saw("sink.detached", says("postgres.table_mismatch"));
      await psql(j.database, "alter table o alter id type integer using 1");
      await landsAgain(j, live);
      expect((await command(["recover", "-c", j.config, "--once"])).code).toBe(0);
      expect((await j.ids()).replace(/( 9)+$/, "")).toBe("1 1 2 2 3 3 4 4");
      expect(await j.gaps()).toEqual([]);
      expect(await j.refused()).toHaveLength(2);
      j.close();
    },
    LIMIT,
  );

  test(
    "while rows are on their way keeps them, names the column, and is no reason to refuse a schema that comes meanwhile",
    async () => {
      const j = await job(named, "named");
      const live = await changedBeside(j);
      j.put([1, 2]);
      await live.saw("sink.troubled", says("column id is boolean now, and rows were made for integer"));
      j.put([2, 3]);
      await live.saw("sink.detached", says(TOLD));
      await psql(j.database, "alter table o alter id type integer using 1");
      await landsAgain(j, live);
      expect((await command(["recover", "-c", j.config, "--once"])).code).toBe(0);
      expect((await j.ids()).replace(/( 9)+$/, "")).toBe("1 1 2 2 3 3");
      expect([await j.refused(), await j.gaps()]).toEqual([[], []]);
      j.close();
    },
    LIMIT,
  );

  test(
    "is at fault for whatever the one schema file of a pipeline has, also where nobody knows what it was",
    async () => {
      const j = await job((folder) => ({ schema_file: join(folder, "schemas", "1.avsc") }), "plain");
      j.put([1, 1]);
      await catchUp(j);
      await psql(j.database, "alter table o alter id type text; drop table twg.table_column");
      j.put([1, 2]);
      const told = "public.o does not fit: column id is text, wanted is integer";
      expect((await catchUp(j)).output).toContain(told);
      expect(await leftBy(j)).toBe(`postgres.table_mismatch: ${told}`);
      await psql(j.database, "alter table o alter id type integer using id::integer");
      expect((await command(["recover", "-c", j.config, "--once"])).code).toBe(0);
      expect([await j.ids(), await j.refused(), await j.gaps()]).toEqual(["1 1 2 2", [], []]);
      j.close();
    },
    LIMIT,
  );

  test(
    "detaches its sink alone: files beside it take what is learned meanwhile",
    async () => {
      const j = await job(() => ({ format: "json" }), "json", true);
      const live = await changedBeside(j);
      j.put([2, 3]);
      await live.saw("sink.detached", says("column id is boolean and was bigint, wanted is bigint"));
      await until("files to have them", async () => (await j.typed()).join(" ") === "1 1 3 3");
      await psql(j.database, "alter table o alter id type bigint using 1");
      await landsAgain(j, live);
      expect((await command(["recover", "-c", j.config, "--once"])).code).toBe(0);
      expect(await j.ids()).toBe((await j.typed()).join(" "));
      expect([await j.refused(), await j.gaps()]).toEqual([[], []]);
      j.close();
    },
    LIMIT,
  );

  test.each([
    ["gone", "alter table o drop column q", "alter table o add column q text"],
    ["of another name", "alter table o rename q to r", "alter table o rename r to q"],
    [
      "made anew",
      "create table public.as_it_was (like o); drop table o; create table public.o (id text, q integer)",
      "drop table o; alter table as_it_was rename to o",
    ],
  ])(
    "or whose column is %s is missed, and not made anew",
    async (_, change, undo) => {
      const j = await job(named, "named");
      j.put([2, 1]);
      await catchUp(j);
      await psql(j.database, change);
      const changed = await psql(j.database, COLUMNS);
      j.put([2, 2], [1, 3]);
      expect((await catchUp(j)).output).toContain("wanted is text");
      expect(await leftBy(j)).toContain("postgres.table_mismatch: public.o does not fit: ");
      expect(await psql(j.database, COLUMNS)).toBe(changed);
      await psql(j.database, undo);
      expect((await command(["recover", "-c", j.config, "--once"])).code).toBe(0);
      expect((await j.ids()).split(" ").filter((id) => id !== "1")).toEqual(["2", "2", "3", "3"]);
      expect([await j.refused(), await j.gaps()]).toEqual([[], []]);
      j.close();
    },
    LIMIT,
  );

  test(
    "so that it takes no nulls any more refuses rows after a restart as before it: not all of them",
    async () => {
      const j = await job(named, "named");
      j.put([2, 1]);
      await catchUp(j);
      await psql(j.database, "alter table o alter q set not null");
      j.put(...Array.from({ length: 12 }, (_, i) => [2, WITHOUT_Q + i] as const));
      await catchUp(j);
      expect(await leftBy(j)).toContain(
        "of a set are refused, which is no fault of rows: null value in column",
      );
      await psql(j.database, "alter table o alter q drop not null");
      expect((await command(["recover", "-c", j.config, "--once"])).code).toBe(0);
      expect([await psql(j.database, "select count(*) from o"), await j.refused(), await j.gaps()]).toEqual([
        ...["26", [], []],
      ]);
      j.close();
    },
    LIMIT,
  );
});

const COLUMNS =
  "select string_agg(attname, ' ' order by attnum) from pg_attribute where attrelid = 'o'::regclass and attnum > 0 and not attisdropped";

/**
 * Goal: Avro in Confluent's envelopes lands raw, typed in Parquet and in PostgreSQL, with what cannot be decoded in a sink
 * of its own; two schemas alternate, and a kill leaves nothing doubled. Method: records encoded by hand in Python, whose
 * fields follow from their number; pyarrow and psql read what landed.
 */
import { describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { demandPostgres, freshDatabase, POSTGRES, psql } from "../real/postgres/server.ts";
import { demandBrokers } from "./demand-brokers.ts";
import { filesSink, pipelineToml, type Section, sinkToml, tableSink } from "./pipeline-toml.ts";
import { createTopic, fresh, MAIN, python_, type Served } from "./real-kafka.ts";
import { catchUp, command, type Pipeline, stream, Twg, workFolder } from "./twg.ts";

const RECORDS = Number(process.env.TWG_E2E_RECORDS ?? "3000");
const PARTITIONS = 3;
const LIMIT = 120_000 + RECORDS;

demandBrokers("decoded tables");
demandPostgres("decoded tables");

const FIELDS = [
  { name: "id", type: "long" },
  { name: "name", type: "string" },
  { name: "price", type: "double" },
  { name: "note", type: ["null", "string"], default: null },
];
const avroRecord = (name: string, fields: readonly unknown[]) =>
  JSON.stringify({ type: "record", name, fields });
const schema = (...more: unknown[]) => avroRecord("Order", [...FIELDS, ...more]);
/** What orders of both schemas are resolved to, where they are. */
const READER = avroRecord("Order", [
  { name: "title", type: "string", aliases: ["name"] },
  { name: "qty", type: ["null", "long"], default: null },
  { name: "state", type: "string", default: "new" },
]);

interface Wanted {
  readonly served: Served;
  readonly topic: string;
  readonly database: string;
  readonly decode?: (folder: string) => Section;
}

function pipeline({ served, topic, database, decode = () => ({}) }: Wanted): Pipeline {
  const folder = workFolder();
  const schemas = join(folder, "schemas");
  mkdirSync(schemas, { recursive: true });
  writeFileSync(join(schemas, "1.avsc"), schema());
  writeFileSync(join(schemas, "3.avsc"), avroRecord("Key", [FIELDS[0]]));
  writeFileSync(join(folder, "reader.avsc"), READER);
  writeFileSync(join(schemas, "2.avsc"), schema({ name: "qty", type: ["null", "int"], default: null }));
  const config = join(folder, "twg.toml");
  writeFileSync(
    config,
    pipelineToml(folder, {
      pipeline: { lanes: 2 },
      source: { bootstrap: served.plain, topics: [topic], group: `g-${topic}` },
      decode: { format: "avro", framing: "confluent", schema_dir: schemas, ...decode(folder) },
      sink: [
        filesSink(folder, "raw", { role: "primary_raw" }),
        filesSink(folder, "typed", { receives: "decoded" }),
        tableSink(database, "table", { receives: "decoded", metadata: "all", table: "public.orders" }),
        filesSink(folder, "refused", { receives: "rejected" }),
        tableSink(database, "refused_rows", { receives: "rejected", table: "public.refused" }),
      ],
    }),
  );
  return { folder, lake: join(folder, "raw"), config };
}

interface Made {
  readonly good: number;
  readonly bad: number;
  readonly tombstones: number;
  /** Of the good ones. */
  readonly bad_keys: number;
}

async function produce(
  served: Served,
  topic: string,
  first: number,
  records: number,
  avroKeys = false,
): Promise<Made> {
  const wanted = JSON.stringify({ first, records, partitions: PARTITIONS, avro_keys: avroKeys });
  return await python_<Made>("avro_orders.py", ["produce", served.plain.join(","), topic, wanted]);
}

async function freshTopic(served: Served): Promise<string> {
  const topic = fresh("decode");
  const replicas = Math.min(3, served.plain.length);
  const config = { "min.insync.replicas": String(Math.min(2, replicas)) };
  await createTopic(served, topic, { partitions: PARTITIONS, config });
  return topic;
}

const landed = (p: Pipeline, typed = "typed") =>
  python_("avro_orders.py", ["check", join(p.folder, typed), join(p.folder, "refused")]);

/** The same with one more sink of decoded rows. */
function withTwin({ folder, config }: Pipeline): string {
  const grown = join(folder, "grown.toml");
  const twin = { name: "twin", receives: "decoded", type: "parquet", path: join(folder, "twin") };
  writeFileSync(grown, readFileSync(config, "utf8") + sinkToml(twin));
  return grown;
}

const recover = (p: Pipeline, environment: Record<string, string> = {}) =>
  new Twg(["recover", "-c", p.config, "--log-level", "info"], environment).ended();

/** `inspect rejects` tells the same of the files and of the table, every record in its group, and no value. */
async function grouped(p: Pipeline, topic: string, bad: number): Promise<void> {
  const told = await command(["inspect", "rejects", "-c", p.config, "--json"]);
  interface Group {
    readonly records: number;
    readonly samples: readonly { readonly value: object }[];
  }
  const { tables, failures } = JSON.parse(told.output) as {
    tables: { records: number; groups: Group[] }[];
    failures: unknown[];
  };
  expect([told.code, failures, tables.map((t) => t.records)]).toEqual([0, [], [bad, bad]]);
  const byText = (groups: readonly Group[]) =>
    groups.map((g) => JSON.stringify({ ...g, samples: g.samples.length })).sort();
  expect(byText(tables[0]!.groups)).toEqual(byText(tables[1]!.groups));
  const groups = tables[0]!.groups;
  expect(groups.reduce((n, g) => n + g.records, 0)).toBe(bad);
  const kinds = groups.map((g) => JSON.stringify(g, ["code", "topic", "schemaId", "path"])).sort();
  const kind = (code: string, schemaId: string | null, path = "") =>
    JSON.stringify({ code, topic, schemaId, path });
  expect(kinds).toContain(kind("decode.framing", null));
  expect(kinds).toContain(kind("decode.schema", "99"));
  for (const code of ["decode.truncated", "decode.trailing"]) expect(kinds.join()).toContain(`"${code}"`);
  for (const g of groups) expect(Object.keys(g.samples[0]!.value)).toEqual(["bytes"]);
  const shown = await command([
    "inspect",
    "rejects",
    "-c",
    p.config,
    "--sink",
    "refused_rows",
    "--show-values",
  ]);
  expect(shown.output).toContain("value of");
  expect(shown.output).toContain(String.raw`\x00\x00\x00\x00c`);
}

const COUNTS = "select count(*), count(distinct id), sum(price), count(note), count(qty) from orders";

describe.skipIf(MAIN === null || POSTGRES === null)("decoded tables", () => {
  const served = MAIN as Served;

  test(
    `${RECORDS} orders of two schemas land typed, what is spoiled is kept with its reason, and a kill doubles nothing`,
    async () => {
      const topic = await freshTopic(served);
      const database = await freshDatabase();
      const p = pipeline({ served, topic, database });
      const made = await produce(served, topic, 0, RECORDS);
      await catchUp(p);
      const whole = { rows: made.good, rejects: made.bad, doubled: 0, wrong: [] };
      expect(await landed(p)).toMatchObject(whole);
      const [count, distinct] = (await psql(database, COUNTS)).split("|");
      expect([count, distinct]).toEqual([String(made.good), String(made.good)]);
      const wrong = `select count(*) from orders where price <> id / 4.0 or (note is null) <> (id % 3 = 0)
        or qty is distinct from case when id % 2 = 1 and id % 4 <> 1 then id % 1000 end
        or _twg_source_key <> convert_to(id::text, 'UTF8') or _twg_record_id is null`;
      expect(await psql(database, wrong)).toBe("0");
      await grouped(p, topic, made.bad);

      const more = { good: 0, bad: 0 };
      let first = RECORDS;
      for (const point of ["table/before_commit:1", "typed/after_intend:1", "refused/before_cover:1"]) {
        const { good, bad } = await produce(served, topic, first, 300);
        first += 300;
        more.good += good;
        more.bad += bad;
        const killed = await stream(p, { environment: { TWG_CRASH_AT: point }, untilCaughtUp: true }).ended();
        expect([point, killed.signal]).toEqual([point, "SIGKILL"]);
      }
      await catchUp(p);
      const after = (await landed(p)) as { rows: number; rejects: number; places: number };
      expect(after).toMatchObject({ doubled: 0, wrong: [] });
      const told = await command(["inspect", "coverage", "-c", p.config, "--json"]);
      const { places } = JSON.parse(told.output) as {
        places: { sink: string; gaps?: { ranges: { from: string; next: string }[] }[] }[];
      };
      const lack = (sink: string) =>
        (places.find((x) => x.sink === sink)?.gaps ?? [])
          .flatMap((g) => g.ranges)
          .reduce((n, r) => n + Number(r.next) - Number(r.from), 0);
      expect(after.rows).toBeGreaterThanOrEqual(made.good + more.good - lack("typed"));
      expect(after.rejects).toBeGreaterThanOrEqual(made.bad + more.bad - lack("refused"));
      const [rows, ids] = (await psql(database, COUNTS)).split("|");
      expect(rows).toBe(ids!);
      expect(Number(rows)).toBeGreaterThanOrEqual(made.good + more.good - lack("table"));

      // A sink that is new lacks everything.
      const q = { ...p, config: withTwin(p) };
      const killed = await recover(q, { TWG_CRASH_AT: "twin/after_intend:1" });
      expect(killed.signal).toBe("SIGKILL");
      expect(await recover(q)).toMatchObject({ code: 0, signal: null });
      const all = { rows: made.good + more.good, rejects: made.bad + more.bad, doubled: 0, wrong: [] };
      expect(await landed(q)).toMatchObject(all);
      expect(await landed(q, "twin")).toMatchObject(all);
      expect((await psql(database, COUNTS)).split("|").slice(0, 2)).toEqual([`${all.rows}`, `${all.rows}`]);
      expect(await psql(database, wrong)).toBe("0");
      const nothing = await command(["recover", "-c", q.config, "--dry-run"]);
      expect([nothing.code, nothing.output]).toEqual([0, "no gaps\n"]);
    },
    LIMIT,
  );

  test(
    "keys are columns beside values that are resolved to a reader's schema; a bad key is a reject that says so",
    async () => {
      const topic = await freshTopic(served);
      const database = await freshDatabase();
      const made = await produce(served, topic, 0, 300, true);
      const decode = (folder: string) => ({
        reader_schema: join(folder, "reader.avsc"),
        key: { format: "avro", framing: "confluent" },
      });
      const p = pipeline({ served, topic, database, decode });
      await catchUp(p);
      const columns = `select string_agg(attname, ',' order by attnum) from pg_attribute
        where attrelid = 'orders'::regclass and attnum > 0 and attname not like '%twg%'`;
      expect(await psql(database, columns)).toBe("key_id,title,qty,state");
      // What follows from the number, which only the key still has.
      const right = `title = case when key_id % 5 = 0 then '' else 'order ' || key_id || ' é' end and state = 'new'
        and qty is not distinct from case when key_id % 2 = 1 and key_id % 4 <> 1 then key_id % 1000 end`;
      const counts = `select count(*), count(distinct key_id), count(*) filter (where ${right}) from orders`;
      const good = made.good - made.bad_keys;
      expect(await psql(database, counts)).toBe(`${good}|${good}|${good}`);
      const refused = `select count(*) filter (where path like 'key%' and message like 'key: %'), count(*) from refused`;
      expect(await psql(database, refused)).toBe(`${made.bad_keys}|${made.bad_keys + made.bad}`);
      expect(made.bad_keys).toBeGreaterThan(0);
    },
    LIMIT,
  );

  test(
    'on_error = "fail" stops at the first record that cannot be decoded, and says where it is',
    async () => {
      const topic = await freshTopic(served);
      await produce(served, topic, 0, 30);
      const p = pipeline({
        served,
        topic,
        database: await freshDatabase(),
        decode: () => ({ on_error: "fail" }),
      });
      const ended = await stream(p, { untilCaughtUp: true }).ended();
      expect([ended.code, ended.failure?.code]).toEqual([1, "decode.failed"]);
      // Order 13 is the fifth of partition 1.
      expect(ended.failure?.line).toContain(`${topic}/1@4`);
    },
    LIMIT,
  );
});

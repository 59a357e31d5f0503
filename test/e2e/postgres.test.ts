/**
 * Goal: a topic of a real broker lands in a table of a real PostgreSQL, value by value, and a pipeline into it starts,
 * stops, is taken over and is refused as any other. Method: librdkafka reads the topic, psql the table, both hashed.
 * TWG_E2E_RECORDS sets the size (default 50,000).
 */
import { describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { demandPostgres, freshDatabase, POSTGRES, psql, server, until } from "../real/postgres/server.ts";
import { compareTable } from "./compare-table.ts";
import { demandBrokers } from "./demand-brokers.ts";
import { pipelineToml, type Section, tableSink } from "./pipeline-toml.ts";
import { createTopic, fresh, MAIN, python_, type Served } from "./real-kafka.ts";
import { catchUp, command, type Pipeline, SECRETS, stream, workFolder } from "./twg.ts";

const RECORDS = Number(process.env.TWG_E2E_RECORDS ?? "50000");
const PARTITIONS = 6;
const LIMIT = 120_000 + RECORDS;

demandBrokers("Kafka into PostgreSQL");
demandPostgres("Kafka into PostgreSQL");

interface Wanted {
  readonly served: Served;
  readonly topic: string;
  readonly database: string;
  readonly sink?: Section;
  readonly source?: Section;
  readonly secrets?: Section;
}

function pipeline(
  { served, topic, database, sink, source, secrets }: Wanted,
  folder = workFolder(),
): Pipeline {
  mkdirSync(folder, { recursive: true });
  const config = join(folder, "twg.toml");
  writeFileSync(
    config,
    pipelineToml(folder, {
      source: { bootstrap: served.plain, topics: [topic], group: `g-${topic}`, ...source },
      sink: [tableSink(database, "raw", { table: "public.landed", ...sink })],
      secrets,
    }),
  );
  return { folder, lake: "", config };
}

async function filled(served: Served, records: number): Promise<{ topic: string; visible: number }> {
  const topic = fresh("postgres");
  const replicas = Math.min(3, served.plain.length);
  const config = { "min.insync.replicas": String(Math.min(2, replicas)) };
  await createTopic(served, topic, { partitions: PARTITIONS, config });
  const wanted = JSON.stringify({ records, partitions: PARTITIONS, seed: 12 });
  const made = await python_<{ visible: number }>("produce.py", [served.plain.join(","), topic, wanted]);
  return { topic, visible: made.visible };
}

describe.skipIf(MAIN === null || POSTGRES === null)("Kafka into PostgreSQL", () => {
  const served = MAIN as Served;

  test(
    `${RECORDS} records of mixed kinds land as librdkafka reads them, once`,
    async () => {
      const { topic, visible } = await filled(served, RECORDS);
      const database = await freshDatabase();
      const p = pipeline({ served, topic, database });
      const began = performance.now();
      await catchUp(p);
      const seconds = (performance.now() - began) / 1000;
      const { host, port, user, password } = server();
      const target = { host, port, user, password, database, table: "public.landed" };
      const compared = await compareTable(served.plain.join(","), topic, target);
      expect(compared.differences).toEqual([]);
      expect([compared.rows, compared.kafka_rows]).toEqual([visible, visible]);
      expect(compared.table_hash).toBe(compared.kafka_hash);
      if (process.env.TWG_E2E_RECORDS !== undefined) console.log(JSON.stringify({ seconds, ...compared }));

      const again = await catchUp(p);
      expect(again.output).toContain("stopped after 0 rows");
      expect(await psql(database, "select count(*) from landed")).toBe(String(visible));

      const inspected = await command(["inspect", "coverage", "-c", p.config, "--json"]);
      const { places } = JSON.parse(inspected.output) as {
        places: { rows: number; streams: { holes: unknown[]; positions: string }[] }[];
      };
      expect(places.map((x) => [x.rows, x.streams.length])).toEqual([[visible, PARTITIONS]]);
      expect(places[0]?.streams.flatMap((s) => s.holes)).toEqual([]);
    },
    LIMIT,
  );

  test(
    "a second process is refused while the first lives, and takes over when it was killed",
    async () => {
      const { topic, visible } = await filled(served, 2000);
      const database = await freshDatabase();
      const p = pipeline({ served, topic, database });
      const first = stream(p);
      await first.saw("set.covered");
      const second = await stream(p).ended();
      expect([second.code, second.failure?.code]).toEqual([3, "coverage.owned"]);
      first.kill("SIGKILL");
      await first.ended();
      await catchUp(p);
      const counts =
        "select count(*), count(distinct (_twg_source_partition, _twg_source_offset)) from landed";
      expect(await psql(database, counts)).toBe(`${visible}|${visible}`);
    },
    LIMIT,
  );

  test(
    "two members of a group share the partitions, and one that is killed leaves its own to the other",
    async () => {
      const { topic, visible } = await filled(served, 3000);
      const database = await freshDatabase();
      const source = { group_protocol: "classic", session_timeout_ms: "6s" };
      const [first, second] = [0, 1].map(() => stream(pipeline({ served, topic, database, source })));
      // Whoever was first may have read everything by now; what counts is that both have partitions.
      await Promise.all([first?.saw("stream.begun"), second?.saw("stream.begun")]);
      first?.kill("SIGKILL");
      await first?.ended();
      const wanted = JSON.stringify({ records: 1000, partitions: PARTITIONS, seed: 14 });
      const more = await python_<{ visible: number }>("produce.py", [served.plain.join(","), topic, wanted]);
      const counts =
        "select count(*), count(distinct (_twg_source_partition, _twg_source_offset)) from landed";
      const all = `${visible + more.visible}|${visible + more.visible}`;
      await until(async () => (await psql(database, counts)) === all);
      second?.kill("SIGTERM");
      expect((await second?.ended())?.code).toBe(0);
      expect(await psql(database, counts)).toBe(all);
    },
    LIMIT,
  );

  test(
    "what cannot be is refused at the start: exit code, code, and no secret in what is printed",
    async () => {
      const { topic } = await filled(served, 100);
      const database = await freshDatabase();
      const { host, port, user } = server();
      const tried = async (wanted: Partial<Wanted>) => {
        const ended = await stream(pipeline({ served, topic, database, ...wanted })).ended();
        return [ended.code, ended.failure?.code];
      };
      SECRETS.add("wr0ng-one");
      expect(
        await tried({ sink: { url: `postgres://${user}:wr0ng-one@${host}:${port}/${database}` } }),
      ).toEqual([3, "postgres.auth_failed"]);
      expect(await tried({ sink: { url: `postgres://${user}:wr0ng-one@${host}/x/y?ssl=1` } })).toEqual([
        2,
        "postgres.url_invalid",
      ]);
      expect(
        await tried({ sink: { url: `postgres://${user}:wr0ng-one@${host}:${port}/x?sslmode=require` } }),
      ).toEqual([2, "postgres.url_invalid"]);
      await psql(database, "create unlogged table landed(a int)");
      expect(await tried({})).toEqual([3, "postgres.table_mismatch"]);
    },
    LIMIT,
  );

  test(
    "a rename of the table while it runs is waited out, and told",
    async () => {
      const { topic, visible } = await filled(served, 2000);
      const database = await freshDatabase();
      const p = pipeline({ served, topic, database });
      const running = stream(p);
      await running.saw("set.covered");
      await psql(database, "alter table landed rename to away");
      const wanted = JSON.stringify({ records: 500, partitions: PARTITIONS, seed: 13 });
      const more = await python_<{ visible: number }>("produce.py", [served.plain.join(","), topic, wanted]);
      await running.saw("sink.troubled", (l) => JSON.stringify(l.fields).includes("postgres.missing"));
      await psql(database, "alter table away rename to landed");
      await running.saw("sink.recovered");
      running.kill("SIGTERM");
      expect((await running.ended()).code).toBe(0);
      await catchUp(p);
      expect(await psql(database, "select count(*) from landed")).toBe(String(visible + more.visible));
    },
    LIMIT,
  );

  test(
    "a password that was rotated: SIGHUP reads it again, new connections of lanes and coverage use it",
    async () => {
      const { topic, visible } = await filled(served, 1000);
      const database = await freshDatabase();
      const { host, port } = server();
      const role = `rotating_${process.pid}`;
      const [first, second] = ["first-pg-password-5d", "second-pg-password-8e"] as const;
      SECRETS.add(first).add(second);
      await psql(
        database,
        `create role ${role} login password '${first}'; grant create on database ${database} to ${role}; grant create on schema public to ${role}`,
      );
      try {
        const folder = workFolder();
        const place = join(folder, "place");
        const write = (password: string) =>
          writeFileSync(place, `postgres://${role}:${password}@${host}:${port}/${database}`);
        write(first);
        const sink = { url: { secret: "place" } };
        const p = pipeline({ served, topic, database, sink, secrets: { dir: folder } });
        const running = stream(p);
        const landed = async () =>
          Number(await psql(database, "select count(*) from landed").catch(() => "0"));
        await until(async () => (await landed()) === visible);
        await psql(database, `alter role ${role} password '${second}'`);
        write(second);
        running.kill("SIGHUP");
        expect((await running.saw("secrets.reread")).fields).toMatchObject({ changed: 1 });
        await psql(
          "postgres",
          `select pg_terminate_backend(pid) from pg_stat_activity where usename = '${role}'`,
        );
        const wanted = JSON.stringify({ records: 500, partitions: PARTITIONS, seed: 15 });
        const more = await python_<{ visible: number }>("produce.py", [
          served.plain.join(","),
          topic,
          wanted,
        ]);
        await until(async () => (await landed()) === visible + more.visible);
        running.kill("SIGTERM");
        expect((await running.ended()).code).toBe(0);
        write(first);
        expect((await stream(p).ended()).failure?.code).toBe("postgres.auth_failed");
      } finally {
        await psql(database, `drop owned by ${role}; drop role ${role}`);
      }
    },
    LIMIT,
  );

  test(
    "upsert: of each key the latest record stands, also when the pipeline reads everything again",
    async () => {
      const { topic } = await filled(served, 3000);
      const database = await freshDatabase();
      const append = pipeline({ served, topic, database });
      await catchUp(append);
      const upsert = { name: "state", table: "public.state", mode: "upsert", rejects: "public.refused" };
      const config = { served, topic, database, sink: upsert };
      const p = pipeline({ ...config, source: { group: `upsert-g-${topic}` } });
      await catchUp(p);
      // The expected rows come from the table of all records: within a partition the last offset of each key.
      const last = `select distinct on (_twg_source_key, _twg_source_partition) * from landed where _twg_source_key is not null
        order by _twg_source_key, _twg_source_partition, _twg_source_offset desc`;
      const winners = `select distinct on (_twg_source_key) _twg_record_id from (${last}) l
        order by _twg_source_key, _twg_source_timestamp desc nulls last, _twg_source_partition desc`;
      const differ = `select (select count(*) from state), (select count(*) from (${winners}) w),
        (select count(*) from state full join (${winners}) w using (_twg_record_id) where state._twg_source_topic is null or w._twg_record_id is null)`;
      const [rows, want, different] = (await psql(database, differ)).split("|").map(Number);
      expect(rows).toBeGreaterThan(0);
      expect([rows, different]).toEqual([want!, 0]);
      const keyless = await psql(database, "select count(*) from landed where _twg_source_key is null");
      expect(await psql(database, "select count(*) from refused")).toBe(keyless);
      const shown = () =>
        psql(
          database,
          "select md5(string_agg(_twg_record_id::text, ',' order by _twg_record_id)) from state",
        );
      const before = await shown();
      await psql(
        database,
        "delete from twg.coverage where sink = 'state'; update twg.stream set origin = 0 where sink = 'state'",
      );
      // Under another group, which has no commits, it reads what is not covered.
      await catchUp(pipeline({ ...config, source: { group: `again-g-${topic}` } }, p.folder));
      expect(await shown()).toBe(before);
    },
    LIMIT,
  );
});

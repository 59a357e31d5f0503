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
  readonly sink?: string;
  readonly source?: string;
  readonly url?: string;
}

function pipeline(
  { served, topic, database, sink = "", source = "", url }: Wanted,
  folder = workFolder(),
): Pipeline {
  const { host, port, user, password } = server();
  SECRETS.add(password).add(encodeURIComponent(password));
  mkdirSync(folder, { recursive: true });
  const config = join(folder, "twg.toml");
  const place = url ?? `postgres://${user}:${encodeURIComponent(password)}@${host}:${port}/${database}`;
  writeFileSync(
    config,
    `[pipeline]
name = "e2e"
state_dir = "${join(folder, "state")}"
[source]
type = "kafka"
bootstrap = ${JSON.stringify(served.plain)}
topics = ["${topic}"]
group = "g-${topic}"
${source}
[[sink]]
name = "raw"
type = "postgres"
url = "${place}"
sslmode = "disable"
table = "public.landed"
create = true
commit_interval_ms = "300ms"
${sink}
[observability]
listen = "off"
`,
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
      const source = 'group_protocol = "classic"\nsession_timeout_ms = "6s"';
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
      expect(await tried({ url: `postgres://${user}:wr0ng-one@${host}:${port}/${database}` })).toEqual([
        3,
        "postgres.auth_failed",
      ]);
      expect(await tried({ url: `postgres://${user}:wr0ng-one@${host}/x/y?ssl=1` })).toEqual([
        2,
        "postgres.url_invalid",
      ]);
      expect(await tried({ url: `postgres://${user}:wr0ng-one@${host}:${port}/x?sslmode=require` })).toEqual([
        2,
        "postgres.url_invalid",
      ]);
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
});

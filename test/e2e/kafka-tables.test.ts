/**
 * Goal: decoded rows and what cannot be decoded land in topics, each once: rows as Avro, Protobuf and JSON by schemas that are
 * registered, refused records with their bytes and their reason. A kill in the middle doubles nothing, and what it left out is
 * filled by recovery. Method: orders that were encoded by hand in Python, an independent registry; librdkafka reads
 * the topics, the vendor's deserializers the rows.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { demandBrokers } from "./demand-brokers.ts";
import { filesSink, pipelineToml, topicSink } from "./pipeline-toml.ts";
import { createTopic, fresh, MAIN, python_, type Served } from "./real-kafka.ts";
import { catchUp, command, type Pipeline, stream, workFolder } from "./twg.ts";

const RECORDS = Number(process.env.TWG_E2E_RECORDS ?? "2000");
const PARTITIONS = 3;
const LIMIT = 120_000 + RECORDS;

demandBrokers("decoded records into Kafka");

const FIELDS = [
  { name: "id", type: "long" },
  { name: "name", type: "string" },
  { name: "price", type: "double" },
  { name: "note", type: ["null", "string"], default: null },
];
const schema = (...more: unknown[]) =>
  JSON.stringify({ type: "record", name: "Order", fields: [...FIELDS, ...more] });

interface RealRegistry {
  readonly server: string;
  readonly python: string;
}

const registry = JSON.parse(process.env["TWG_REAL_REGISTRY"] ?? "null") as RealRegistry | null;
if (registry === null)
  console.error(
    "SKIP: TWG_REAL_REGISTRY names no independent registry; decoded rows in topics are not tried",
  );

/** Sinks, after which topics are named, and what they write. */
const ROWS = [
  ["avro", "avro"],
  ["protobuf", "protobuf"],
  ["json", "json_schema"],
] as const;

function pipeline(served: Served, topic: string, url: string): Pipeline {
  const folder = workFolder();
  const schemas = join(folder, "schemas");
  mkdirSync(schemas, { recursive: true });
  writeFileSync(join(schemas, "1.avsc"), schema());
  writeFileSync(join(schemas, "2.avsc"), schema({ name: "qty", type: ["null", "int"], default: null }));
  const config = join(folder, "twg.toml");
  const rows = ROWS.map(([name, format]) =>
    topicSink(served.plain, name, `${name}.${topic}`, {
      ...{ receives: "decoded", partition: "same", metadata: "locator" },
      encode: { format, record: "acme.Order", registry: { url: [url] } },
    }),
  );
  writeFileSync(
    config,
    pipelineToml(folder, {
      pipeline: { name: topic, lanes: 2 },
      source: { bootstrap: served.plain, topics: [topic], group: `g-${topic}` },
      decode: { format: "avro", framing: "confluent", schema_dir: schemas },
      sink: [
        filesSink(folder, "raw", { role: "primary_raw" }),
        topicSink(served.plain, "dead", "dead.{topic}", { receives: "rejected", create: true }),
        ...rows,
      ],
    }),
  );
  return { folder, lake: join(folder, "raw"), config };
}

interface Made {
  readonly good: number;
  readonly bad: number;
  readonly tombstones: number;
}

const produce = (served: Served, topic: string, first: number, records: number) =>
  python_<Made>("avro_orders.py", [
    "produce",
    served.plain.join(","),
    topic,
    JSON.stringify({ first, records, partitions: PARTITIONS }),
  ]);

async function freshTopic(served: Served): Promise<string> {
  const topic = fresh("orders");
  const replicas = Math.min(3, served.plain.length);
  const config = { "min.insync.replicas": String(Math.min(2, replicas)) };
  await createTopic(served, topic, { partitions: PARTITIONS, config });
  for (const [name] of ROWS)
    await createTopic(served, `${name}.${topic}`, { partitions: PARTITIONS, config });
  return topic;
}

describe.skipIf(MAIN === null || registry === null)("decoded records into Kafka", () => {
  const served = MAIN as Served;
  const bootstrap = MAIN?.plain.join(",") ?? "";
  let server: Bun.Subprocess<"ignore", "pipe", "ignore">;
  let url = "";
  beforeAll(async () => {
    server = Bun.spawn([registry!.server], { stdin: "ignore", stdout: "pipe", stderr: "ignore" });
    for await (const chunk of server.stdout) {
      url = new TextDecoder().decode(chunk).trim();
      break;
    }
  });
  afterAll(async () => {
    server.kill();
    await server.exited;
  });

  test(
    "rows and dead letters, each once; killed in the middle nothing is doubled, and what is missing recovery fills",
    async () => {
      const topic = await freshTopic(served);
      const p = pipeline(served, topic, url);
      const seen = () => python_("avro_orders.py", ["topics", bootstrap, topic, url], registry!.python);
      const clean = { doubled: 0, foreign: 0, lost: 0, wrong: [] };
      const made = await produce(served, topic, 0, RECORDS);
      await catchUp(p);
      const rows = { ...clean, rows: made.good + made.tombstones };
      expect(await seen()).toMatchObject({
        dead: { ...clean, letters: made.bad },
        avro: { ...rows, schema: expect.stringContaining('"name":"Order","namespace":"acme"') },
        protobuf: { ...rows, schema: expect.stringContaining("package acme;\n\nmessage Order {") },
        json: { ...rows, schema: expect.stringContaining('"title":"acme.Order"') },
      });
      let first = RECORDS;
      for (const point of ["dead/before_commit:1", "protobuf/commit_answered:1"]) {
        await produce(served, topic, first, 300);
        first += 300;
        const killed = await stream(p, { environment: { TWG_CRASH_AT: point }, untilCaughtUp: true }).ended();
        expect([point, killed.signal]).toEqual([point, "SIGKILL"]);
      }
      await catchUp(p);
      expect(await command(["recover", "-c", p.config])).toMatchObject({ code: 0 });
      expect(await seen()).toMatchObject({ dead: clean, avro: clean, protobuf: clean, json: clean });
    },
    LIMIT,
  );
});

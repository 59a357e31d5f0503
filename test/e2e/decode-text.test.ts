/**
 * Goal: JSON that nobody wrote a schema for, and XML, land typed in one table; a restart goes on with the columns that were
 * learned and adds what is new, and explain shows them. Method: records whose fields follow from their number, encoded by
 * Python's own libraries; pyarrow reads what landed.
 */
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { demandBrokers } from "./demand-brokers.ts";
import { filesSink, pipelineToml } from "./pipeline-toml.ts";
import { createTopic, fresh, MAIN, python_, type Served } from "./real-kafka.ts";
import { catchUp, command, type Pipeline, stream, workFolder } from "./twg.ts";

const RECORDS = Number(process.env.TWG_E2E_RECORDS ?? "2000");
const LIMIT = 120_000 + RECORDS;

demandBrokers("decoded text");

interface Topics {
  readonly json: string;
  readonly xml: string;
}

/** Without prefixes: elements of any namespace. */
const XML_COLUMNS = [
  { name: "id", type: "int64", nullable: false, source: "@id" },
  { name: "name", type: "string" },
  { name: "price", type: "double" },
  { name: "qtys", type: "list<int64>", source: "qty" },
  { name: "to", type: "struct<city string>" },
];

function pipeline(served: Served, { json, xml }: Topics): Pipeline {
  const folder = workFolder();
  const schema = join(folder, "xml.json");
  writeFileSync(schema, JSON.stringify({ columns: XML_COLUMNS }));
  const config = join(folder, "twg.toml");
  writeFileSync(
    config,
    pipelineToml(folder, {
      pipeline: { lanes: 2 },
      source: { bootstrap: served.plain, topics: [json, xml], group: `g-${json}` },
      decode: {
        ...{ format: "json", infer: { max_records: 200 } },
        topic: [{ name: xml, format: "xml", schema_file: schema }],
      },
      sink: [
        filesSink(folder, "raw", { role: "primary_raw" }),
        filesSink(folder, "typed", { receives: "decoded" }),
        filesSink(folder, "refused", { receives: "rejected" }),
      ],
    }),
  );
  return { folder, lake: join(folder, "raw"), config };
}

interface Made {
  readonly good: number;
  readonly bad: number;
}

const produce = (served: Served, topics: Topics, more: object) =>
  python_<Made>("text_orders.py", [
    "produce",
    served.plain.join(","),
    JSON.stringify({ ...topics, ...more }),
  ]);

const landed = ({ folder }: Pipeline) =>
  python_<{ noted: number }>("text_orders.py", ["check", join(folder, "typed"), join(folder, "refused")]);

async function columnsOf({ config }: Pipeline, topic: string): Promise<string[]> {
  const { output } = await command(["config", "explain", "-c", config, "--json"]);
  const { decode } = JSON.parse(output) as {
    decode: { topic: string; columns: { column: string; type: string }[] | null }[];
  };
  return (decode.find((t) => t.topic === topic)?.columns ?? []).map((c) => `${c.column} ${c.type}`);
}

describe.skipIf(MAIN === null)("decoded text", () => {
  const served = MAIN as Served;

  test(
    `${RECORDS} orders without a schema and as XML land typed, and after a restart with a field more`,
    async () => {
      const topics: Topics = { json: fresh("json"), xml: fresh("xml") };
      for (const topic of Object.values(topics)) await createTopic(served, topic, { partitions: 2 });
      const p = pipeline(served, topics);
      const first = await produce(served, topics, { first: 0, records: RECORDS, note: false });
      await catchUp(p);
      const whole = { rows: first.good, rejects: first.bad, doubled: 0, noted: 0, wrong: [] };
      expect(await landed(p)).toEqual(whole);
      const columns = [
        ...["id int64", "name string", "price double", "big int64", "to struct", "to.city string"],
        ...["qtys list<int64>", "ok boolean"],
      ];
      expect(await columnsOf(p, topics.json)).toEqual(columns);

      const second = await produce(served, topics, { first: RECORDS, records: 200, note: true });
      const killed = await stream(p, {
        environment: { TWG_CRASH_AT: "typed/before_intend:1" },
        untilCaughtUp: true,
      }).ended();
      expect(killed.signal).toBe("SIGKILL");
      const third = await produce(served, topics, { first: RECORDS + 200, records: 200, note: true });
      await catchUp(p);
      const after = await landed(p);
      expect(after).toMatchObject({ doubled: 0, wrong: [] });
      expect((after as unknown as { rows: number }).rows).toBeGreaterThanOrEqual(first.good + third.good);
      expect(after.noted).toBeGreaterThan(0);
      expect(second.bad).toBeGreaterThan(0);
      expect(await columnsOf(p, topics.json)).toEqual([...columns, "note string"]);
    },
    LIMIT,
  );
});

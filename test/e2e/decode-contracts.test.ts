/**
 * Goal: topics of two formats land in one table that a data contract describes: JSON by it, Avro resolved to it, keys of one
 * topic and none of the other; what does not fit is refused by itself. Method: records written by our own producer to a real
 * broker, whose fields follow from their number; hyparquet reads what landed.
 */
import { describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { columnsOf, type OneRecord } from "../../src/adapters/kafka/producer/columns.ts";
import { avroEncoder } from "../../src/core/codecs/avro/encode-value.ts";
import { demandBrokers } from "./demand-brokers.ts";
import { realProducer } from "./kafka-producer-parts.ts";
import { landedRows } from "./landed-rows.ts";
import { filesSink, pipelineToml } from "./pipeline-toml.ts";
import { createTopic, fresh, MAIN, type Served } from "./real-kafka.ts";
import { catchUp, type Pipeline, workFolder } from "./twg.ts";

const RECORDS = 200;
const BAD = [7, 99];

demandBrokers("tables by a data contract");

const WRITER = JSON.stringify({
  type: "record",
  name: "Order",
  fields: [
    { name: "dropped", type: "string" },
    { name: "id", type: "long" },
    { name: "qty", type: "long" },
  ],
});

const contractOf = (json: string, avro: string) => `apiVersion: v3.1.0
kind: DataContract
id: shop
version: 1.0.0
status: active
schema:
${[json, avro]
  .map(
    (topic) => `  - name: ${topic}
    logicalType: object
    properties:
      - { name: order id, physicalName: id, logicalType: integer, required: true }
      - { name: qty, logicalType: integer, logicalTypeOptions: { format: i16 } }
      - { name: price, logicalType: number, physicalType: "DECIMAL(9,2)" }
`,
  )
  .join("")}`;

function pipeline(served: Served, json: string, avro: string): Pipeline {
  const folder = workFolder();
  mkdirSync(join(folder, "schemas"));
  writeFileSync(join(folder, "schemas/5.avsc"), WRITER);
  const contract = join(folder, "shop.odcs.yaml");
  writeFileSync(contract, contractOf(json, avro));
  const config = join(folder, "twg.toml");
  writeFileSync(
    config,
    pipelineToml(folder, {
      pipeline: { lanes: 1 },
      source: { bootstrap: served.plain, topics: [json, avro], group: `g-${json}` },
      decode: {
        ...{ format: "json", framing: "none", schema_file: contract, schema_dir: join(folder, "schemas") },
        key: { format: "text" },
        topic: [
          {
            ...{ name: avro, format: "avro", framing: "confluent", reader_schema: contract },
            key: { format: "none" },
          },
        ],
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

const rowsOf = ({ folder }: Pipeline, sink: string) => landedRows(join(folder, sink), "**/*.parquet");

const qtyOf = (i: number) => (BAD.includes(i) ? 40_000 : i);

async function produce(served: Served, topic: string, record: (i: number) => OneRecord): Promise<void> {
  const { signal } = new AbortController();
  const { producer, close } = await realProducer(served.plain, {}, signal);
  const records = Array.from({ length: RECORDS }, (_, i) => record(i));
  await (await producer.send(topic, columnsOf(records), { partition: 0, signal })).done;
  await close();
}

describe.skipIf(MAIN === null)("tables by a data contract", () => {
  const served = MAIN as Served;
  test("JSON and Avro, with keys and without", async () => {
    const [json, avro] = [fresh("json"), fresh("avro")];
    for (const topic of [json, avro]) await createTopic(served, topic);
    await produce(served, json, (i) => ({
      key: `k${i}`,
      value: `{"id":${i},"qty":${qtyOf(i)},"price":${i}.25}`,
    }));
    const { encode } = avroEncoder({ text: WRITER, references: [] });
    await produce(served, avro, (i) => {
      const long = (n: number) => ({ kind: "long", value: BigInt(n) }) as const;
      const payload = encode({
        kind: "record",
        fields: [
          { name: "dropped", value: { kind: "string", value: "x" } },
          { name: "id", value: long(i) },
          { name: "qty", value: long(qtyOf(i)) },
        ],
      });
      return { key: `k${i}`, value: Buffer.concat([Uint8Array.of(0, 0, 0, 0, 5), payload]) };
    });
    const p = pipeline(served, json, avro);
    await catchUp(p);
    const good = Array.from({ length: RECORDS }, (_, i) => i).filter((i) => !BAD.includes(i));
    const typed = await rowsOf(p, "typed");
    const of = (topic: string) =>
      typed
        .filter((r) => r["_twg_source_topic"] === topic)
        // A file that was written before the other topic's columns came has none of them.
        .map(({ key_value = null, id, qty, price = null }) => [key_value, Number(id), qty, price])
        .sort((a, b) => Number(a[1]) - Number(b[1]));
    expect(of(json)).toEqual(good.map((i) => [`k${i}`, i, i, i + 0.25]));
    expect(of(avro)).toEqual(good.map((i) => [null, i, i, null]));
    expect(typed).toHaveLength(2 * good.length);
    const refused = (await rowsOf(p, "refused")).map((r) => [
      r["_twg_source_topic"],
      Number(r["_twg_source_offset"]),
      r.code,
      r.path,
    ]);
    const wanted = [json, avro].flatMap((topic) => BAD.map((at) => [topic, at, "decode.range", "qty"]));
    const ordered = (rows: unknown[][]) => rows.map((r) => JSON.stringify(r)).sort();
    expect(ordered(refused)).toEqual(ordered(wanted));
  }, 60_000);
});

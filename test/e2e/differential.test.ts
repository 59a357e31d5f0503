/**
 * Goal: what a real broker holds is what lands, value by value: every codec, transactions, keys, headers, nulls and
 * timestamps. Method: librdkafka reads the topic, pyarrow, DuckDB and hyparquet read the files; all must agree.
 * TWG_E2E_RECORDS sets the size (default 300,000).
 */
import { describe, expect, test } from "bun:test";
import { countLanded } from "../../scripts/torture/landed.ts";
import { codecsOnDisk } from "./batches-on-disk.ts";
import { demandBrokers } from "./demand-brokers.ts";
import { CLUSTERS, compareWithKafka, createTopic, fresh, python_, type Served } from "./real-kafka.ts";
import { catchUp, pipeline } from "./twg.ts";

const RECORDS = Number(process.env.TWG_E2E_RECORDS ?? "300000");
const PARTITIONS = 6;
const LIMIT = 120_000 + RECORDS;

demandBrokers("differential run");

async function fill(served: Served, topic: string): Promise<{ visible: number; aborted: number }> {
  const replicas = Math.min(3, served.plain.length);
  await createTopic(served, topic, {
    partitions: PARTITIONS,
    config: { "min.insync.replicas": String(Math.min(2, replicas)) },
  });
  const wanted = JSON.stringify({ records: RECORDS, partitions: PARTITIONS, seed: 11 });
  return python_("produce.py", [served.plain.join(","), topic, wanted]);
}

for (const served of CLUSTERS) {
  describe(`Kafka ${served.version}`, () => {
    test(
      `${RECORDS} records of mixed kinds in ${PARTITIONS} partitions land as librdkafka reads them`,
      async () => {
        const topic = fresh("differential");
        const filled = await fill(served, topic);
        const kinds = codecsOnDisk(served, topic, PARTITIONS);
        expect(kinds).toEqual({
          codecs: ["gzip", "lz4", "none", "snappy", "zstd"],
          transactional: true,
          control: true,
        });

        const p = pipeline({
          served,
          topics: [topic],
          group: `g-${topic}`,
          sink: 'roll_interval_ms = "5s"\nroll_bytes = "16MiB"',
        });
        await catchUp(p);

        const compared = await compareWithKafka(served, topic, p.lake);
        expect(compared.differences).toEqual([]);
        expect(compared.rows).toBe(filled.visible);
        expect(compared.kafka_rows).toBe(filled.visible);
        expect(compared.duckdb).toEqual(compared.kafka);
        const hyparquet = await countLanded(p.lake, null);
        expect([hyparquet.rows, hyparquet.doubled]).toEqual([filled.visible, 0]);
        if (process.env.TWG_E2E_RECORDS !== undefined) {
          console.log(JSON.stringify({ version: served.version, ...filled, ...compared }));
        }
      },
      LIMIT,
    );
  });
}

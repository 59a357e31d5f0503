/**
 * Goal: PostgreSQL's table judges itself: columns are added and become wider, and a schema that it cannot take costs its own records,
 * in every lane, also where that schema is the first after a restart; lanes that had rows for the narrower type lose none. Method: twg as a process, the test broker, a real server.
 */
import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/adapters/system/clock.ts";
import { buildBatch } from "../brokers/kafka/batch-builder.ts";
import { FakeCluster } from "../brokers/kafka/cluster.ts";
import { listenCluster } from "../brokers/kafka/sockets.ts";
import { demandPostgres, freshDatabase, POSTGRES, psql } from "../real/postgres/server.ts";
import { landedRows } from "./landed-rows.ts";
import { filesSink, pipelineToml, tableSink } from "./pipeline-toml.ts";
import { catchUp, workFolder } from "./twg.ts";

demandPostgres("tables of PostgreSQL that grow");

test.skipIf(POSTGRES === null)(
  "a table of PostgreSQL grows by columns and wider types, and refuses what it cannot take",
  async () => {
    const cluster = new FakeCluster({ clock: systemClock });
    cluster.createTopic("t", { partitions: 2 });
    const listening = listenCluster(cluster);
    const folder = workFolder();
    const schemas = join(folder, "schemas");
    mkdirSync(schemas);
    const all: Record<number, unknown[]> = {
      1: [{ name: "id", type: "int" }],
      2: [
        { name: "id", type: "int" },
        { name: "q", type: ["null", "string"], default: null },
      ],
      4: [{ name: "id", type: "long" }],
      3: [{ name: "id", type: "string" }],
      5: [{ name: "p", type: "float" }],
      6: [{ name: "p", type: "double" }],
    };
    for (const [id, fields] of Object.entries(all))
      writeFileSync(join(schemas, `${id}.avsc`), JSON.stringify({ type: "record", name: "R", fields }));
    const database = await freshDatabase();
    const config = join(folder, "c.toml");
    writeFileSync(
      config,
      pipelineToml(folder, {
        pipeline: { name: "p", lanes: 2 },
        source: { bootstrap: listening.bootstrap, topics: ["t"], group: "g" },
        decode: { format: "avro", framing: "confluent", schema_dir: schemas },
        sink: [
          filesSink(folder, "raw", { role: "primary_raw" }),
          filesSink(folder, "refused", { receives: "rejected" }),
          tableSink(database, "pg", { receives: "decoded", table: "public.o" }),
        ],
      }),
    );
    const p = { folder, lake: "", config };
    const sent = (s: number, ...b: number[]) => Uint8Array.of(0, 0, 0, 0, s, ...b);
    const put = (part: number, v: Uint8Array[]) =>
      cluster.append("t", part, buildBatch({ records: v.map((value) => ({ value })) }));
    put(0, [sent(1, 2)]);
    await catchUp(p);
    // A restart meets what does not fit first, in every lane.
    for (const part of [0, 1])
      put(part, [sent(3, 2, 120), sent(4, 4), sent(1, 6), sent(2, 8, 2, 2, 97), sent(1, 10)]);
    await catchUp(p);
    expect((await psql(database, "select id, q from o order by id")).split("\n")).toEqual([
      "1|",
      "2|",
      "2|",
      "3|",
      "3|",
      "4|a",
      "4|a",
      "5|",
      "5|",
    ]);
    const refused = await landedRows(join(folder, "refused"));
    const told = refused.map((r) => `${r["code"]} ${r["message"]}`);
    expect(await psql(database, "select distinct pg_typeof(id) from o")).toBe("bigint");
    const double = (n: number) => new Uint8Array(Float64Array.of(n).buffer);
    const float = (n: number) => new Uint8Array(Float32Array.of(n).buffer);
    for (const part of [0, 1])
      put(part, [sent(5, ...float(1.5)), sent(6, ...double(1e300)), sent(5, ...float(0.5))]);
    await catchUp(p);
    expect((await psql(database, "select p from o where p is not null order by p")).split("\n")).toEqual([
      "0.5",
      "0.5",
      "1.5",
      "1.5",
      "1e+300",
      "1e+300",
    ]);
    // The other lane may have made it wider by then.
    const why =
      /^decode.incompatible the schema does not fit the table: public.o does not fit: column id is (integer|bigint), wanted is text$/;
    expect(told.map((t) => why.test(t) || t)).toEqual([true, true]);
    listening.close();
  },
  90_000,
);

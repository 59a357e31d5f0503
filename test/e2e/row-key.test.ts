/**
 * Goal: with `row_key` what is known of a sink may be lost, and recovery brings no row a second time: of a raw table and of one of
 * decoded rows; a row that somebody changed stops it with its code. Method: twg as a process, the test broker, a
 * real server, whose coverage is deleted by hand.
 */
import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/adapters/system/clock.ts";
import { buildBatch } from "../brokers/kafka/batch-builder.ts";
import { FakeCluster } from "../brokers/kafka/cluster.ts";
import { listenCluster } from "../brokers/kafka/sockets.ts";
import { demandPostgres, freshDatabase, lines, POSTGRES, psql } from "../real/postgres/server.ts";
import { filesSink, pipelineToml, tableSink } from "./pipeline-toml.ts";
import { catchUp, command, workFolder } from "./twg.ts";

const RECORDS = 300;

const CONTRACT = `apiVersion: v3.1.0
kind: DataContract
id: shop
version: 1.0.0
status: active
schema:
  - name: orders
    logicalType: object
    properties:
      - { name: id, logicalType: integer }
      - { name: note, logicalType: string }
`;

demandPostgres("rows once by their key, end to end");

test.skipIf(POSTGRES === null)(
  "coverage that is lost makes no row twice",
  async () => {
    const cluster = new FakeCluster({ clock: systemClock });
    cluster.createTopic("t", { partitions: 2 });
    const listening = listenCluster(cluster);
    const folder = workFolder();
    const database = await freshDatabase();
    const config = join(folder, "c.toml");
    const schema = join(folder, "shop.odcs.yaml");
    writeFileSync(schema, CONTRACT);
    writeFileSync(
      config,
      pipelineToml(folder, {
        pipeline: { name: "p", lanes: 2 },
        source: { bootstrap: listening.bootstrap, topics: ["t"], group: "g" },
        decode: { format: "json", framing: "none", schema_file: schema },
        sink: [
          filesSink(folder, "raw", { role: "primary_raw" }),
          filesSink(folder, "refused", { receives: "rejected" }),
          tableSink(database, "copies", { row_key: true }),
          tableSink(database, "orders", { row_key: true, receives: "decoded", metadata: "none" }),
        ],
      }),
    );
    const text = (n: number) => new TextEncoder().encode(JSON.stringify({ id: n, note: `at ${n}` }));
    for (const part of [0, 1])
      for (let at = 0; at < RECORDS; at += 30) {
        const records = Array.from({ length: 30 }, (_, i) => ({ value: text(1000 * part + at + i) }));
        cluster.append("t", part, buildBatch({ records }));
      }
    await catchUp({ folder, lake: "", config });
    // A round passes a table by that took nothing of two windows, for which it is enough that a busy machine is slow. That is
    // `recovery.behind` without a code of the server, and no fault of the rows: the next round goes on.
    const recover = async () => {
      for (;;) {
        const ended = await command(["recover", "-c", config, "--log-level", "info"]);
        const isPassedBy = ended.failure?.code === "recovery.behind" && !ended.output.includes("postgres.");
        if (!isPassedBy) return ended;
      }
    };
    const counts = async () =>
      lines(
        await psql(
          database,
          `select count(*), count(distinct _twg_record_id) from public.copies
           union all select count(*), count(distinct id) from public.orders`,
        ),
      );
    const whole = `${2 * RECORDS}|${2 * RECORDS}`;
    expect((await recover()).code).toBe(0);
    expect(await counts()).toEqual([whole, whole]);
    const ids = "select _twg_record_id from public.orders order by 1";
    const before = await psql(database, ids);

    // Some rows go with it: they come again, and only they.
    await psql(
      database,
      "delete from twg.coverage; delete from public.orders where id % 100 = 7; delete from public.copies where _twg_source_offset = 9",
    );
    const again = await recover();
    expect(again.code).toBe(0);
    expect(again.output).toContain("were in the table already");
    expect(await counts()).toEqual([whole, whole]);
    expect(await psql(database, ids)).toBe(before);

    await psql(database, "delete from twg.coverage; update public.orders set note = 'another' where id = 42");
    const stopped = await recover();
    expect([stopped.code, stopped.failure?.code]).toEqual([1, "recovery.behind"]);
    expect(stopped.output).toContain("postgres.row_differs");
    expect(stopped.output).toContain("in note");
    expect(await counts()).toEqual([whole, whole]);
    await psql(database, "delete from public.orders where id = 42");
    expect((await recover()).code).toBe(0);
    expect(await counts()).toEqual([whole, whole]);
    expect(await psql(database, "select note from public.orders where id = 42")).toBe("at 42");
    listening.close();
  },
  180_000,
);

/**
 * Goal: all who write files of one table write one table: lanes and members of a group that alternate two schemas, one
 * that meets a third which does not fit, and a later run with a wider type. Method: real processes in a group over the
 * test broker on sockets; Avro by hand; every file's columns by its footer, every row by hyparquet.
 */
import { expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/adapters/system/clock.ts";
import { columnsOfFiles, newestFiles } from "../../src/commands/table-files.ts";
import { parseTable } from "../../src/core/coverage/table-json.ts";
import { typeText } from "../../src/core/types/type-text.ts";
import { buildBatch } from "../brokers/kafka/batch-builder.ts";
import { FakeCluster } from "../brokers/kafka/cluster.ts";
import { listenCluster } from "../brokers/kafka/sockets.ts";
import { landedRows } from "./landed-rows.ts";
import { filesSink, pipelineToml } from "./pipeline-toml.ts";
import { catchUp, type Pipeline, stream, workFolder } from "./twg.ts";
import { until } from "./until.ts";

const LIMIT = 90_000;
const PARTITIONS = 4;
const ROUNDS = 5;
const ID = { name: "id", type: "int" };
const QTY = { name: "qty", type: ["null", "int"], default: null };
const SCHEMAS: Readonly<Record<number, unknown[]>> = {
  1: [ID],
  2: [ID, QTY],
  3: [{ name: "id", type: "string" }],
  4: [{ name: "id", type: "long" }],
};

/** An int or long of Avro. */
function zigzag(n: number): number[] {
  const out: number[] = [];
  let rest = 2 * n;
  for (; rest > 127; rest = Math.floor(rest / 128)) out.push((rest % 128) | 128);
  return [...out, rest];
}

const envelope = (schema: number, ...payload: number[]) => Uint8Array.of(0, 0, 0, 0, schema, ...payload);
const one = (n: number) => envelope(1, ...zigzag(n));
const two = (n: number) => envelope(2, ...zigzag(n), 2, ...zigzag(n % 100));
const three = () => envelope(3, 2, 120);
const BIG = 2 ** 40;
const four = (n: number) => envelope(4, ...zigzag(BIG + n));

function pipeline(
  bootstrap: readonly string[],
  topics: readonly string[],
  member: string,
  folder: string,
): Pipeline {
  const schemas = join(folder, "schemas");
  mkdirSync(schemas, { recursive: true });
  for (const [id, fields] of Object.entries(SCHEMAS))
    writeFileSync(join(schemas, `${id}.avsc`), JSON.stringify({ type: "record", name: "R", fields }));
  const config = join(folder, `${member}.toml`);
  writeFileSync(
    config,
    pipelineToml(folder, {
      pipeline: { name: "p", lanes: 2, state_dir: join(folder, member) },
      source: { bootstrap, topics, group: "g", group_protocol: "classic" },
      decode: { format: "avro", framing: "confluent", schema_dir: schemas },
      sink: [
        filesSink(folder, "raw", { role: "primary_raw" }),
        filesSink(folder, "typed", { receives: "decoded" }),
        filesSink(folder, "refused", { receives: "rejected" }),
      ],
    }),
  );
  return { folder, lake: join(folder, "raw"), config };
}

/** Types that files have for a column, and how many files there are. */
async function typesOf(folder: string, column: string): Promise<[types: string[], files: number]> {
  const files = await columnsOfFiles(await newestFiles(folder, 10_000), "_twg_");
  const types = files.flatMap((f) => f.fields.filter((c) => c.name === column).map((c) => typeText(c.type)));
  return [[...new Set(types)].sort(), files.length];
}

function stored(folder: string): string[] {
  const place = join(folder, "typed/_twg/p/typed/table");
  const name = readdirSync(place).sort().at(-1)!;
  const version = Number(/(\d{12})/.exec(name)?.[1]);
  return parseTable(readFileSync(join(place, name)), name, version)
    .filter((f) => !f.name.startsWith("_twg_"))
    .map((f) => `${f.name} ${typeText(f.type)}`);
}

test(
  "two members alternate two schemas, a third costs its records alone, and a later run widens",
  async () => {
    const cluster = new FakeCluster({ clock: systemClock });
    const topics = ["t", "u"];
    for (const t of topics) cluster.createTopic(t, { partitions: PARTITIONS });
    const listening = listenCluster(cluster);
    const folder = workFolder();
    const put = (topic: string, partition: number, values: readonly Uint8Array[]) =>
      cluster.append(topic, partition, buildBatch({ records: values.map((value) => ({ value })) }));
    const ends = () =>
      topics.flatMap((t) => cluster.topic(t).partitions.map((p) => [t, p.index, p.log.end] as const));
    const landed = () =>
      ends().every(([t, p, end]) => end === 0n || cluster.committed("g", t, p)?.offset === end);
    const first = pipeline(listening.bootstrap, topics, "first", folder);
    put("t", 0, [one(0)]);
    await catchUp(first);
    expect(stored(folder)).toEqual(["id int32"]);

    // What does not fit is the first that each lane of each member meets.
    let [good, bad, n] = [1, 0, 0];
    const round = () => {
      for (const topic of topics)
        for (let p = 0; p < PARTITIONS; p++) {
          put(topic, p, [three(), one(++n), two(++n), one(++n), two(++n)]);
          good += 4;
          bad++;
        }
    };
    const members = [first, pipeline(listening.bootstrap, topics, "second", folder)].map((p) => stream(p));
    await until(
      "two members share the partitions",
      () => cluster.classicGroups.get("g")?.members.length === 2,
    );
    for (let i = 0; i < ROUNDS; i++) {
      round();
      await until("what is there has landed", landed);
    }
    for (const m of members) m.kill("SIGTERM");
    for (const m of members) expect((await m.ended()).code).toBe(0);
    expect(await landedRows(join(folder, "typed"))).toHaveLength(good);
    const refused = await landedRows(join(folder, "refused"));
    expect(refused).toHaveLength(bad);
    expect(
      refused.every((r) =>
        String(r["message"]).includes("id is int32 in the table and string in the schema"),
      ),
    ).toBe(true);
    const [types, files] = await typesOf(join(folder, "typed"), "id");
    expect(types).toEqual(["int32"]);
    // A set is a file; lanes of two members have one open each, and one more where a lane's table grew.
    expect(files).toBeLessThan(good / 3);
    const sealed = members.reduce(
      (sum, m) =>
        sum +
        m.log.filter((l) => l.event === "set.sealed" && l.fields.sink === "typed" && l.fields.files === 1)
          .length,
      1,
    );
    expect(files).toBe(sealed);
    expect(stored(folder)).toEqual(["id int32", "qty int32"]);

    put("u", 1, [one(1), four(7), two(3), three()]);
    await catchUp(first);
    expect((await typesOf(join(folder, "typed"), "id"))[0]).toEqual(["int32", "int64"]);
    const rows = await landedRows(join(folder, "typed"));
    expect(rows).toHaveLength(good + 3);
    expect(rows.filter((r) => BigInt(r["id"] as number) === BigInt(BIG + 7))).toHaveLength(1);
    expect(await landedRows(join(folder, "refused"))).toHaveLength(bad + 1);
    listening.close();
  },
  LIMIT,
);

/**
 * Goal: what recovery brings is what live ingest would have written at the time of the records: by the options and the schema file of
 * then, whatever has become of them, and with --replan by those of now. Method: a real broker; processes that are killed when raw has
 * covered something and no other sink has; records with a field that one plan ignores and the other has a column for.
 */
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { columnsOf } from "../../src/adapters/kafka/producer/columns.ts";
import { freshDatabase, POSTGRES, psql } from "../real/postgres/server.ts";
import { demandBrokers } from "./demand-brokers.ts";
import { realProducer } from "./kafka-producer-parts.ts";
import { landedRows } from "./landed-rows.ts";
import { filesSink, pipelineToml, type Section, tableSink } from "./pipeline-toml.ts";
import { createTopic, fresh, MAIN, type Served } from "./real-kafka.ts";
import { catchUp, command, type Pipeline, stream, workFolder } from "./twg.ts";

const RECORDS = 60;
/** Under the second plan it is no row: it has a field that nobody knows. */
const ODD = 7;

demandBrokers("plan epochs");

type PlanName = "a" | "b";

const contract = (plan: PlanName) => `apiVersion: v3.1.0
kind: DataContract
id: shop
version: 1.0.0
status: active
schema:
  - name: orders
    logicalType: object
    properties:
      - { name: id, logicalType: integer, logicalTypeOptions: { format: i32 } }
${plan === "a" ? "" : "      - { name: extra, logicalType: string }\n"}`;

/** `database`: raw is in a table of it, and no file. */
function configured(
  served: Served,
  topic: string,
  folder: string,
  plan: PlanName,
  database?: string,
): Pipeline {
  // The same file: what it said is nowhere but in what was kept.
  const schema = join(folder, "shop.odcs.yaml");
  writeFileSync(schema, contract(plan));
  const config = join(folder, "twg.toml");
  const raw = { role: "primary_raw" };
  const files = (name: string, more: Section) =>
    filesSink(folder, name, { roll_interval_ms: "200ms", ...more });
  writeFileSync(
    config,
    pipelineToml(folder, {
      pipeline: { lanes: 1 },
      source: { bootstrap: served.plain, topics: [topic], group: `g-${topic}` },
      decode: {
        ...{ format: "json", framing: "none", schema_file: schema },
        unknown_fields: plan === "a" ? "ignore" : "reject",
      },
      sink: [
        database === undefined
          ? files("raw", raw)
          : tableSink(database, "raw", { ...raw, commit_interval_ms: "200ms" }),
        files("typed", { receives: "decoded" }),
        files("again", { receives: "decoded" }),
        files("refused", { receives: "rejected" }),
      ],
    }),
  );
  return { folder, lake: join(folder, "raw"), config };
}

async function produce(served: Served, topic: string, from: number, next: number): Promise<void> {
  const { signal } = new AbortController();
  const { producer, close } = await realProducer(served.plain, {}, signal);
  const records = Array.from({ length: next - from }, (_, i) => {
    const id = from + i;
    return { key: "k", value: `{"id":${id},"extra":"e${id}"${id % 20 === ODD ? ',"odd":1' : ""}}` };
  });
  await (await producer.send(topic, columnsOf(records), { partition: 0, signal })).done;
  await close();
}

/** By offset: what the row has of the field that only one plan knows. */
async function landed({ folder }: Pipeline, sink: string): Promise<Map<number, string | null>> {
  const rows = new Map<number, string | null>();
  for (const row of await landedRows(join(folder, sink))) {
    const offset = Number(row["_twg_source_offset"]);
    expect([sink, offset, rows.has(offset)]).toEqual([sink, offset, false]);
    rows.set(offset, (row.extra as string | undefined) ?? null);
  }
  return new Map([...rows].sort(([a], [b]) => a - b));
}

/** What live ingest writes of a range under a plan. */
function rowsOf(plan: PlanName, from: number, next: number): [number, string | null][] {
  const all = Array.from({ length: next - from }, (_, i) => from + i);
  return plan === "a" ? all.map((i) => [i, null]) : all.filter(isKnown).map((i) => [i, `e${i}`]);
}

const isKnown = (id: number) => id % 20 !== ODD;

interface Seen {
  readonly sink: string;
  readonly streams: readonly { readonly covered: readonly { readonly next: string }[] }[];
  readonly plans?: readonly { readonly from: string; readonly plan: string; readonly now: boolean }[];
}

async function inspected({ config }: Pipeline, sink: string): Promise<Seen> {
  const { output } = await command(["inspect", "coverage", "-c", config, "--json"]);
  const { places } = JSON.parse(output) as { readonly places: readonly Seen[] };
  return places.find((p) => p.sink === sink)!;
}

const epochs = async (p: Pipeline, sink: string) =>
  ((await inspected(p, sink)).plans ?? []).map(({ from, now }) => [Number(from), now]);

describe.skipIf(MAIN === null)("plan epochs", () => {
  const served = MAIN as Served;
  test("gaps are filled by the plans of their time, or by that of now", async () => {
    const topic = fresh("orders");
    await createTopic(served, topic);
    const folder = workFolder();
    const killed = async (p: Pipeline, at: string) => {
      const ended = await stream(p, { untilCaughtUp: true, environment: { TWG_CRASH_AT: at } }).ended();
      expect([at, ended.signal]).toEqual([at, "SIGKILL"]);
    };
    const rawEnd = async (p: Pipeline) =>
      Number((await inspected(p, "raw")).streams[0]!.covered.at(-1)!.next);

    // Raw has some of it under the first plan, and nobody else has.
    await produce(served, topic, 0, RECORDS);
    const first = configured(served, topic, folder, "a");
    await killed(first, "after_cover:1");
    const gap = await rawEnd(first);
    expect(gap).toBeGreaterThan(0);

    // An epoch is recorded, and its process ends before anything landed under it: the one before goes on.
    await killed(configured(served, topic, folder, "b"), "typed/after_epoch:1");
    await catchUp(configured(served, topic, folder, "a"));
    expect(await epochs(first, "typed")).toEqual([[0, true]]);

    // A second gap, under the second plan.
    await produce(served, topic, RECORDS, 2 * RECORDS);
    const p = configured(served, topic, folder, "b");
    await killed(p, "after_cover:1");
    const second = await rawEnd(p);
    await catchUp(p);
    expect(await epochs(p, "typed")).toEqual([
      [0, false],
      [RECORDS, true],
    ]);

    const dry = JSON.parse((await command(["recover", "-c", p.config, "--dry-run", "--json"])).output);
    const lacks = dry.sinks.find((s: { sink: string }) => s.sink === "typed").gaps[0];
    const [digest] = ((await inspected(p, "typed")).plans ?? []).map((e) => e.plan);
    expect(lacks.plans).toEqual([
      { plan: digest, ranges: [{ from: "0", next: String(gap) }] },
      { plan: null, ranges: [{ from: String(RECORDS), next: String(second) }] },
    ]);
    const text = (await command(["recover", "-c", p.config, "--dry-run"])).output;
    expect(text).toContain(digest!.slice(0, 12));
    expect(text).toContain("of now");

    // As live ingest would have.
    const recovered = await command(["recover", "-c", p.config, "--sink", "typed", "--log-level", "info"]);
    expect([recovered.code, recovered.output]).toEqual([0, recovered.output]);
    const wanted = [...rowsOf("a", 0, RECORDS), ...rowsOf("b", RECORDS, 2 * RECORDS)];
    expect([...(await landed(p, "typed"))]).toEqual(wanted);
    const ofSecond = Array.from({ length: RECORDS }, (_, i) => RECORDS + i);
    expect([...(await landed(p, "refused")).keys()]).toEqual(ofSecond.filter((i) => !isKnown(i)));

    // By the plan of now.
    const replanned = await command(["recover", "-c", p.config, "--sink", "again", "--replan"]);
    expect([replanned.code, replanned.output]).toEqual([0, replanned.output]);
    expect([...(await landed(p, "again"))]).toEqual([
      ...rowsOf("b", 0, gap),
      ...rowsOf("a", gap, RECORDS),
      ...rowsOf("b", RECORDS, 2 * RECORDS),
    ]);
  }, 120_000);

  test.skipIf(POSTGRES === null)(
    "beside raw in a table there are none: gaps are filled by the plan of now",
    async () => {
      const topic = fresh("orders");
      await createTopic(served, topic);
      const folder = workFolder();
      const database = await freshDatabase();
      const a = configured(served, topic, folder, "a", database);
      await produce(served, topic, 0, RECORDS);
      const killed = await stream(a, {
        untilCaughtUp: true,
        environment: { TWG_CRASH_AT: "typed/before_intend:1" },
      }).ended();
      expect(killed.signal).toBe("SIGKILL");
      const gap = Number((await inspected(a, "raw")).streams[0]!.covered.at(-1)!.next);
      expect(gap).toBeGreaterThan(0);
      // What is not in raw yet, and what comes now, is decoded live.
      await produce(served, topic, RECORDS, RECORDS + 10);
      await catchUp(a);
      expect((await inspected(a, "typed")).plans).toBeUndefined();
      const live = [...(await landed(a, "typed"))];
      expect(live).toEqual(rowsOf("a", gap, RECORDS + 10));

      const b = configured(served, topic, folder, "b", database);
      await psql(
        database,
        "create index on raw (_twg_source_topic, _twg_source_partition, _twg_source_offset)",
      );
      const told = "all of it is decoded by the plan of now";
      expect((await command(["recover", "-c", b.config, "--dry-run"])).output).toContain(told);
      for (const [name, ...more] of [["typed"], ["again", "--replan"]] as const) {
        const recovered = await command(["recover", "-c", b.config, "--sink", name, ...more]);
        expect([recovered.code, recovered.output]).toEqual([0, recovered.output]);
      }
      expect([...(await landed(b, "typed"))]).toEqual([...rowsOf("b", 0, gap), ...live]);
      expect([...(await landed(b, "again"))]).toEqual([...rowsOf("b", 0, gap), ...live]);
    },
    120_000,
  );
});

/**
 * Goal: of records with one natural key the first within the window is a row and the others are left out, in every sink that
 * asks for it the same ones: live, after kills, after restarts in the midst of a window, and by recovery into a sink that
 * is added later; of JSON, Avro and Protobuf, in files and, where there is a server, in tables. Method: records whose keys follow from their number, some that cannot be decoded first of their key, in
 * partitions of a real broker; what has to be there follows from the definition, looking at every pair of records.
 */
import { describe, expect, test } from "bun:test";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Glob } from "bun";
import { columnsOf, type OneRecord } from "../../src/adapters/kafka/producer/columns.ts";
import { freshDatabase, lines, POSTGRES, psql } from "../real/postgres/server.ts";
import { demandBrokers } from "./demand-brokers.ts";
import { realProducer } from "./kafka-producer-parts.ts";
import { landedRows } from "./landed-rows.ts";
import { filesSink, pipelineToml, type Section, sinkToml, tableSink } from "./pipeline-toml.ts";
import { createTopic, fresh, MAIN, type Served } from "./real-kafka.ts";
import { catchUp, command, type Pipeline, stream, workFolder } from "./twg.ts";

/** Some in each of the lanes: what one lane keeps of several must not mix. */
const PARTITIONS = 5;
/** Of each partition, a third of them at a time. */
const RECORDS = 3 * Math.ceil(Number(process.env.TWG_E2E_RECORDS ?? "240") / 3);
const WINDOW = 60;
/** Of each partition, once raw is gone. */
const MORE = 30;

demandBrokers("duplicates");

const CONTRACT = `apiVersion: v3.1.0
kind: DataContract
id: shop
version: 1.0.0
status: active
schema:
  - name: orders
    logicalType: object
    properties:
      - { name: shop, logicalType: string, primaryKey: true, primaryKeyPosition: 1 }
      - { name: number, logicalType: integer, logicalTypeOptions: { format: i32 }, primaryKey: true, primaryKeyPosition: 2 }
      - { name: note, logicalType: string }
`;

/** Its key is another in each record. */
const LATER = CONTRACT.replaceAll(/, primaryKey: true, primaryKeyPosition: \d/g, "").replace(
  "name: note, logicalType: string",
  "name: note, logicalType: string, primaryKey: true",
);

const KINDS = ["json", "avro", "protobuf"] as const;
type Kind = (typeof KINDS)[number];

const WRITERS: Readonly<Record<Exclude<Kind, "json">, string>> = {
  avro: JSON.stringify({
    ...{ type: "record", name: "orders" },
    fields: [
      { name: "shop", type: "string" },
      { name: "number", type: "int" },
      { name: "note", type: "string" },
    ],
  }),
  protobuf: 'syntax = "proto3";\nmessage Orders { string shop = 1; int32 number = 2; string note = 3; }\n',
};

/** Texts and numbers are shorter than what takes two bytes of a length, and below 2^14. */
const varint = (n: number) => (n < 128 ? [n] : [(n & 127) | 128, n >> 7]);
const sized = (text: string, length: (n: number) => number[]) => [
  ...length(text.length),
  ...new TextEncoder().encode(text),
];

function payloadOf(kind: Kind, shop: string, number: number, note: string): Uint8Array {
  if (kind === "json") return new TextEncoder().encode(JSON.stringify({ shop, number, note }));
  const twice = (n: number) => varint(2 * n);
  return Uint8Array.from(
    kind === "avro"
      ? [...sized(shop, twice), ...twice(number), ...sized(note, twice)]
      : [10, ...sized(shop, varint), 16, ...varint(number), 26, ...sized(note, varint)],
  );
}

interface Order {
  /** Null: it has none. */
  readonly key: string | null;
  readonly record: OneRecord;
}

/** Keys come again at distances below and above the window; of some the first is no row. */
function orderOf(partition: number, offset: number, kind: Kind = "json"): Order {
  const back = [0, 0, 7, 40, 95, 1, 0, 61, 60, 59][(offset * 7 + partition) % 10]!;
  const number = Math.max(0, offset - back);
  const shop = `s${partition}`;
  const value = payloadOf(kind, shop, number, `at ${offset}`);
  if (offset % 17 === 3) return { key: null, record: { key: "k", value: value.slice(0, -2) } };
  if (offset % 23 === 5) return { key: null, record: { key: "k", value: null } };
  return { key: `${shop} ${number}`, record: { key: "k", value } };
}

/** By the definition, of all records of a range: the offsets of rows. */
function rowsOfPartition(partition: number, from = 0, next = RECORDS): number[] {
  const keys = Array.from({ length: next }, (_, offset) => orderOf(partition, offset).key);
  return keys.flatMap((key, at) => {
    const before = keys.slice(Math.max(from, at - WINDOW), at);
    return at < from || key === null || before.includes(key) ? [] : [at];
  });
}

const WANTED = Array.from({ length: PARTITIONS }, (_, p) =>
  rowsOfPartition(p).map((at) => `${p}@${at}`),
).flat();

const WANTED_MORE = Array.from({ length: PARTITIONS }, (_, p) =>
  rowsOfPartition(p, RECORDS, RECORDS + MORE).map((at) => `${p}@${at}`),
).flat();

function schemasOf(kind: Kind, folder: string, contract: string): Section {
  if (kind === "json") return { schema_file: contract };
  const written = join(folder, kind === "avro" ? "o.avsc" : "o.proto");
  writeFileSync(written, WRITERS[kind]);
  return { schema_file: written, reader_schema: contract };
}

function pipeline(served: Served, topic: string, kind: Kind, database: string | null): Pipeline {
  const folder = workFolder();
  const contract = join(folder, "shop.odcs.yaml");
  writeFileSync(contract, CONTRACT);
  const config = join(folder, "twg.toml");
  writeFileSync(
    config,
    pipelineToml(folder, {
      pipeline: { lanes: 2 },
      source: { bootstrap: served.plain, topics: [topic], group: `g-${topic}` },
      decode: { format: kind, framing: "none", ...schemasOf(kind, folder, contract) },
      dedup: { window_records: WINDOW },
      sink: [
        files(folder, "raw", { role: "primary_raw" }),
        files(folder, "typed", ONCE),
        files(folder, "all", { receives: "decoded" }),
        files(folder, "refused", { receives: "rejected" }),
        ...(database === null ? [] : [table(database, "orders")]),
      ],
    }),
  );
  return { folder, lake: join(folder, "raw"), config };
}

const ONCE = { receives: "decoded", duplicates: "drop" };
const files = (folder: string, name: string, more: Section) =>
  filesSink(folder, name, { roll_interval_ms: "200ms", ...more });
const table = (database: string, name: string) =>
  tableSink(database, name, { commit_interval_ms: "200ms", ...ONCE });

/** Adds a sink to the file. */
function add({ config }: Pipeline, sink: Section): void {
  writeFileSync(config, readFileSync(config, "utf8") + sinkToml(sink));
}

const inTable = async (database: string, name: string) =>
  lines(
    await psql(
      database,
      `select _twg_source_partition || '@' || _twg_source_offset from public.${name} order by _twg_source_partition, _twg_source_offset`,
    ),
  );

/** Partition and offset of each row, sorted. */
async function landed({ folder }: Pipeline, of: string): Promise<string[]> {
  const rows: string[] = [];
  for (const row of await landedRows(join(folder, of))) {
    const [partition, offset] = [row["_twg_source_partition"], row["_twg_source_offset"]];
    expect(row.note).toBe(`at ${offset}`);
    rows.push(`${partition}@${offset}`);
  }
  return rows.sort(byPlace);
}

const placeOf = (text: string) => text.split("@").map(Number) as [number, number];
const byPlace = (a: string, b: string) => placeOf(a)[0] - placeOf(b)[0] || placeOf(a)[1] - placeOf(b)[1];
const isLater = (text: string) => placeOf(text)[1] >= RECORDS;

async function produce(served: Served, topic: string, kind: Kind, from: number, next: number): Promise<void> {
  const { signal } = new AbortController();
  const { producer, close } = await realProducer(served.plain, {}, signal);
  for (let partition = 0; partition < PARTITIONS; partition++)
    for (let at = from; at < next; at += 13) {
      const records = Array.from(
        { length: Math.min(13, next - at) },
        (_, i) => orderOf(partition, at + i, kind).record,
      );
      await (await producer.send(topic, columnsOf(records), { partition, signal })).done;
    }
  await close();
}

const half = (third: number, i: number) => third + Math.floor((third * i) / 2);

const recover = async ({ config }: Pipeline, more: readonly string[] = []) => {
  const ended = await command(["recover", "-c", config, "--log-level", "info", ...more]);
  if (ended.code !== 0) throw new Error(`recover ended with ${ended.code}:\n${ended.output.slice(-3000)}`);
};

describe.skipIf(MAIN === null)("duplicates by natural key", () => {
  const served = MAIN as Served;
  test.each(KINDS)(
    "the same ones live, after kills and by recovery: %s",
    async (kind) => {
      const topic = fresh("duplicates");
      await createTopic(served, topic, { partitions: PARTITIONS });
      const database = POSTGRES === null ? null : await freshDatabase();
      const p = pipeline(served, topic, kind, database);
      const third = RECORDS / 3;
      await produce(served, topic, kind, 0, third);
      await catchUp(p);
      // Killed when some of a sink's files are durable and not covered, or covered and the next ones not.
      for (const [i, point] of ["typed/after_publish_one", "after_cover"].entries()) {
        await produce(served, topic, kind, half(third, i), half(third, i + 1));
        const killed = await stream(p, { untilCaughtUp: true, environment: { TWG_CRASH_AT: point } }).ended();
        expect([killed.signal, killed.code]).not.toEqual([null, 0]);
        if (i === 1) await produce(served, topic, kind, 2 * third, RECORDS);
        await catchUp(p);
      }
      await recover(p);
      expect(await landed(p, "typed")).toEqual(WANTED);
      expect((await landed(p, "all")).length).toBeGreaterThan(WANTED.length);
      if (database !== null) expect(await inTable(database, "orders")).toEqual(WANTED);
      // Of a sink that is added later recovery makes everything.
      add(p, files(p.folder, "twin", ONCE));
      await recover(p, ["--sink", "twin"]);
      expect(await landed(p, "twin")).toEqual(WANTED);
      if (database !== null) {
        // The server refuses some: they are among the rejects, and those with their keys stay out.
        await psql(
          database,
          "create table public.strict (shop text, number int check (number % 10 <> 0), note text)",
        );
        add(p, table(database, "strict"));
        await recover(p, ["--sink", "strict"]);
        const refused = lines(
          await psql(
            database,
            "select (line::json)->>'partition' || '@' || ((line::json)->>'offset') from twg.reject where sink = 'strict'",
          ),
        );
        expect(refused.length).toBeGreaterThan(0);
        expect([...refused, ...(await inTable(database, "strict"))].sort(byPlace)).toEqual(WANTED);
      }

      // What raw has no more counts no more: the sinks go on, and say the same of what comes then.
      for (const path of new Glob("*.parquet").scanSync({ cwd: p.lake, absolute: true })) rmSync(path);
      await produce(served, topic, kind, RECORDS, RECORDS + MORE);
      await catchUp(p);
      const after = WANTED_MORE.toSorted(byPlace);
      expect((await landed(p, "typed")).filter(isLater)).toEqual(after);
      expect((await landed(p, "twin")).filter(isLater)).toEqual(after);
    },
    240_000,
  );

  // What it said before is nowhere but in the plan that raw has with it.
  test("each by the contract of its time, whichever it is now", async () => {
    const topic = fresh("contracts");
    await createTopic(served, topic, { partitions: PARTITIONS });
    const p = pipeline(served, topic, "avro", null);
    const third = RECORDS / 3;
    const write = (contract: string) => writeFileSync(join(p.folder, "shop.odcs.yaml"), contract);
    // Raw has some of each that no other sink has.
    const grow = async (from: number, next: number) => {
      await produce(served, topic, "avro", from, next);
      const environment = { TWG_CRASH_AT: "after_cover:1" };
      expect((await stream(p, { untilCaughtUp: true, environment }).ended()).signal).toBe("SIGKILL");
      await catchUp(p);
    };
    await grow(0, third);
    write(LATER);
    await grow(third, 2 * third);
    const keyed = (partition: number) =>
      Array.from({ length: third }, (_, i) => third + i).filter((at) => orderOf(partition, at).key !== null);
    const wanted = Array.from({ length: PARTITIONS }, (_, n) =>
      [...rowsOfPartition(n, 0, third), ...keyed(n)].map((at) => `${n}@${at}`),
    ).flat();

    const dry = JSON.parse((await command(["recover", "-c", p.config, "--dry-run", "--json"])).output);
    const lacking = dry.sinks.find((s: { readonly sink: string }) => s.sink === "typed").gaps;
    const plans = lacking.flatMap((g: { readonly plans: readonly { readonly plan: string | null }[] }) =>
      g.plans.map(({ plan }) => plan === null),
    );
    expect(new Set(plans)).toEqual(new Set([true, false]));
    await recover(p);
    expect(await landed(p, "typed")).toEqual(wanted);

    // Of a sink that is added later no plan is known: it is filled by the contract of the time, or not at all.
    add(p, files(p.folder, "twin", ONCE));
    const refused = await command(["recover", "-c", p.config, "--sink", "twin", "--to", String(third)]);
    expect([refused.code, refused.output]).toEqual([1, expect.stringContaining("dedup.other_plan")]);
    write(CONTRACT);
    await recover(p, ["--sink", "twin", "--to", String(third)]);
    write(LATER);
    await recover(p, ["--sink", "twin"]);
    expect(await landed(p, "twin")).toEqual(wanted);
  }, 240_000);
});

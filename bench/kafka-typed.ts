/**
 * A topic of orders, JSON or Avro, to typed Parquet, with the raw lane beside it as it always is: `twg stream` from start
 * to exit. The columns are summed up by DuckDB (TWG_PYTHON) and compared with what was produced.
 */

import { isUtf8 } from "node:buffer";
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTopics, describeCluster, watermarks } from "../src/adapters/kafka/admin.ts";
import { KafkaClient } from "../src/adapters/kafka/client.ts";
import { consumerSettings } from "../src/adapters/kafka/consumer.ts";
import { columnsOfPayloads } from "../src/adapters/kafka/producer/columns.ts";
import { KafkaProducer } from "../src/adapters/kafka/producer/producer.ts";
import { kafkaRecordParts } from "../src/commands/kafka-parts.ts";
import { encodeColumns } from "../src/core/codecs/avro/encode-columns.ts";
import { jsonRecords } from "../src/core/codecs/json/compile.ts";
import type { Payloads } from "../src/core/codecs/record-codec.ts";
import { builderOf } from "../src/core/types/column-builder.ts";
import type { ColumnField } from "../src/core/types/table-batch.ts";
import { parseType } from "../src/core/types/type-text.ts";
import { type BenchOptions, type Figure, median, medianSeen, round } from "./figure.ts";
import { ORDER_AVRO, ORDER_COLUMNS, orderPayloads } from "./orders.ts";
import { pipelineConfig } from "./pipeline-config.ts";
import { type Ran, runProcess } from "./process.ts";
import { PARTITIONS } from "./topics.ts";

type Format = "json" | "avro";

/** Records are made once and sent again and again: they repeat, their positions do not. */
const DISTINCT = 200_000;
const BATCH = 5_000;
/** At this size start and compilation, a second or two of CPU, no longer count. */
const LONG = 12_000_000;
const CONFLUENT = Uint8Array.of(0, 0, 0, 0, 1);

const SUMS = `
import duckdb, sys
duckdb.sql("set enable_progress_bar = false")
print("/".join(str(x) for x in duckdb.sql(f"select count(*), sum(id), sum(len(items)), sum(amount::decimal(18,2)), sum(list_sum([i.qty for i in items])), count(*) filter (flags.gift) from '{sys.argv[1]}/**/*.parquet'").fetchall()[0]))
`;

function fields(): ColumnField[] {
  return Object.entries(ORDER_COLUMNS).map(([name, text]) => {
    const type = parseType(text);
    if (typeof type === "string") throw new Error(type);
    return { name, type, nullable: false };
  });
}

/** Payloads of the orders [first, first + count). */
function payloads(format: Format, first: number, count: number): Payloads {
  const json = orderPayloads(first, count);
  if (format === "json") return json;
  const table = fields();
  const columns = table.map((f) => builderOf(f.type));
  jsonRecords(table, { unknown: "reject", reserved: null, maxBytes: 1 << 20, isUtf8 }).decode(
    json,
    columns,
    (f) => {
      throw new Error(f.reason);
    },
  );
  const batch = { fields: table, columns: columns.map((c) => c.finish()), rows: count };
  return framed(encodeColumns({ text: ORDER_AVRO, references: [] }, batch));
}

function framed({ bytes, starts, ends, count }: Payloads): Payloads {
  const out = new Uint8Array(bytes.length + count * CONFLUENT.length);
  const [from, to] = [new Int32Array(count), new Int32Array(count)];
  let at = 0;
  for (let i = 0; i < count; i++) {
    from[i] = at;
    out.set(CONFLUENT, at);
    out.set(bytes.subarray(starts[i], ends[i]), at + CONFLUENT.length);
    at += CONFLUENT.length + ends[i]! - starts[i]!;
    to[i] = at;
  }
  return { bytes: out, starts: from, ends: to, count };
}

/** The topic of the format and size, made if it is not there. */
async function topicOf(o: BenchOptions, bootstrap: string, format: Format, records: number): Promise<string> {
  const name = `twg-bench-typed-${format}-${records}`;
  const signal = AbortSignal.timeout(600_000);
  const parts = kafkaRecordParts();
  const client = new KafkaClient(consumerSettings({ bootstrap: [bootstrap], topics: [name] }), parts);
  try {
    const made = await createTopics(client, [{ name, partitions: PARTITIONS, replicas: 1 }], signal);
    if (made.get(name) === false && (await sizeOf(client, name, signal)) === records) return name;
    o.say(`loading ${records} records into ${name}`);
    const producer = new KafkaProducer(client, { compression: "none" }, parts);
    await producer.start(signal);
    const distinct = Math.min(DISTINCT, records);
    const batches = Array.from({ length: Math.ceil(distinct / BATCH) }, (_, b) =>
      columnsOfPayloads(payloads(format, b * BATCH, Math.min(BATCH, distinct - b * BATCH))),
    );
    for (let sent = 0, b = 0; sent < records; b++) {
      const columns = batches[b % batches.length]!;
      await producer.send(name, columns, { partition: b % PARTITIONS, signal });
      sent += columns.rows;
    }
    await producer.flush(signal);
    await producer.close(signal);
    return name;
  } finally {
    client.close();
  }
}

async function sizeOf(client: KafkaClient, topic: string, signal: AbortSignal): Promise<number> {
  const { topics } = await describeCluster(client, [topic], signal);
  const ends = await watermarks(client, topics, signal);
  return ends.reduce((n, w) => n + Number((w.latest ?? 0n) - (w.earliest ?? 0n)), 0);
}

function decodes(folder: string, format: Format): string {
  const options =
    format === "json"
      ? `format = "json"\nschema_file = "${folder}/orders.json"`
      : `format = "avro"\nframing = "confluent"\nschema_file = "${folder}/orders.avsc"`;
  return `[decode]
${options}
on_error = "fail"
[[sink]]
name = "typed"
type = "parquet"
receives = "decoded"
path = "${folder}/typed"
`;
}

interface Landed {
  readonly ran: Ran;
  readonly sums: string;
  readonly bytes: number;
}

/** Runs `twg stream` over the topic in a folder of its own, which `look` sees before it goes. */
async function streamed<T>(
  o: BenchOptions,
  bootstrap: string,
  topic: string,
  sections: (folder: string) => string,
  look: (ran: Ran, folder: string) => Promise<T>,
): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "twg-bench-"));
  try {
    const columns = Object.entries(ORDER_COLUMNS).map(([name, type]) => ({ name, type }));
    await Bun.write(join(folder, "orders.json"), JSON.stringify({ columns }));
    await Bun.write(join(folder, "orders.avsc"), ORDER_AVRO);
    const config = join(folder, "bench.toml");
    await Bun.write(config, pipelineConfig({ folder, bootstrap, topic, more: sections(folder) }));
    return await look(await runProcess([...o.twg, "stream", "-c", config, "--until-caught-up"]), folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The same topic by the raw lane alone: what typed rows cost is what is beyond it. */
function landRaw(o: BenchOptions, bootstrap: string, topic: string): Promise<Ran> {
  return streamed(
    o,
    bootstrap,
    topic,
    () => "",
    async (ran) => ran,
  );
}

function land(o: BenchOptions, bootstrap: string, topic: string, format: Format): Promise<Landed> {
  const sections = (folder: string) => decodes(folder, format);
  return streamed(o, bootstrap, topic, sections, async (ran, folder) => {
    const typed = join(folder, "typed");
    const sums = (await runProcess([process.env["TWG_PYTHON"]!, "-c", SUMS, typed])).stdout.trim();
    const sizes = readdirSync(typed, { recursive: true, withFileTypes: true }).filter((e) => e.isFile());
    return { ran, sums, bytes: sizes.reduce((n, e) => n + statSync(join(e.parentPath, e.name)).size, 0) };
  });
}

export async function* kafkaTyped(o: BenchOptions): AsyncGenerator<Figure> {
  const { bootstrap } = o;
  if (bootstrap === null || process.env["TWG_PYTHON"] === undefined) {
    o.say("SKIP kafka-typed: needs a real broker (--bootstrap) and TWG_PYTHON with duckdb");
    return;
  }
  const sizes = o.small ? [20_000] : [2_000_000, LONG];
  for (const records of sizes) {
    for (const format of ["json", "avro"] as const) yield await figureOf(o, bootstrap, format, records);
  }
}

async function figureOf(
  o: BenchOptions,
  bootstrap: string,
  format: Format,
  records: number,
): Promise<Figure> {
  const topic = await topicOf(o, bootstrap, format, records);
  const runs: Landed[] = [];
  const raw: Ran[] = [];
  for (let i = 0; i < o.rounds; i++) {
    raw.push(await landRaw(o, bootstrap, topic));
    runs.push(await land(o, bootstrap, topic, format));
  }
  const [first] = runs;
  const wrong = runs.find((r) => r.sums !== first!.sums || !r.sums.startsWith(`${records}/`));
  if (wrong !== undefined) throw new Error(`kafka-typed ${format}: ${wrong.sums} of ${records} records`);
  const value = median(runs.map((r) => records / r.ran.seconds));
  const alone = median(raw.map((r) => records / r.seconds));
  return {
    bench: `kafka-typed ${format} ${records} records`,
    subject: "twg stream --until-caught-up into raw and typed Parquet, whole process",
    peer: "the same with the raw sink alone",
    unit: "records/s",
    value: Math.round(value),
    peer_value: Math.round(alone),
    ratio: round(value / alone),
    hash: first!.sums,
    n: records,
    cpu_per_million: round(median(runs.map((r) => (r.ran.cpu / records) * 1e6))),
    peer_cpu_per_million: round(median(raw.map((r) => (r.cpu / records) * 1e6))),
    file_bytes: first!.bytes,
    rss_mb: medianSeen(runs.map((r) => r.ran.rssMb)),
  };
}

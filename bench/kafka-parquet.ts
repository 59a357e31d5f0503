/** The main job: a topic to raw Parquet, every guarantee and metadata column included; and its memory. */

import { libduckdbPath } from "../src/adapters/duckdb/embedded.ts";
import { loadNative } from "../src/adapters/duckdb/native.ts";
import { zstdBound } from "../src/core/compression/codec.ts";
import { order } from "../test/brokers/kafka/orders.ts";
import {
  type BenchOptions,
  cpuSeconds,
  type Figure,
  inTurn,
  median,
  medianSeen,
  ratioOf,
  round,
} from "./figure.ts";
import { type Landing, land } from "./landing.ts";
import { type Consumed, lastLine, runProcess } from "./process.ts";
import { FIRST_TIMESTAMP, MS_PER_RECORD, PARTITIONS, type Topic, topicOf } from "./topics.ts";

const EARLIEST = `"earliest"`;

/** The second size shows what is left per record once start-up and just-in-time compilation are paid. */
export async function* kafkaParquet(o: BenchOptions): AsyncGenerator<Figure> {
  for (const size of o.small ? [20_000] : [2_000_000, 6_000_000, 20_000_000]) yield* landed(o, size);
}

async function* landed(o: BenchOptions, size: number): AsyncGenerator<Figure> {
  const topic = await topicOf(o, "orders", "none", size);
  if (topic === null) return;
  const { records } = topic;
  try {
    const first = await land(o, topic, { start: EARLIEST, hashed: true });
    if (o.peer !== null) {
      const consume = [o.peer, "consume", topic.bootstrap, topic.name, String(records), String(PARTITIONS)];
      const read = lastLine<Consumed>((await runProcess(consume, { BENCH_HASH: "1" })).stdout);
      if (read.hash !== first.hash) throw new Error(`landed ${first.hash}, franz-go read ${read.hash}`);
    }
    const once = () => land(o, topic, { start: EARLIEST, hashed: false });
    const runs = await inTurn(o.rounds, once, async () => zstdAlone(o.small ? 4_000 : 200_000));
    for (const { rows } of runs.subject)
      if (rows !== records) throw new Error(`${rows} rows of ${records} landed`);
    const value = median(runs.subject.map((r) => records / r.ran.seconds));
    const peer = median(runs.peer.map((p) => 1e6 / p));
    yield {
      bench: `kafka-parquet ${size} records`,
      subject: "twg stream --until-caught-up, whole process",
      peer: "zstd level 1 of the same bytes, in memory, one thread",
      unit: "records/s",
      value: Math.round(value),
      peer_value: Math.round(peer),
      ratio: ratioOf(value, peer),
      hash: first.hash,
      n: records,
      cpu_per_million: round(median(runs.subject.map((r) => (r.ran.cpu / records) * 1e6))),
      peer_cpu_per_million: round(median(runs.peer)),
      file_bytes: first.fileBytes,
      rss_mb: medianSeen(runs.subject.map((r) => r.ran.rssMb)),
    };
  } finally {
    await topic.release();
  }
}

const PAGE_BYTES = 1024 * 1024;

/** CPU seconds per million order values that compression alone costs, in pages as the sink makes them. */
function zstdAlone(records: number): number {
  const codecs = loadNative(libduckdbPath());
  const bytes = new TextEncoder().encode(
    Array.from({ length: records }, (_, i) => order(1, i).value).join(""),
  );
  const out = new Uint8Array(zstdBound(PAGE_BYTES));
  const begun = cpuSeconds();
  for (let at = 0; at < bytes.length; at += PAGE_BYTES) {
    codecs.zstdCompress(bytes.subarray(at, Math.min(bytes.length, at + PAGE_BYTES)), out, 1);
  }
  return ((cpuSeconds() - begun) / records) * 1e6;
}

/**
 * Largest resident size at a short and a long lag: it follows the configuration, not the lag. The shortest job is over
 * before its buffers are full, which is why there is one between.
 */
export async function* memory(o: BenchOptions): AsyncGenerator<Figure> {
  const long = o.small ? 100_000 : 20_000_000;
  const topic = await topicOf(o, o.small ? "orders" : "small", "lz4", long);
  if (topic === null) return;
  try {
    for (const short of o.small ? [20_000] : [1_000_000, 5_000_000]) yield await beside(o, topic, short);
  } finally {
    await topic.release();
  }
}

async function beside(o: BenchOptions, topic: Topic, short: number): Promise<Figure> {
  const long = topic.records;
  // The same topic, begun near its end. Our own broker's events are up to 7 ms late: then a few more are read.
  const start = `{ timestamp = ${FIRST_TIMESTAMP + MS_PER_RECORD * (long - short)} }`;
  const runs = await inTurn(
    Math.min(o.rounds, 3),
    () => land(o, topic, { start: EARLIEST, hashed: false }),
    () => land(o, topic, { start, hashed: false }),
  );
  if (runs.subject.some((r) => r.rows !== long)) throw new Error("memory: not every record landed");
  const value = medianSeen(runs.subject.map((r) => r.ran.rssMb));
  const peer = medianSeen(runs.peer.map((r) => r.ran.rssMb));
  if (value === null) throw new Error("memory: the process could not be looked at");
  const cpu = (list: readonly Landing[]) => round(median(list.map((r) => (r.ran.cpu / r.rows) * 1e6)));
  return {
    bench: "memory",
    subject: `twg stream, lag of ${long} records`,
    peer: `the same, lag of ${runs.peer[0]?.rows ?? short} records`,
    unit: "MB, largest resident size",
    value,
    peer_value: peer,
    ratio: ratioOf(value, peer),
    hash: null,
    n: long,
    cpu_per_million: cpu(runs.subject),
    peer_cpu_per_million: cpu(runs.peer),
  };
}

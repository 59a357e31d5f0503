/**
 * Serves order events on a socket as a Kafka broker would: what the quickstart and demonstrations read from.
 *   bun test/brokers/kafka/serve.ts --port 9092 --topic orders --partitions 6 --records 200000 [--rate 5000]
 *     [--seed 1] [--compression none|gzip|snappy|lz4|zstd] [--brokers 1]
 * Record i goes to partition i % partitions. Prints one line, `ready HOST:PORT ...`, as soon as clients may connect;
 * with --rate 0 (default) every record is there by then. Ends on SIGTERM or SIGINT.
 */
import { parseArgs } from "node:util";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import { FakeCluster } from "./cluster.ts";
import { type BatchCodec, CODEC_BITS } from "./compress.ts";
import { ordersBatch } from "./orders.ts";
import { listenCluster } from "./sockets.ts";

const BATCH_RECORDS = 500;
const RATE_INTERVAL_MS = 100;

export interface ServeOptions {
  readonly port: number;
  readonly topic: string;
  readonly partitions: number;
  readonly records: number;
  /** Records per second, 0: all at once. */
  readonly rate: number;
  readonly seed: number;
  readonly compression: BatchCodec;
  readonly brokers: number;
}

export function readOptions(argv: readonly string[]): ServeOptions {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      port: { type: "string", default: "0" },
      topic: { type: "string", default: "orders" },
      partitions: { type: "string", default: "6" },
      records: { type: "string", default: "200000" },
      rate: { type: "string", default: "0" },
      seed: { type: "string", default: "1" },
      compression: { type: "string", default: "none" },
      brokers: { type: "string", default: "1" },
    },
  });
  const number = (
    name: "port" | "partitions" | "records" | "rate" | "seed" | "brokers",
    min: number,
  ): number => {
    const n = Number(values[name]);
    if (!Number.isInteger(n) || n < min)
      throw new Error(`--${name} must be a whole number of at least ${min}`);
    return n;
  };
  const { compression, topic } = values;
  if (!Object.hasOwn(CODEC_BITS, compression))
    throw new Error(`--compression ${compression} is not one of ${Object.keys(CODEC_BITS).join(", ")}`);
  return {
    port: number("port", 0),
    topic,
    partitions: number("partitions", 1),
    records: number("records", 0),
    rate: number("rate", 0),
    seed: number("seed", 0),
    compression: compression as BatchCodec,
    brokers: number("brokers", 1),
  };
}

/** Appends the records [from, to): every partition gets its share in batches. */
export function appendOrders(cluster: FakeCluster, options: ServeOptions, from: number, to: number): void {
  const { topic, partitions, seed, compression } = options;
  for (let p = 0; p < partitions; p++) {
    const gap = (p - (from % partitions) + partitions) % partitions;
    for (let first = from + gap; first < to; first += BATCH_RECORDS * partitions) {
      const count = Math.min(BATCH_RECORDS, Math.ceil((to - first) / partitions));
      cluster.append(topic, p, ordersBatch(seed, first, partitions, count, compression));
    }
  }
}

/** Fills the topic by the clock; returns a function that stops. */
export function appendByRate(cluster: FakeCluster, options: ServeOptions): () => void {
  const { clock } = cluster;
  const begun = clock.monotonic();
  let done = 0;
  let timer = { cancel() {} };
  const tick = () => {
    const due = Math.min(options.records, Math.floor(((clock.monotonic() - begun) * options.rate) / 1000));
    if (due > done) appendOrders(cluster, options, done, due);
    done = due;
    if (done < options.records) timer = clock.after(RATE_INTERVAL_MS, tick);
  };
  timer = clock.after(RATE_INTERVAL_MS, tick);
  return () => timer.cancel();
}

export function serve(options: ServeOptions): { readonly bootstrap: string[]; close(): void } {
  const cluster = new FakeCluster({
    clock: systemClock,
    brokers: options.brokers,
    traceLimit: 0,
    clusterId: "quickstart",
    onComplaint: (text) => console.error(text),
  });
  cluster.createTopic(options.topic, { partitions: options.partitions });
  if (options.rate === 0) appendOrders(cluster, options, 0, options.records);
  const listening = listenCluster(cluster, options.port);
  const stop = options.rate === 0 ? () => {} : appendByRate(cluster, options);
  return {
    bootstrap: listening.bootstrap,
    close() {
      stop();
      listening.close();
    },
  };
}

if (import.meta.main) {
  const options = readOptions(process.argv.slice(2));
  const server = serve(options);
  const end = () => {
    server.close();
    process.exit(0);
  };
  process.on("SIGTERM", end);
  process.on("SIGINT", end);
  const { topic, partitions, records, rate } = options;
  console.log(
    `ready ${server.bootstrap.join(",")} topic=${topic} partitions=${partitions} records=${records} rate=${rate}`,
  );
}

/**
 * Idempotent produce with acks all beside librdkafka (a C program), franz-go and Kafka's own client, each a process of its
 * own that makes its records and sends them; then the brokers are asked how many arrived. A figure a peer.
 *
 * Before anything is measured each client runs once, and what it wrote is read back and hashed: it has to be what was meant.
 */
import { createTopics, describeCluster, watermarks } from "../src/adapters/kafka/admin.ts";
import { KafkaClient } from "../src/adapters/kafka/client.ts";
import { consumerSettings, KafkaConsumer } from "../src/adapters/kafka/consumer.ts";
import { kafkaRecordParts } from "../src/commands/kafka-parts.ts";
import { subjectOf } from "./compiled.ts";
import {
  type BenchOptions,
  type Figure,
  inRotation,
  median,
  medianSeen,
  ratioOf,
  round,
  sameHash,
} from "./figure.ts";
import { type Peer, peersOf } from "./peers.ts";
import { lastLine, type Ran, runProcess } from "./process.ts";
import { hashOf } from "./subjects/hash.ts";
import { lettersOf } from "./subjects/letters.ts";
import { PARTITIONS } from "./topics.ts";

const CASES = [
  [100, "none", 2_000_000, 10_000],
  [100, "lz4", 2_000_000, 10_000],
  [1000, "none", 500_000, 5_000],
  [1000, "lz4", 500_000, 5_000],
  // Long enough that compiling at run time no longer shows.
  [100, "none", 6_000_000, 10_000],
  [100, "lz4", 6_000_000, 10_000],
] as const;
const LONG = 6_000_000;

interface Run {
  readonly records: number;
  readonly seconds: number;
  readonly ran: Ran;
  /** How many more the topic holds. */
  readonly arrived: bigint;
}

export async function* produce(o: BenchOptions): AsyncGenerator<Figure> {
  if (o.bootstrap === null) return o.say("SKIP produce: needs a real broker (--bootstrap)");
  const subject = await subjectOf(o, "produce");
  const settings = consumerSettings({ bootstrap: [o.bootstrap], topics: ["none"] });
  const client = new KafkaClient(settings, kafkaRecordParts());
  try {
    const all = [{ name: "twg", command: subject.command }, ...(await peersOf(o, "produce", "send"))];
    const topic = `twg-bench-produce-${process.pid}-${Date.now()}`;
    // What was counted may go, but not before it was read back, which a slow machine takes its time for.
    const configs = { "retention.bytes": "2000000000", "segment.bytes": "50000000" };
    await createTopics(client, [{ name: topic, partitions: PARTITIONS, replicas: 1, configs }], NEVER);
    const written: Written = { bootstrap: o.bootstrap, client, topic };
    for (const [size, codec, full, small] of CASES) {
      const count = o.small ? small : full;
      const long = full >= LONG ? ", long" : "";
      yield* oneCase(o, written, all, { size, codec, count, long });
    }
  } finally {
    client.close();
    subject.remove();
  }
}

interface Written {
  readonly bootstrap: string;
  readonly client: KafkaClient;
  readonly topic: string;
}

interface Case {
  readonly size: number;
  readonly codec: string;
  readonly count: number;
  /** After the name of its figures. */
  readonly long: string;
}

async function* oneCase(
  o: BenchOptions,
  w: Written,
  all: readonly Peer[],
  { size, codec, count, long }: Case,
): AsyncGenerator<Figure> {
  const args = [w.bootstrap, w.topic, String(count), String(size), codec];
  const bench = `produce ${size} B ${codec}${long}`;
  const hashes = [hashMeant(size, count)];
  for (const { command } of all) {
    const before = await endsOf(w);
    await runProcess([...command, ...args]);
    hashes.push(await hashRead(w, before));
  }
  const hash = `${sameHash(bench, hashes)}/${count}`;
  const [ours, ...theirs] = await inRotation(
    o.rounds,
    all.map(
      ({ command }) =>
        () =>
          run(w, [...command, ...args]),
    ),
  );
  for (const { records, arrived } of [ours!, ...theirs].flat()) {
    sameHash(`${bench}, what arrived`, [`${count}/${count}`, `${records}/${arrived}`]);
  }
  const peers = all.slice(1);
  if (peers.length === 0) yield figure(bench, null, hash, ours!, []);
  for (const [i, { name }] of peers.entries()) yield figure(bench, name, hash, ours!, theirs[i]!);
}

const NEVER = new AbortController().signal;

function figure(
  bench: string,
  peer: string | null,
  hash: string,
  ours: readonly Run[],
  peers: readonly Run[],
): Figure {
  const perSecond = (r: Run) => r.records / r.seconds;
  const cpu = (r: Run) => (r.ran.cpu / r.records) * 1e6;
  const value = median(ours.map(perSecond));
  const theirs = peer === null ? null : median(peers.map(perSecond));
  return {
    bench,
    subject: "twg producer",
    peer,
    unit: "records/s",
    value: Math.round(value),
    peer_value: theirs === null ? null : Math.round(theirs),
    ratio: ratioOf(value, theirs),
    hash,
    n: ours[0]!.records,
    cpu_per_million: round(median(ours.map(cpu))),
    peer_cpu_per_million: peer === null ? null : round(median(peers.map(cpu))),
    rss_mb: medianSeen(ours.map((r) => r.ran.rssMb)),
    peer_rss_mb: peer === null ? null : medianSeen(peers.map((r) => r.ran.rssMb)),
  };
}

/** By partition. */
async function endsOf({ client, topic }: Written): Promise<ReadonlyMap<number, bigint>> {
  const { topics } = await describeCluster(client, [topic], NEVER);
  const marks = await watermarks(client, topics, NEVER);
  return new Map(marks.map((m) => [m.partition, m.latest ?? 0n]));
}

const sum = (ends: ReadonlyMap<number, bigint>): bigint => [...ends.values()].reduce((a, b) => a + b, 0n);

async function run(w: Written, command: readonly string[]): Promise<Run> {
  const before = sum(await endsOf(w));
  const ran = await runProcess(command);
  const { records, seconds } = lastLine<{ records: number; seconds: number }>(ran.stdout);
  return { records, seconds, ran, arrived: sum(await endsOf(w)) - before };
}

/** Of `count` records that repeat the letters. */
function hashMeant(size: number, count: number): string {
  const { rows, value } = lettersOf(size);
  return String(hashOf(rows, value) * BigInt(Math.floor(count / rows)) + hashOf(count % rows, value));
}

/** Of everything that stands behind `from`. */
async function hashRead(w: Written, from: ReadonlyMap<number, bigint>): Promise<string> {
  const left = sum(await endsOf(w)) - sum(from);
  const settings = consumerSettings({ bootstrap: [w.bootstrap], topics: [w.topic] });
  const consumer = new KafkaConsumer(settings, kafkaRecordParts(), {
    position: ({ partition }) => from.get(partition) ?? null,
  });
  let hash = 0n;
  let read = 0n;
  if (left === 0n) return "nothing";
  for await (const { rows, value } of consumer.batches(NEVER)) {
    hash += hashOf(rows, value);
    read += BigInt(rows);
    if (read >= left) break;
  }
  return String(hash);
}

/**
 * Idempotent produce with acks all beside librdkafka (a C program) and franz-go, each a process of its own that makes
 * its records and sends them; then the brokers are asked how many arrived. A figure a peer.
 */
import { join, resolve } from "node:path";
import { createTopics, describeCluster, watermarks } from "../src/adapters/kafka/admin.ts";
import { KafkaClient } from "../src/adapters/kafka/client.ts";
import { consumerSettings } from "../src/adapters/kafka/consumer.ts";
import { kafkaParts } from "../src/commands/kafka-parts.ts";
import {
  type BenchOptions,
  type Figure,
  inTurn,
  median,
  medianSeen,
  ratioOf,
  round,
  sameHash,
} from "./figure.ts";
import { peersOf } from "./peers.ts";
import { lastLine, type Ran, runProcess } from "./process.ts";
import { PARTITIONS } from "./topics.ts";

const CASES = [
  [100, "none", 2_000_000, 10_000],
  [100, "lz4", 2_000_000, 10_000],
  [1000, "none", 500_000, 5_000],
  [1000, "lz4", 500_000, 5_000],
] as const;

interface Run {
  readonly records: number;
  readonly seconds: number;
  readonly ran: Ran;
  /** How many more the topic holds. */
  readonly arrived: bigint;
}

const root = resolve(import.meta.dir, "..");

export async function* produce(o: BenchOptions): AsyncGenerator<Figure> {
  if (o.bootstrap === null) return o.say("SKIP produce: needs a real broker (--bootstrap)");
  const peers = await peersOf(o, "produce", "send");
  const client = new KafkaClient(
    consumerSettings({ bootstrap: [o.bootstrap], topics: ["none"] }),
    kafkaParts(),
  );
  try {
    const topic = `twg-bench-produce-${process.pid}-${Date.now()}`;
    // What was counted may go.
    const configs = { "retention.bytes": "100000000", "segment.bytes": "50000000" };
    await createTopics(client, [{ name: topic, partitions: PARTITIONS, replicas: 1, configs }], NEVER);
    for (const [size, codec, full, small] of CASES) {
      const count = o.small ? small : full;
      const args = [o.bootstrap, topic, String(count), String(size), codec];
      const one = (command: readonly string[]) => () => run(client, topic, [...command, ...args]);
      const ours = one([process.execPath, join(root, "bench/subjects/produce.ts")]);
      for (const { name, command } of peers.length > 0 ? peers : [{ name: null, command: [] }]) {
        const theirs = name === null ? null : one(command);
        yield figure(`produce ${size} B ${codec}`, name, count, await inTurn(o.rounds, ours, theirs));
      }
    }
  } finally {
    client.close();
  }
}

const NEVER = new AbortController().signal;

function figure(
  bench: string,
  peer: string | null,
  n: number,
  runs: { readonly subject: Run[]; readonly peer: Run[] },
): Figure {
  const perSecond = (r: Run) => r.records / r.seconds;
  const cpu = (r: Run) => (r.ran.cpu / r.records) * 1e6;
  const value = median(runs.subject.map(perSecond));
  const theirs = peer === null ? null : median(runs.peer.map(perSecond));
  return {
    bench,
    subject: "twg producer",
    peer,
    unit: "records/s",
    value: Math.round(value),
    peer_value: theirs === null ? null : Math.round(theirs),
    ratio: ratioOf(value, theirs),
    hash: sameHash(
      bench,
      [...runs.subject, ...runs.peer, { records: n, arrived: BigInt(n) }].map(
        (r) => `${r.records}/${r.arrived}`,
      ),
    ),
    n,
    cpu_per_million: round(median(runs.subject.map(cpu))),
    peer_cpu_per_million: peer === null ? null : round(median(runs.peer.map(cpu))),
    rss_mb: medianSeen(runs.subject.map((r) => r.ran.rssMb)),
    peer_rss_mb: peer === null ? null : medianSeen(runs.peer.map((r) => r.ran.rssMb)),
  };
}

async function endOf(client: KafkaClient, topic: string): Promise<bigint> {
  const { topics } = await describeCluster(client, [topic], NEVER);
  const marks = await watermarks(client, topics, NEVER);
  return marks.reduce((sum, m) => sum + (m.latest ?? 0n), 0n);
}

async function run(client: KafkaClient, topic: string, command: readonly string[]): Promise<Run> {
  const before = await endOf(client, topic);
  const ran = await runProcess(command);
  const { records, seconds } = lastLine<{ records: number; seconds: number }>(ran.stdout);
  return { records, seconds, ran, arrived: (await endOf(client, topic)) - before };
}

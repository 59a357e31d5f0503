/** Raw consume from Kafka beside franz-go: every record decoded, counted and thrown away. */
import { rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { buildBinary } from "../scripts/build-binary.ts";
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
import { type Consumed, lastLine, type Ran, runProcess } from "./process.ts";
import { type Codec, type Kind, PARTITIONS, type Topic, topicOf } from "./topics.ts";

/** Compiled as `twg` is: the peer is compiled too. The first one is run. */
const SUBJECT = ["bench/subjects/raw-consume.ts", "bench/subjects/raw-lane.ts"] as const;

const CASES: readonly (readonly [Kind, Codec, full: number, small: number])[] = [
  ["orders", "none", 2_000_000, 20_000],
  ["orders", "lz4", 2_000_000, 20_000],
  ["blob", "none", 500_000, 10_000],
  ["blob", "lz4", 500_000, 10_000],
  // Long enough that compiling at run time no longer shows.
  ["orders", "none", 20_000_000, 20_000],
  ["orders", "lz4", 20_000_000, 20_000],
  ["blob", "none", 5_000_000, 10_000],
  ["blob", "lz4", 5_000_000, 10_000],
];

interface Run extends Consumed {
  readonly ran: Ran;
  readonly startup: number;
}

export async function* rawConsume(o: BenchOptions): AsyncGenerator<Figure> {
  const root = resolve(import.meta.dir, "..");
  const outfile = join(root, ".cache/bench", `raw-consume-${process.pid}`);
  const { outfile: subject } = await buildBinary({ root, entrypoints: SUBJECT, outfile });
  try {
    yield* allCases(o, subject);
  } finally {
    rmSync(subject, { force: true });
  }
}

async function* allCases(o: BenchOptions, subject: string): AsyncGenerator<Figure> {
  for (const [kind, codec, full, small] of CASES) {
    const topic = await topicOf(o, kind, codec, o.small ? small : full);
    if (topic === null) continue;
    try {
      const size = kind === "orders" ? "250 B" : "1 KB";
      yield await oneCase(o, subject, topic, `raw-consume ${size} ${codec}${full > 2e6 ? ", long" : ""}`);
    } finally {
      await topic.release();
    }
  }
}

async function oneCase(o: BenchOptions, subject: string, topic: Topic, bench: string): Promise<Figure> {
  const { bootstrap, name, records } = topic;
  const ours = (...more: string[]) => consume([subject, bootstrap, name, String(records), ...more], {});
  const theirs =
    o.peer === null
      ? null
      : (environment: Record<string, string>) =>
          consume(
            [o.peer ?? "", "consume", bootstrap, name, String(records), String(PARTITIONS)],
            environment,
          );
  // Hashing every value costs more than reading it, so that is a run of its own.
  const hashed = [await ours("--hash"), ...(theirs === null ? [] : [await theirs({ BENCH_HASH: "1" })])];
  const runs = await inTurn(o.rounds, ours, theirs === null ? null : () => theirs({}));
  const perSecond = (r: Run) => r.records / r.seconds;
  const cpu = (r: Run) => (r.ran.cpu / r.records) * 1e6;
  const value = median(runs.subject.map(perSecond));
  const peer = theirs === null ? null : median(runs.peer.map(perSecond));
  return {
    bench,
    subject: "twg source, and one lane with the decoder",
    peer: theirs === null ? null : "franz-go",
    unit: "records/s",
    value: Math.round(value),
    peer_value: peer === null ? null : Math.round(peer),
    ratio: ratioOf(value, peer),
    hash: sameHash(
      bench,
      hashed.map((r) => `${r.hash}/${r.bytes}`),
    ),
    n: records,
    cpu_per_million: round(median(runs.subject.map(cpu))),
    peer_cpu_per_million: theirs === null ? null : round(median(runs.peer.map(cpu))),
    startup_cpu_s: round(median(runs.subject.map((r) => r.startup))),
    rss_mb: medianSeen(runs.subject.map((r) => r.ran.rssMb)),
    peer_rss_mb: theirs === null ? null : medianSeen(runs.peer.map((r) => r.ran.rssMb)),
  };
}

async function consume(command: readonly string[], environment: Record<string, string>): Promise<Run> {
  const ran = await runProcess(command, environment);
  const line = lastLine<Consumed & { readonly startup_cpu?: number }>(ran.stdout);
  return { ...line, ran, startup: line.startup_cpu ?? 0 };
}

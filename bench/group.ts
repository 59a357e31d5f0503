/**
 * A member of a fresh group, alone in it: from the start to the first record, and records/s with the join in them. Ours
 * twice: the library's consumer on one thread, and source and decoder as in `twg`, the decoder in a Worker. Two figures a
 * peer of each; for the first, less is better, and `value` and `ratio` are rates (joins a second) all the same.
 *
 * Before anything is measured each client reads the topic once and hashes every value: the hashes have to be one, and the
 * files are in the page cache then.
 */
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
import { type Topic, topicOf } from "./topics.ts";

/** Long enough, the second one, that start and compilation at run time no longer show. */
const COUNTS = [2_000_000, 20_000_000] as const;
const SMALL = 20_000;

interface Run {
  readonly records: number;
  readonly bytes: number;
  /** Seconds to the first record, and to the last. */
  readonly first: number;
  readonly seconds: number;
  readonly hash: string;
  readonly ran: Ran;
}

let serial = 0;

/** One member with a group of its own name. */
async function run(peer: Peer, topic: Topic, environment: Record<string, string> = {}): Promise<Run> {
  const { bootstrap, name, records } = topic;
  const group = `twg-bench-${process.pid}-${serial++}`;
  const ran = await runProcess([...peer.command, bootstrap, name, String(records), group], environment);
  return { ...lastLine<Omit<Run, "ran">>(ran.stdout), ran };
}

export async function* group(o: BenchOptions): AsyncGenerator<Figure> {
  const consumer = await subjectOf(o, "group");
  const source = await subjectOf(o, "raw-consume", ["raw-lane"]);
  try {
    const ours = [
      { name: "twg consumer, one thread", command: consumer.command },
      { name: "twg source, and one lane with the decoder", command: source.command },
    ];
    const peers = await peersOf(o, "group", "group");
    for (const count of o.small ? [SMALL] : COUNTS) {
      const topic = await topicOf(o, "orders", "none", count);
      if (topic === null) continue;
      try {
        yield* oneTopic(o, topic, ours, peers);
      } finally {
        await topic.release();
      }
    }
  } finally {
    consumer.remove();
    source.remove();
  }
}

async function* oneTopic(
  o: BenchOptions,
  topic: Topic,
  ours: readonly Peer[],
  peers: readonly Peer[],
): AsyncGenerator<Figure> {
  const all = [...ours, ...peers];
  const hashed: string[] = [];
  for (const peer of all) {
    const { hash, records, bytes } = await run(peer, topic, { BENCH_HASH: "1" });
    hashed.push(`${hash}/${records}/${bytes}`);
  }
  const hash = sameHash("group", hashed);
  const runs = await inRotation(
    o.rounds,
    all.map((peer) => () => run(peer, topic)),
  );
  const counts = runs.flat().map((r) => `${r.records}/${r.bytes}`);
  sameHash("group, what was counted", counts);
  const long = topic.records > COUNTS[0] ? ", long" : "";
  for (const [i, subject] of ours.entries()) {
    for (const [k, peer] of peers.entries()) {
      const theirs = runs[ours.length + k]!;
      const f = { subject: subject.name, peer: peer.name, ours: runs[i]!, theirs, hash };
      yield figure(`group, joins to the first record${long}`, "joins/s", f, (r) => 1 / r.first);
      yield figure(`group, raw consume${long}`, "records/s", f, (r) => r.records / r.seconds);
    }
  }
}

interface Beside {
  readonly subject: string;
  readonly peer: string;
  readonly ours: readonly Run[];
  readonly theirs: readonly Run[];
  readonly hash: string;
}

function figure(bench: string, unit: string, f: Beside, rate: (r: Run) => number): Figure {
  const value = median(f.ours.map(rate));
  const theirs = median(f.theirs.map(rate));
  const cpu = (r: Run) => (r.ran.cpu / r.records) * 1e6;
  return {
    bench,
    subject: f.subject,
    peer: f.peer,
    unit,
    value: round(value),
    peer_value: round(theirs),
    ratio: ratioOf(value, theirs),
    hash: f.hash,
    n: f.ours[0]!.records,
    cpu_per_million: round(median(f.ours.map(cpu))),
    peer_cpu_per_million: round(median(f.theirs.map(cpu))),
    first_s: round(median(f.ours.map((r) => r.first))),
    peer_first_s: round(median(f.theirs.map((r) => r.first))),
    rss_mb: medianSeen(f.ours.map((r) => r.ran.rssMb)),
    peer_rss_mb: medianSeen(f.theirs.map((r) => r.ran.rssMb)),
  };
}

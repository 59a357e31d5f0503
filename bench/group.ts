/**
 * A member of a fresh group, alone in it: from the start to the first record, and records/s with the join in it. Two
 * figures a peer; for the first, less is better, and `value` and `ratio` are rates (joins a second) all the same.
 */
import { join, resolve } from "node:path";
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
import { topicOf } from "./topics.ts";

const COUNT = 2_000_000;
const SMALL = 20_000;

interface Run {
  readonly records: number;
  readonly bytes: number;
  /** Seconds to the first record, and to the last. */
  readonly first: number;
  readonly seconds: number;
  readonly ran: Ran;
}

const subject = join(resolve(import.meta.dir), "subjects/group.ts");
let serial = 0;

export async function* group(o: BenchOptions): AsyncGenerator<Figure> {
  const topic = await topicOf(o, "orders", "none", o.small ? SMALL : COUNT);
  if (topic === null) return;
  try {
    const one = (command: readonly string[]) => async (): Promise<Run> => {
      const name = `twg-bench-${process.pid}-${serial++}`;
      const ran = await runProcess([...command, topic.bootstrap, topic.name, String(topic.records), name]);
      return { ...lastLine<Omit<Run, "ran">>(ran.stdout), ran };
    };
    for (const { name, command } of await peersOf(o, "group", "group")) {
      const runs = await inTurn(o.rounds, one([process.execPath, subject]), one(command));
      const all = [...runs.subject, ...runs.peer];
      const hash = sameHash(
        "group",
        all.map((r) => `${r.records}/${r.bytes}`),
      );
      yield figure("group, joins to the first record", "joins/s", name, runs, hash, (r) => 1 / r.first);
      yield figure("group, raw consume", "records/s", name, runs, hash, (r) => r.records / r.seconds);
    }
  } finally {
    await topic.release();
  }
}

function figure(
  bench: string,
  unit: string,
  peer: string,
  runs: { readonly subject: Run[]; readonly peer: Run[] },
  hash: string,
  rate: (r: Run) => number,
): Figure {
  const value = median(runs.subject.map(rate));
  const theirs = median(runs.peer.map(rate));
  const cpu = (r: Run) => (r.ran.cpu / r.records) * 1e6;
  return {
    bench,
    subject: "twg consumer, one thread",
    peer,
    unit,
    value: round(value),
    peer_value: round(theirs),
    ratio: ratioOf(value, theirs),
    hash,
    n: runs.subject[0]!.records,
    cpu_per_million: round(median(runs.subject.map(cpu))),
    peer_cpu_per_million: round(median(runs.peer.map(cpu))),
    first_s: round(median(runs.subject.map((r) => r.first))),
    peer_first_s: round(median(runs.peer.map((r) => r.first))),
    rss_mb: medianSeen(runs.subject.map((r) => r.ran.rssMb)),
    peer_rss_mb: medianSeen(runs.peer.map((r) => r.ran.rssMb)),
  };
}

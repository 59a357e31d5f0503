/**
 * A topic of real brokers that is the copy of another, under torture: twg is killed, and with --kill-brokers so are the
 * brokers that both topics lie on. Counted by librdkafka, which reads committed records; each says by its headers where it
 * was. What could be left is a transaction that is open still: it would hold back the last stable offset.
 */
import { CRASH_POINTS, TRANSACTION_POINTS } from "../../src/core/delivery/crash-points.ts";
import { admin, CLUSTERS, createTopic, endsOf, python_, type Served } from "../../test/e2e/real-kafka.ts";
import { type TortureSink, twice } from "./sink.ts";

interface Compared {
  readonly copied: number;
  readonly lost: number;
  readonly doubled: number;
  readonly foreign: number;
  readonly differences: readonly string[];
  readonly ranges: Readonly<Record<string, readonly (readonly [number, number])[]>>;
}

/** In a sink that commits by itself there is no intent and nothing to publish. */
const ELSEWHERE = /intend|publish|cover/;

export async function kafkaSink(
  which: string | undefined,
  name: string,
  partitions: number,
): Promise<TortureSink> {
  const served = CLUSTERS.find((c) => c.version === which || c.plain.includes(which ?? ""));
  if (served === undefined)
    throw new Error("a Kafka sink needs --bootstrap with a real broker of with-servers.sh");
  const target = `${name}-copy`;
  const replicas = Math.min(3, served.plain.length);
  const config = { "min.insync.replicas": String(Math.max(1, replicas - 1)) };
  await createTopic(served, target, { partitions, config });
  let source = "";
  const compared = () =>
    python_<Compared>("compare_topics.py", [served.plain.join(","), source, target, "locator"]);
  return {
    section: `type = "kafka"
bootstrap = ${JSON.stringify(served.plain)}
topic = "${target}"
metadata = "locator"
coverage_topic = "${name}-coverage"
coverage_replicas = ${replicas}
commit_bytes = "256KiB"
commit_interval_ms = 150
transaction_timeout_ms = "30s"`,
    points: [...twice(CRASH_POINTS.filter((p) => !ELSEWHERE.test(p))), ...twice(TRANSACTION_POINTS)],
    before: () => {},
    slowMs: 1_500,
    trouble: () => () => Promise.resolve(),
    reads(topic) {
      source = topic;
    },
    async count() {
      const { copied, doubled, foreign, ranges } = await compared();
      const by = new Map(Object.entries(ranges).map(([p, r]) => [Number(p), r] as const));
      return { reader: "librdkafka", rows: copied, doubled: doubled + foreign, ranges: by };
    },
    landing: () => Promise.resolve(null),
    orphans: () => openTransactions(served, [target, `${name}-coverage`]),
    compare: async () => (await compared()).differences,
    figures: () => ({}),
    async stop() {
      for (const topic of [target, `${name}-coverage`])
        await admin(served, "delete", { topic }).catch(() => {});
    },
  };
}

/** Partitions whose last stable offset is not their end. */
export async function openTransactions(served: Served, topics: readonly string[]): Promise<string[]> {
  const open: string[] = [];
  for (const topic of topics) {
    const stable = await endsOf(served, topic);
    const all = await admin<Record<string, number>>(served, "ends", { topic, committed: false });
    for (const [p, end] of Object.entries(all))
      if (stable[p] !== end) open.push(`${topic}/${p}: stable up to ${stable[p]} of ${end}`);
  }
  return open;
}

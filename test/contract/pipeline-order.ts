/**
 * The order of a whole pipeline from brokers into a topic: the product's source, runner, lane and coverage speak to brokers through a tap. Around each request
 * of a transaction of rows, and around each commit of an offset to the source's group, a reader of committed records says what is there: an offset
 * is never committed above what is covered, whoever shares the partitions out.
 */
import { describe, expect, test } from "bun:test";
import { ASSIGNORS } from "../../src/adapters/kafka/assignors/table.ts";
import { KafkaClient } from "../../src/adapters/kafka/client.ts";
import { columnsOf } from "../../src/adapters/kafka/producer/columns.ts";
import { KafkaProducer } from "../../src/adapters/kafka/producer/producer.ts";
import { KafkaCoverage } from "../../src/adapters/kafka/sink/coverage.ts";
import { LaneTransactions } from "../../src/adapters/kafka/sink/lane-transactions.ts";
import { KafkaWriter } from "../../src/adapters/kafka/sink/writer.ts";
import { KafkaSource } from "../../src/adapters/kafka/source.ts";
import type { SharingOptions } from "../../src/adapters/kafka/source-group.ts";
import type { DecodedRequest } from "../../src/adapters/kafka/wire/protocol.ts";
import { createFrameDecoder } from "../../src/adapters/kafka/wire/records/frame-decoder.ts";
import { hostInProcess } from "../../src/adapters/lanes/in-process-host.ts";
import { systemSaslCrypto } from "../../src/adapters/system/sasl-crypto.ts";
import { Budget } from "../../src/core/delivery/budget.ts";
import { CoveredCommitter } from "../../src/core/delivery/covered-committer.ts";
import { Ledger } from "../../src/core/delivery/ledger.ts";
import { rateLimit } from "../../src/core/delivery/rate-limit.ts";
import { SizeEstimate } from "../../src/core/delivery/size-estimate.ts";
import { Admission } from "../../src/core/pipeline/admission.ts";
import { BufferPool } from "../../src/core/pipeline/buffer-pool.ts";
import { Lane } from "../../src/core/pipeline/lane.ts";
import { Runner } from "../../src/core/pipeline/runner.ts";
import type { RawWriter } from "../../src/core/ports/lane-parts.ts";
import { tapped } from "../brokers/kafka/wire-tap.ts";
import { laneTransactionOf, lookAtTopics } from "./kafka-order.ts";
import type { SinkBench } from "./kafka-sink-contract.ts";
import type { Seen } from "./order-contract.ts";

const BATCHES = 3;
const IN_BATCH = 2;
const ROWS = BATCHES * IN_BATCH;
const GROUP = "g";
const LANE = "live.0";

/** How the source's partitions are ours: named by us, or shared out in a group of either protocol. */
const WAYS = ["manual", "classic", "consumer"] as const;
type Way = (typeof WAYS)[number];

function sharing(way: Way): SharingOptions | null {
  if (way === "manual") return null;
  const times = { sessionTimeoutMs: 10_000, heartbeatIntervalMs: 1_000, rebalanceTimeoutMs: 10_000 };
  const assignors = [ASSIGNORS["cooperative-sticky"]];
  return { protocol: way, assignors, serverAssignor: null, instanceId: null, rackId: null, ...times };
}

interface Told {
  readonly complaints: string[];
  readonly commits: bigint[];
  seen: Seen;
  /** What ended the run. */
  failure: unknown;
}

/** `lies`: the lane says that a set is durable before it begins to end it. */
async function runPipeline(bench: SinkBench, way: Way, lies: boolean): Promise<Told> {
  const topic = await bench.compacted();
  await bench.run(produce(bench, topic));
  const outside = bench.client();
  const told: Told = { complaints: [], commits: [], seen: { rows: [], covered: [] }, failure: null };
  const moment = async (what: string, upTo: "now" | "end", commits: readonly bigint[] = []) => {
    const seen = await lookAtTopics(bench, outside, upTo);
    told.seen = seen;
    told.commits.push(...commits);
    const says = (complaint: string) => void told.complaints.push(`${what}: ${complaint}`);
    if (new Set(seen.rows).size < seen.rows.length) says("a row is there twice");
    const isCovered = (p: bigint) => seen.covered.some((r) => r.from <= p && p < r.next);
    for (const p of seen.rows) if (!isCovered(p)) says(`${p} is there and not covered`);
    for (let p = 0n; p < BigInt(ROWS); p++) {
      if (isCovered(p) && !seen.rows.includes(p)) says(`${p} is covered and not there`);
      for (const next of told.commits)
        if (p < next && !isCovered(p)) says(`${next} is committed, ${p} is not covered`);
    }
  };
  const tap = {
    before: async (r: DecodedRequest) => {
      if (r.api === "OffsetCommit")
        await moment(
          "before OffsetCommit",
          "now",
          r.body.topics.flatMap((t) => t.partitions.map((p) => p.committedOffset)),
        );
      if (laneTransactionOf(r) !== null) await moment(`before ${r.api}`, "now");
    },
    behind: async (r: DecodedRequest) => {
      if (laneTransactionOf(r) !== null) await moment(`behind ${r.api}`, r.api === "EndTxn" ? "end" : "now");
    },
  };
  const runner = pipelineOf(bench, topic, way, lies, tap);
  await bench.run(runner.run()).catch((e: unknown) => {
    told.failure = e;
  });
  outside.close();
  return told;
}

/** Values are "0/position". */
async function produce(bench: SinkBench, topic: string): Promise<void> {
  const { signal } = new AbortController();
  const client = bench.client();
  const producer = new KafkaProducer(client, { lingerMs: 0 }, bench.parts());
  await producer.start(signal);
  for (let b = 0; b < BATCHES; b++) {
    const records = Array.from({ length: IN_BATCH }, (_, i) => ({
      key: `k${IN_BATCH * b + i}`,
      value: `0/${IN_BATCH * b + i}`,
    }));
    await (await producer.send(topic, columnsOf(records), { partition: 0, signal })).done;
  }
  producer.abort();
  client.close();
}

function pipelineOf(
  bench: SinkBench,
  topic: string,
  way: Way,
  lies: boolean,
  tap: Parameters<typeof tapped>[1],
): Runner {
  const { settings, pipeline, target } = bench;
  const parts = () => {
    const all = bench.parts();
    return { ...all, net: tapped(all.net, tap), crypto: systemSaslCrypto };
  };
  const { clock, codecs } = bench.parts();
  const key = { pipeline, sink: "raw" };
  const coverageTopic = `cov.${pipeline}`;
  const rules = { topic: target, create: false, same: false, coverageTopic, coverageReplicas: 1 };
  const host = {
    self: { hostname: "h", pid: 1, bootId: "b", pidNamespace: "n", startTime: "live" },
    isAlive: () => "dead" as const,
  };
  const timeouts = { transactionTimeoutMs: 20_000 };
  const coverage = new KafkaCoverage(
    { key, rules, idPrefix: `twg.${pipeline}.raw`, instance: "live", leaseMs: 15_000, ...timeouts },
    { ...parts(), client: new KafkaClient(settings, parts()), host, laneLife: () => LANE },
  );
  const observer = { emit: () => {} };
  const source = new KafkaSource(
    {
      ...settings,
      ...{ topics: [topic], topicsPattern: null, group: GROUP, start: "earliest" },
      partitions: new Map(way === "manual" ? [[topic, [0]]] : []),
      ...{ committedOnly: true, topicWaitMs: 60_000, maxWaitMs: 100, maxBytes: 200, partitionMaxBytes: 100 },
      ...{ metadataRefreshMs: 60_000, onOutOfRange: "fail", onRecreated: "fail", rackId: "" },
      sharing: sharing(way),
    },
    { ...parts(), observer },
  );
  const budget = new Budget({ maxBytes: 64 * 1024, owners: [0] });
  return new Runner(
    {
      ...{ sink: "raw", lanes: 1, untilCaughtUp: true, heartbeatMs: 1_000, drainMs: 5_000 },
      rules: { start: "earliest", acceptGap: false, retention: "fail", onRecreated: "fail" },
    },
    {
      ...{ clock, source, coverage, observer, ledger: new Ledger(), sweep: async () => {} },
      committer: (listener) => new CoveredCommitter({ sink: "raw", clock, observer, listener }),
      admission: new Admission(clock, budget, rateLimit(clock, {}), new SizeEstimate(256)),
      buffers: new BufferPool(1 << 20),
      spawnLane: (lane) => {
        const options = {
          ...{
            settings,
            key,
            coverageTopic,
            compression: "lz4" as const,
            compressionLevel: null,
            batchBytes: 100_000,
          },
          ...{ topic: target, samePartition: false, commitBytes: 1 << 20, late: false, ...timeouts },
          headers: { choice: "none", prefix: "_twg_", pipeline },
        } as const;
        const writing = { ...parts(), writer: LANE };
        const writer = new KafkaWriter(options, writing, new LaneTransactions(options, writing));
        let sets = 0;
        return hostInProcess(
          (post) =>
            new Lane({
              ...{ lane, rollBytes: 1, rollIntervalMs: 1_000, clock, post },
              decoder: createFrameDecoder({ codecs }),
              writer: lies ? lying(writer) : writer,
              newSetId: () => `set-${sets++}`,
            }),
        );
      },
    },
  );
}

/** Says of the last set that it is durable when its end begins: one behind it would meet it in the middle. */
function lying(writer: RawWriter): RawWriter {
  let rows = 0;
  return new Proxy(writer, {
    get: (of, name) => {
      const value: unknown = Reflect.get(of, name, of);
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => {
        const answer: unknown = value.apply(of, args);
        if (name === "write") rows += Number(answer);
        if (name !== "seal" || rows < ROWS) return answer;
        void (answer as Promise<unknown>).catch(() => {});
        return Promise.resolve({ targets: [], covered: true, rows: IN_BATCH, bytes: 1 });
      };
    },
  });
}

export function pipelineOrderContract(name: string, make: () => Promise<SinkBench>): void {
  describe(`order of a pipeline over ${name}`, () => {
    test.each(WAYS.map((w) => [w]))(
      "an offset is committed behind the rows and their coverage, one transaction: %s",
      async (way) => {
        const bench = await make();
        const { complaints, commits, seen, failure } = await runPipeline(bench, way, false);
        expect([complaints, failure]).toEqual([[], null]);
        expect(commits.at(-1)).toBe(BigInt(ROWS));
        expect(seen.rows.toSorted()).toEqual(Array.from({ length: ROWS }, (_, i) => BigInt(i)));
        await bench.close();
      },
      120_000,
    );

    test("a lane that says too early that a set is durable is found", async () => {
      const bench = await make();
      const { complaints } = await runPipeline(bench, "manual", true);
      expect(complaints.join("\n")).toMatch(/before OffsetCommit: \d+ is committed, \d+ is not covered/);
      await bench.close();
    }, 120_000);
  });
}

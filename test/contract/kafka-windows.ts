/** Processes of the contract of windows whose sink is a topic: each has clients of its own, and one lane. */
import { KafkaCoverage } from "../../src/adapters/kafka/sink/coverage.ts";
import { LaneTransactions } from "../../src/adapters/kafka/sink/lane-transactions.ts";
import type { TransactionPoint } from "../../src/adapters/kafka/sink/set.ts";
import { KafkaWriter } from "../../src/adapters/kafka/sink/writer.ts";
import type { HostIdentity, Life } from "../../src/core/ports/host-identity.ts";
import type { SetFiles, SetRefusal } from "../../src/core/ports/lane-parts.ts";
import type { Span } from "../../src/core/records/stream.ts";
import { streamKey } from "../../src/core/records/stream.ts";
import type { Clock } from "../../src/core/time/clock.ts";
import { batchOf, bytes, row, STREAM } from "../core/formats/parquet/rows.ts";
import type { SinkBench } from "./kafka-sink-contract.ts";
import type { WindowBench, WindowProcess } from "./window-contract.ts";

export const KAFKA_LEASE_MS = 15_000;
export const WINDOW_STREAM = streamKey(STREAM);

export interface KafkaWindowBench extends Pick<SinkBench, "settings" | "pipeline" | "target" | "client"> {
  parts(): ReturnType<SinkBench["parts"]>;
  /** By which silence is judged. */
  readonly judging: Clock;
  readonly life: (instance: string) => Life;
  readonly hook?: (instance: string, point: TransactionPoint) => void;
}

export interface KafkaWindowProcess extends WindowProcess {
  readonly coverage: KafkaCoverage;
  seal(span: Span, authorities: Parameters<WindowProcess["land"]>[1]): Promise<SetFiles | SetRefusal>;
  close(): Promise<void>;
}

/** Rows of the span have "partition/offset" for a value. */
export function kafkaWindowProcess(bench: KafkaWindowBench, instance: string): KafkaWindowProcess {
  const { pipeline, target, settings, hook } = bench;
  const host: HostIdentity = {
    self: { hostname: "h", pid: 1, bootId: "b", pidNamespace: "n", startTime: instance },
    isAlive: (other) => bench.life(other.startTime),
  };
  const key = { pipeline, sink: "raw" };
  const coverageTopic = `cov.${pipeline}`;
  const rules = { topic: target, create: false, same: false, coverageTopic, coverageReplicas: 1 };
  const idPrefix = `twg.${pipeline}.raw`;
  const coverage = new KafkaCoverage(
    { key, rules, idPrefix, instance, leaseMs: KAFKA_LEASE_MS, transactionTimeoutMs: 20_000 },
    { ...bench.parts(), clock: bench.judging, client: bench.client(), host, laneLife: () => `${instance}.0` },
  );
  const options = {
    ...{ settings, key, coverageTopic, compressionLevel: null, batchBytes: 100_000 },
    ...{
      transactionTimeoutMs: 20_000,
      topic: target,
      samePartition: false,
      commitBytes: 1 << 20,
      late: true,
    },
    compression: "lz4",
    headers: { choice: "none", prefix: "_twg_", pipeline },
  } as const;
  const hooked = hook === undefined ? {} : { hook: (point: TransactionPoint) => hook(instance, point) };
  const parts = { ...bench.parts(), writer: `${instance}.0`, ...hooked };
  const writer = new KafkaWriter(options, parts, new LaneTransactions(options, parts));
  let sets = 0;
  const seal: KafkaWindowProcess["seal"] = async (span, authorities) => {
    writer.open(`${instance}-${sets++}`);
    const rows = Array.from({ length: Number(span.next - span.from) }, (_, i) =>
      row(Number(span.from) + i, { value: bytes(`${STREAM.partition}/${Number(span.from) + i}`) }),
    );
    writer.write(batchOf(rows, STREAM), authorities[0]!);
    return writer.seal([span], authorities);
  };
  return {
    coverage,
    seal,
    land: async (span, authorities) => {
      const sealed = await seal(span, authorities);
      if (!("refused" in sealed)) return "landed";
      if (sealed.refused === "gone") throw new Error(sealed.detail);
      return sealed.refused;
    },
    close: async () => {
      await writer.abort();
      await coverage.close();
    },
  };
}

export function kafkaWindows(bench: SinkBench, clock: Clock, pass: () => Promise<void>): WindowBench {
  const lives = new Map<string, Life>();
  const open: KafkaWindowProcess[] = [];
  const of: KafkaWindowBench = {
    ...{ settings: bench.settings, pipeline: bench.pipeline, target: bench.target, judging: clock },
    ...{ client: () => bench.client(), parts: () => bench.parts() },
    life: (instance) => lives.get(instance) ?? "unknown",
  };
  return {
    trustsHeads: true,
    life: (instance, life) => void lives.set(instance, life),
    pass,
    run: (work) => bench.run(work),
    close: async () => {
      for (const p of open) await bench.run(p.close());
      await bench.close();
    },
    process: (instance) => {
      const made = kafkaWindowProcess(of, instance);
      open.push(made);
      return made;
    },
  };
}

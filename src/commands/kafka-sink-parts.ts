/** The parts of a Kafka sink: transactions in the lanes, coverage in a topic of the same cluster. */
import { linuxIdentity } from "../adapters/coverage/host-identity.ts";
import { KafkaClient } from "../adapters/kafka/client.ts";
import { KafkaCoverage } from "../adapters/kafka/sink/coverage.ts";
import type { KafkaSinkCheckupOptions } from "../adapters/kafka/sink/doctor.ts";
import { prepareSink } from "../adapters/kafka/sink/prepare.ts";
import { filledName, type KafkaSinkSettings, kafkaSinkSettings } from "../adapters/kafka/sink/settings.ts";
import type { SinkKey } from "../adapters/kafka/sink/state.ts";
import type { TopicRules } from "../adapters/kafka/sink/targets.ts";
import type { KafkaWriterOptions } from "../adapters/kafka/sink/writer.ts";
import { systemClock } from "../adapters/system/clock.ts";
import { CoveredCommitter } from "../core/delivery/covered-committer.ts";
import { toWire } from "../core/failure/failure.ts";
import type { ResolvedConfig, SinkOf } from "./config-file.ts";
import { kafkaParts, kafkaRecordParts } from "./kafka-parts.ts";
import type { KafkaLaneSink } from "./lane-config.ts";
import { commitBytesOf } from "./sink-memory.ts";
import { LEASE_MS, type SinkContext, type SinkParts } from "./sink-parts.ts";
import { VERSION } from "./version.ts";

type Configured = Pick<ResolvedConfig, "pipeline">;

const keyOf = ({ pipeline }: Configured, sink: SinkOf<"kafka">): SinkKey => ({
  pipeline: pipeline.name,
  sink: sink.name,
});

function rulesOf(config: Configured, sink: SinkOf<"kafka">): TopicRules {
  return {
    topic: sink.topic,
    create: sink.create,
    same: sink.partition === "same",
    coverageTopic: filledName(sink.coverage_topic, { ...keyOf(config, sink) }),
    coverageReplicas: sink.coverage_replicas ?? -1,
  };
}

const idPrefixOf = ({ pipeline }: Configured, sink: SinkOf<"kafka">): string =>
  `${sink.transactional_id_prefix}.${pipeline.name}.${sink.name}`;

export function checkupOf(config: ResolvedConfig, sink: SinkOf<"kafka">): KafkaSinkCheckupOptions {
  const { source } = config;
  return {
    settings: kafkaSinkSettings(sink, VERSION),
    rules: rulesOf(config, sink),
    topics: source.topics ?? [],
    idPrefix: idPrefixOf(config, sink),
    transactionTimeoutMs: sink.transaction_timeout_ms,
  };
}

export function kafkaSinkParts(
  config: ResolvedConfig,
  sink: SinkOf<"kafka">,
  context: SinkContext,
): SinkParts {
  const { instance, shared, observer, laneLife = String } = context;
  const settings = kafkaSinkSettings(sink, VERSION);
  const client = new KafkaClient(settings, kafkaParts());
  const rules = rulesOf(config, sink);
  const coverage = new KafkaCoverage(
    {
      key: keyOf(config, sink),
      rules,
      idPrefix: idPrefixOf(config, sink),
      instance,
      leaseMs: LEASE_MS,
      transactionTimeoutMs: sink.transaction_timeout_ms,
      shared,
    },
    {
      ...kafkaRecordParts(),
      client,
      host: linuxIdentity(),
      laneLife,
      waiting: (owner, ms) => observer.emit({ e: "coverage.waiting", owner, ms }),
      trouble: (f) =>
        observer.emit(
          f === null ? { e: "coverage.healthy" } : { e: "coverage.troubled", failure: toWire(f) },
        ),
    },
  );
  let lane = laneSink(config, sink, settings, context.lanes);
  return {
    coverage,
    committer: (listener) =>
      new CoveredCommitter({ sink: sink.name, clock: systemClock, observer, listener }),
    get lane() {
      return lane;
    },
    prepare: () => prepareSink(client, settings, rules, systemClock),
    // A transaction that was not committed leaves nothing.
    sweep: () => Promise.resolve(),
    renew(renewed) {
      if (renewed.sink.type !== "kafka") return false;
      const before = lane.writer.settings;
      const now = kafkaSinkSettings(renewed.sink, VERSION);
      client.renew(now);
      lane = laneSink(renewed, renewed.sink, now, context.lanes);
      return JSON.stringify(before) !== JSON.stringify(now);
    },
  };
}

function laneSink(
  config: Configured,
  sink: SinkOf<"kafka">,
  settings: KafkaSinkSettings,
  lanes: number,
): KafkaLaneSink {
  const commitBytes = commitBytesOf(config.pipeline, sink, lanes);
  const writer: KafkaWriterOptions = {
    settings,
    key: keyOf(config, sink),
    coverageTopic: rulesOf(config, sink).coverageTopic,
    compression: sink.compression,
    compressionLevel: sink.compression_level ?? null,
    batchBytes: sink.batch_bytes,
    transactionTimeoutMs: sink.transaction_timeout_ms,
    topic: sink.topic,
    samePartition: sink.partition === "same",
    headers: { choice: sink.metadata, prefix: sink.metadata_prefix, pipeline: config.pipeline.name },
    commitBytes,
  };
  return {
    kind: "kafka",
    rollBytes: commitBytes,
    rollIntervalMs: sink.commit_interval_ms,
    writer,
    crashAt: process.env.TWG_CRASH_AT ?? null,
  };
}

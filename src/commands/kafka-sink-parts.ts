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
import type { ResolvedConfig, SinkOf } from "./config-file.ts";
import { crashPlan } from "./crash-hook.ts";
import { encodeOf } from "./kafka-encode.ts";
import { kafkaParts, kafkaRecordParts } from "./kafka-parts.ts";
import type { KafkaLaneSink } from "./lane-config.ts";
import { commitBytesOf } from "./sink-memory.ts";
import { coverageTrouble, HOLD_SHARE, LEASE_MS, type SinkContext, type SinkParts } from "./sink-parts.ts";
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
      leaseMs: context.leaseMs ?? LEASE_MS,
      transactionTimeoutMs: sink.transaction_timeout_ms,
      shared,
    },
    {
      ...kafkaRecordParts(),
      client,
      host: linuxIdentity(),
      laneLife,
      waiting: (owner, ms) => observer.emit({ e: "coverage.waiting", owner, ms }),
      trouble: coverageTrouble(context),
    },
  );
  let lane = laneSink(config, sink, settings, context);
  return {
    coverage,
    windows: coverage,
    committer: (listener) =>
      new CoveredCommitter({ sink: sink.name, clock: systemClock, observer, listener }),
    get lane() {
      return lane;
    },
    prepare: () => prepareSink(client, settings, rules, systemClock),
    // A transaction that was not committed leaves nothing.
    sweep: () => Promise.resolve(),
    renew(renewed) {
      const again = renewed.sinks.find((s) => s.name === sink.name);
      if (again?.type !== "kafka") return false;
      const before = lane.writer.settings;
      const now = kafkaSinkSettings(again, VERSION);
      client.renew(now);
      lane = laneSink(renewed, again, now, context);
      return JSON.stringify(before) !== JSON.stringify(now);
    },
  };
}

function laneSink(
  config: Configured,
  sink: SinkOf<"kafka">,
  settings: KafkaSinkSettings,
  context: SinkContext,
): KafkaLaneSink {
  const { lanes, secondary } = context;
  const rollBytes =
    secondary === null
      ? commitBytesOf(config.pipeline, sink, lanes)
      : Math.min(sink.commit_bytes, secondary.holdBytes / HOLD_SHARE);
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
    // A secondary one waits for the primary: what comes meanwhile counts into what it may hold.
    commitBytes: secondary === null ? rollBytes : Number.MAX_SAFE_INTEGER,
    late: secondary !== null,
  };
  return {
    kind: "kafka",
    rollBytes,
    rollIntervalMs: sink.commit_interval_ms,
    writer,
    encode: encodeOf(sink),
    crashAt: crashPlan(process.env.TWG_CRASH_AT, secondary === null ? null : sink.name),
  };
}

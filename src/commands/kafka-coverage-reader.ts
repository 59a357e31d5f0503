/** Reads the coverage of a Kafka sink from its topic, without taking the sink: a running pipeline goes on. */
import { KafkaClient } from "../adapters/kafka/client.ts";
import { readCoverageTopic } from "../adapters/kafka/sink/reader.ts";
import type { CoverageState } from "../core/coverage/state.ts";
import type { ResolvedConfig } from "./config-file.ts";
import { kafkaRecordParts } from "./kafka-parts.ts";
import { checkupOf } from "./kafka-sink-parts.ts";

export interface TopicCoverage {
  readonly place: string;
  readonly state: CoverageState;
}

/** Null if nothing was ever covered there, or the configuration's sink is another. */
export async function readKafkaCoverage(config: ResolvedConfig, name: string): Promise<TopicCoverage | null> {
  const { pipeline, sinks } = config;
  const sink = sinks.find((s) => s.name === name);
  if (sink?.type !== "kafka") return null;
  const { settings, rules } = checkupOf(config, sink);
  const parts = kafkaRecordParts();
  const client = new KafkaClient(settings, parts);
  try {
    const key = { pipeline: pipeline.name, sink: sink.name };
    const state = await readCoverageTopic(key, rules.coverageTopic, { ...parts, client });
    const place = `topic ${rules.coverageTopic}, sink ${sink.name} of ${pipeline.name}`;
    return state === null || state.streams.size === 0 ? null : { place, state };
  } finally {
    client.close();
  }
}

/**
 * The topics of a sink: the one of its coverage, and those that streams are written to. What is wrong with them is told
 * before anything is read.
 */
import { passes } from "../../../core/coverage/outage.ts";
import { Failure } from "../../../core/failure/failure.ts";
import { type StreamKey, streamParts } from "../../../core/records/stream.ts";
import { type Clock, sleep } from "../../../core/time/clock.ts";
import { createTopics, topicConfigs } from "../admin.ts";
import type { KafkaClient } from "../client.ts";
import { brokerFailure } from "../client-retry.ts";
import { ERROR, kafkaError } from "../wire/errors.ts";
import { ZERO_UUID } from "../wire/uuid.ts";
import { filledName } from "./settings.ts";
import { COVERAGE_PARTITIONS } from "./state.ts";

export interface TopicRules {
  /** With `{topic}`. */
  readonly topic: string;
  readonly create: boolean;
  readonly same: boolean;
  readonly coverageTopic: string;
  /** -1: as the brokers do. */
  readonly coverageReplicas: number;
}

/**
 * Small segments, so that what was overwritten is cleaned soon and a start reads little; the end of a key is kept for a
 * day, so that whoever follows the log misses none.
 */
const COVERAGE_CONFIGS: Readonly<Record<string, string>> = {
  "cleanup.policy": "compact",
  "segment.bytes": String(16 * 1024 * 1024),
  "segment.ms": "3600000",
  "min.cleanable.dirty.ratio": "0.3",
  "delete.retention.ms": "86400000",
};

/** A topic that was made just now takes moments to get its leaders. */
const SPREAD_TRIES = 50;
const SPREAD_PAUSE_MS = 100;

interface Found {
  readonly topicId: string;
  readonly partitions: number;
}

/** Null: there is none. Throws kafka.topic_denied. */
async function look(client: KafkaClient, topic: string, signal: AbortSignal): Promise<Found | null> {
  const { errors } = await client.refresh([topic], signal);
  const code = errors.get(topic);
  if (code !== undefined && kafkaError(code).action === "denied")
    throw brokerFailure(code, `Metadata of topic ${topic}`, "");
  if (code === ERROR.UNKNOWN_TOPIC_OR_PARTITION) return null;
  const state = client.metadata.topics.get(topic);
  if (state === undefined || code !== undefined) {
    throw new Failure("kafka.broker_error", `topic ${topic} is not ready`, { retry: true });
  }
  return { topicId: state.topicId, partitions: state.partitions.size };
}

async function made(client: KafkaClient, topic: string, clock: Clock, signal: AbortSignal): Promise<Found> {
  for (let tries = 0; tries < SPREAD_TRIES; tries++) {
    const found = await look(client, topic, signal).catch((e) => {
      if (e instanceof Failure && e.retry) return null;
      throw e;
    });
    if (found !== null && found.partitions > 0) return found;
    await sleep(clock, SPREAD_PAUSE_MS, signal);
  }
  throw new Failure("kafka.unknown_topic", `topic ${topic} was made and is not to be found`, { retry: true });
}

/** Makes the coverage topic, or proves that the one that is there keeps what is written to it. */
export async function prepareCoverageTopic(
  client: KafkaClient,
  rules: TopicRules,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const { coverageTopic: name, coverageReplicas: replicas } = rules;
  if ((await look(client, name, signal)) === null) {
    const wanted = { name, partitions: COVERAGE_PARTITIONS, replicas, configs: COVERAGE_CONFIGS };
    await createTopics(client, [wanted], signal);
    await made(client, name, clock, signal);
  }
  await checkCoverageTopic(client, rules, signal);
}

/** Throws kafka.coverage_topic. False: it is not there. */
export async function checkCoverageTopic(
  client: KafkaClient,
  { coverageTopic }: TopicRules,
  signal: AbortSignal,
): Promise<boolean> {
  const found = await look(client, coverageTopic, signal);
  if (found === null) return false;
  const configs = await topicConfigs(client, [coverageTopic], ["cleanup.policy"], signal);
  const policy = configs.get(coverageTopic)?.get("cleanup.policy") ?? "delete";
  const wrong =
    policy === "compact"
      ? found.partitions < COVERAGE_PARTITIONS
        ? `it has ${found.partitions} partition, ${COVERAGE_PARTITIONS} are needed`
        : null
      : `its cleanup.policy is ${policy}`;
  if (wrong === null) return true;
  throw new Failure("kafka.coverage_topic", `the topic cannot hold coverage: ${wrong}`, {
    at: coverageTopic,
    hint: "Retention would forget what has landed, and it would land again. Set cleanup.policy=compact, or name another coverage_topic",
  });
}

export interface Written {
  readonly topic: string;
  readonly partition: number;
}

export const targetOf = (rules: TopicRules, stream: StreamKey): string =>
  filledName(rules.topic, { topic: streamParts(stream).topic });

/**
 * Proves that the streams can be written, and makes topics where that is wanted. Answers the id of each topic, where the
 * brokers tell ids. `known`: topics that were written to and the ids that they had.
 */
export async function prepareTargets(
  client: KafkaClient,
  rules: TopicRules,
  streams: readonly StreamKey[],
  known: ReadonlyMap<string, string>,
  clock: Clock,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  for (const stream of streams) refuseLoop(client.metadata.clusterId ?? "", rules, stream);
  const ids = new Map<string, string>();
  for (const topic of new Set(streams.map((s) => targetOf(rules, s)))) {
    const found =
      (await look(client, topic, signal)) ?? (await created(client, rules, topic, known, clock, signal));
    const before = known.get(topic);
    if (before !== undefined && found.topicId !== ZERO_UUID && before !== found.topicId) throw gone(topic);
    if (found.topicId !== ZERO_UUID) ids.set(topic, found.topicId);
    if (rules.same) refuseFewer(topic, found.partitions, streams, rules);
  }
  return ids;
}

async function created(
  client: KafkaClient,
  rules: TopicRules,
  topic: string,
  known: ReadonlyMap<string, string>,
  clock: Clock,
  signal: AbortSignal,
): Promise<Found> {
  if (known.has(topic)) throw gone(topic);
  if (!rules.create) {
    throw new Failure("kafka.unknown_topic", "the topic of the sink does not exist", {
      at: topic,
      hint: "Create it, or set `create = true`. A user without DESCRIBE on it sees the same",
    });
  }
  await createTopics(client, [{ name: topic, partitions: -1, replicas: -1 }], signal);
  return made(client, topic, clock, signal);
}

/** Records of it count as landed: writing on as if nothing were missing would hide that they are not there. */
function gone(topic: string): Failure {
  return new Failure("kafka.sink_recreated", "the topic was deleted, and records of it count as landed", {
    at: topic,
    hint: "To land everything again, give the sink another name, or delete its coverage topic",
  });
}

/** What is written would be read and written again, without end. */
export function refuseLoop(cluster: string, rules: TopicRules, stream: StreamKey): void {
  const from = streamParts(stream);
  if (from.cluster !== cluster) return;
  const into = targetOf(rules, stream);
  if (from.topic !== into && from.topic !== rules.coverageTopic) return;
  const what = from.topic === into ? "the topic that is read" : "the sink's own coverage, which is no source";
  throw new Failure("kafka.sink_is_source", `${from.topic} is ${what}, of the same cluster`, {
    at: from.topic,
    hint: 'Write to a topic of another name, `topic = "copy.{topic}"` say, or leave it out of source.topics',
  });
}

function refuseFewer(
  topic: string,
  partitions: number,
  streams: readonly StreamKey[],
  rules: TopicRules,
): void {
  const most = streams
    .filter((s) => targetOf(rules, s) === topic)
    .reduce((n, s) => Math.max(n, streamParts(s).partition), 0);
  if (most < partitions) return;
  throw new Failure(
    "kafka.unknown_partition",
    `the topic has ${partitions} partitions, the source's more than ${most}`,
    {
      at: topic,
      hint: 'With partition = "same" it needs as many as the source. Add some, or set partition = "key"',
    },
  );
}

/** What is wrong with the topics themselves nobody mends by waiting. */
const FOR_GOOD: ReadonlySet<string> = new Set([
  "kafka.sink_is_source",
  "kafka.sink_recreated",
  "kafka.coverage_topic",
  "kafka.unknown_partition",
  "kafka.unknown_topic",
]);

/** Whether it is waited out. */
export const passesAtTopics = (f: Failure): boolean => passes(f) && (f.retry || !FOR_GOOD.has(f.code));

/**
 * What an ingest asks a cluster beside its records: topics and their settings, groups and their positions, and that a
 * topic be made. Functions over a client; nothing is kept. Each rejects with the Failure of the first broker that
 * refuses, and answers of brokers that are down are missing rather than guessed.
 */
import { asFailure, Failure } from "../../core/failure/failure.ts";
import { askGroup } from "./admin-groups.ts";
import { CONTROL, type KafkaClient } from "./client.ts";
import type { BrokerLink } from "./client-link.ts";
import { brokerFailure } from "./client-retry.ts";
import { askedTopics, onlyWanted, type TopicsWanted } from "./session/metadata-state.ts";
import { ERROR, errorName, kafkaError } from "./wire/errors.ts";
import { TOPIC_RESOURCE } from "./wire/messages/describe-configs.ts";
import { EARLIEST_TIMESTAMP, LATEST_TIMESTAMP } from "./wire/messages/list-offsets.ts";
import type { MetadataResponse } from "./wire/messages/metadata.ts";
import { ZERO_UUID } from "./wire/uuid.ts";

/** Highest version that names topics instead of ids. */
const OFFSETS_BY_NAME = 9;

export interface ClusterDescription {
  readonly clusterId: string | null;
  /** Of KRaft clusters any broker: it says nothing there. */
  readonly controller: number;
  readonly brokers: readonly {
    readonly id: number;
    readonly host: string;
    readonly port: number;
    readonly rack: string | null;
  }[];
  readonly topics: readonly TopicDescription[];
}

export interface TopicDescription {
  readonly name: string;
  /** null: the broker gives none. */
  readonly id: string | null;
  readonly internal: boolean;
  /** Name of the broker's error, null if there is none. */
  readonly error: string | null;
  readonly partitions: readonly PartitionDescription[];
}

export interface PartitionDescription {
  readonly partition: number;
  /** -1: none. */
  readonly leader: number;
  readonly leaderEpoch: number;
  readonly replicas: readonly number[];
  readonly isr: readonly number[];
  readonly offline: readonly number[];
}

/** `topics` null: all of them. */
export async function describeCluster(
  client: KafkaClient,
  topics: TopicsWanted | null,
  signal: AbortSignal,
): Promise<ClusterDescription> {
  await client.refresh(topics ?? [], signal);
  const link = await anyLink(client, signal);
  const body = { topics: topics === null ? null : askedTopics(topics), allowAutoTopicCreation: false };
  const response = onlyWanted(await client.ask(link, "Metadata", body, signal), topics ?? []);
  client.metadata.apply(response);
  return {
    clusterId: response.clusterId,
    controller: response.controllerId,
    brokers: response.brokers.map(({ nodeId, host, port, rack }) => ({ id: nodeId, host, port, rack })),
    topics: response.topics.map(topicOf).sort((a, b) => (a.name < b.name ? -1 : 1)),
  };
}

function topicOf(t: MetadataResponse["topics"][number]): TopicDescription {
  const partitions = t.partitions.map((p) => ({
    partition: p.partitionIndex,
    leader: p.leaderId,
    leaderEpoch: p.leaderEpoch,
    replicas: p.replicaNodes,
    isr: p.isrNodes,
    offline: p.offlineReplicas,
  }));
  return {
    name: t.name ?? "",
    id: t.topicId === ZERO_UUID ? null : t.topicId,
    internal: t.isInternal,
    error: t.errorCode === ERROR.NONE ? null : errorName(t.errorCode),
    partitions: partitions.sort((a, b) => a.partition - b.partition),
  };
}

/** The open connection of any broker. */
async function anyLink(client: KafkaClient, signal: AbortSignal): Promise<BrokerLink> {
  let failure: Failure | null = null;
  for (const id of client.metadata.brokers.keys()) {
    try {
      return await client.link(id, CONTROL, signal);
    } catch (e) {
      failure ??= asFailure(e);
    }
  }
  throw failure ?? new Failure("kafka.broker_error", "no broker is known", { retry: true });
}

export interface Watermarks {
  readonly topic: string;
  readonly partition: number;
  /** null: its leader did not tell. */
  readonly earliest: bigint | null;
  readonly latest: bigint | null;
}

/** First and next offset of the partitions, asked of their leaders: two requests a leader. */
export async function watermarks(
  client: KafkaClient,
  topics: readonly TopicDescription[],
  signal: AbortSignal,
): Promise<readonly Watermarks[]> {
  const all = topics.flatMap((t) => t.partitions.map((p) => ({ topic: t.name, ...p })));
  const found = new Map<string, bigint>();
  const leaders = new Set(all.map((p) => p.leader).filter((l) => l >= 0));
  const ask = async (leader: number, timestamp: bigint) => {
    const mine = all.filter((p) => p.leader === leader);
    const names = [...new Set(mine.map((p) => p.topic))];
    const body = {
      replicaId: -1,
      isolationLevel: 0,
      topics: names.map((name) => ({
        name,
        partitions: mine
          .filter((p) => p.topic === name)
          .map((p) => ({ partitionIndex: p.partition, currentLeaderEpoch: -1, timestamp })),
      })),
    };
    const response = await client.ask(
      await client.link(leader, CONTROL, signal),
      "ListOffsets",
      body,
      signal,
    );
    for (const { name, partitions } of response.topics)
      for (const p of partitions)
        if (p.errorCode === ERROR.NONE) found.set(`${timestamp} ${p.partitionIndex} ${name}`, p.offset);
  };
  // A leader that is down leaves its partitions without an answer; the others' stand.
  await Promise.allSettled(
    [...leaders].flatMap((leader) => [ask(leader, EARLIEST_TIMESTAMP), ask(leader, LATEST_TIMESTAMP)]),
  );
  return all.map(({ topic, partition }) => ({
    topic,
    partition,
    earliest: found.get(`${EARLIEST_TIMESTAMP} ${partition} ${topic}`) ?? null,
    latest: found.get(`${LATEST_TIMESTAMP} ${partition} ${topic}`) ?? null,
  }));
}

export interface GroupListing {
  readonly group: string;
  /** "consumer" for consumers; empty: only offsets are kept. */
  readonly protocol: string;
  /** Empty where the broker does not tell. */
  readonly state: string;
  readonly type: string;
}

/** The groups of the whole cluster: every broker knows those that it coordinates. */
export async function listGroups(client: KafkaClient, signal: AbortSignal): Promise<readonly GroupListing[]> {
  await client.refresh([], signal);
  const of = async (id: number): Promise<GroupListing[]> => {
    const link = await client.link(id, CONTROL, signal);
    const { errorCode, groups } = await client.ask(link, "ListGroups", {}, signal);
    if (errorCode !== ERROR.NONE) throw brokerFailure(errorCode, "ListGroups", link.at);
    return groups.map((g) => ({
      group: g.groupId,
      protocol: g.protocolType,
      state: g.groupState,
      type: g.groupType,
    }));
  };
  const lists = await Promise.all([...client.metadata.brokers.keys()].map(of));
  return lists.flat().sort((a, b) => (a.group < b.group ? -1 : 1));
}

export interface CommittedOffset {
  readonly topic: string;
  readonly partition: number;
  readonly offset: bigint;
  readonly leaderEpoch: number;
  readonly metadata: string | null;
}

/** Every position that a group has committed. */
export async function committedOffsets(
  client: KafkaClient,
  group: string,
  signal: AbortSignal,
): Promise<readonly CommittedOffset[]> {
  const body = {
    groupId: group,
    topics: null,
    groups: [{ groupId: group, topics: null }],
    requireStable: true,
  };
  const mine = await askGroup(client, group, signal, async (link) => {
    const response = await client.ask(link, "OffsetFetch", body, signal, OFFSETS_BY_NAME);
    const found = response.groups[0] ?? response;
    if (found.errorCode !== ERROR.NONE)
      throw brokerFailure(found.errorCode, `OffsetFetch of group ${group}`, link.at);
    return found;
  });
  return mine.topics.flatMap(({ name, partitions }) =>
    partitions
      .filter((p) => p.errorCode === ERROR.NONE && p.committedOffset >= 0n)
      .map((p) => ({
        topic: name,
        partition: p.partitionIndex,
        offset: p.committedOffset,
        leaderEpoch: p.committedLeaderEpoch,
        metadata: p.metadata,
      })),
  );
}

/** Settings of topics by name: what counts, wherever it was set. Secrets and what is not set are null. */
export async function topicConfigs(
  client: KafkaClient,
  topics: readonly string[],
  names: readonly string[] | null,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, ReadonlyMap<string, string | null>>> {
  const link = await anyLink(client, signal);
  const resources = topics.map((resourceName) => ({
    resourceType: TOPIC_RESOURCE,
    resourceName,
    configurationKeys: names,
  }));
  const { results } = await client.ask(link, "DescribeConfigs", { resources }, signal);
  const found = new Map<string, ReadonlyMap<string, string | null>>();
  for (const { errorCode, resourceName, configs } of results) {
    if (errorCode !== ERROR.NONE)
      throw brokerFailure(errorCode, `DescribeConfigs of topic ${resourceName}`, link.at);
    found.set(resourceName, new Map(configs.map((c) => [c.name, c.value])));
  }
  return found;
}

export interface NewTopic {
  readonly name: string;
  /** -1: as the broker is configured. */
  readonly partitions: number;
  readonly replicas: number;
  readonly configs?: Readonly<Record<string, string>>;
}

/** Makes topics. One that is there already is left as it is and answered false. */
export async function createTopics(
  client: KafkaClient,
  topics: readonly NewTopic[],
  signal: AbortSignal,
  timeoutMs = 30_000,
): Promise<ReadonlyMap<string, boolean>> {
  await client.refresh([], signal);
  const body = {
    topics: topics.map((t) => ({
      name: t.name,
      numPartitions: t.partitions,
      replicationFactor: t.replicas,
      assignments: [],
      configs: Object.entries(t.configs ?? {}).map(([name, value]) => ({ name, value })),
    })),
    timeoutMs,
    validateOnly: false,
  };
  // With ZooKeeper only the controller makes topics, and which it is may have changed: each broker is asked in turn.
  let failure: Failure | null = null;
  for (const id of client.metadata.brokers.keys()) {
    const link = await client.link(id, CONTROL, signal);
    const { topics: made } = await client.ask(link, "CreateTopics", body, signal);
    const refused = made.find(
      (t) => t.errorCode !== ERROR.NONE && t.errorCode !== ERROR.TOPIC_ALREADY_EXISTS,
    );
    if (refused === undefined) return new Map(made.map((t) => [t.name, t.errorCode === ERROR.NONE]));
    const why = refused.errorMessage ?? errorName(refused.errorCode);
    failure = new Failure(
      brokerFailure(refused.errorCode, "", "").code,
      `topic ${refused.name} was not made: ${why}`,
      {
        at: link.at,
        retry: kafkaError(refused.errorCode).retriable,
      },
    );
    if (kafkaError(refused.errorCode).action !== "refresh") throw failure;
  }
  throw failure ?? new Failure("kafka.broker_error", "no broker is known", { retry: true });
}

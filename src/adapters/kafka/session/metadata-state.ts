/**
 * What we believe of the cluster, updated by Metadata responses and leader hints (KIP-951).
 *
 * - A response without brokers says nothing and is ignored; brokers missing from one that has some are dropped.
 * - A leader epoch never goes back, except when the topic id changed; -1 is "not told" and is never adopted.
 *   A leader told without an epoch, or again and again with an older one, is followed without a check of the epoch.
 * - A topic with an error keeps what was known; one with no partitions and no error is not there yet.
 */
import type { MetadataPartition, MetadataResponse, MetadataTopic } from "../wire/messages/metadata.ts";
import { ZERO_UUID } from "../wire/uuid.ts";

export interface BrokerAddress {
  readonly host: string;
  readonly port: number;
}

export interface PartitionLeader {
  /** Broker id, -1: none now. */
  readonly leader: number;
  /** Highest epoch seen, -1: none ever. */
  readonly epoch: number;
  /** What to send as current leader epoch: `epoch`, or -1 where the leader was told without one. */
  readonly requestEpoch: number;
  /** Responses in a row that named an older epoch. */
  readonly stale: number;
}

export interface TopicState {
  readonly topicId: string;
  readonly partitions: Map<number, PartitionLeader>;
  /** Broker ids by partition, of replicas that are offline too. */
  readonly replicas: Map<number, readonly number[]>;
}

/** All topics that match, and besides those of `also`. */
export interface MatchedTopics {
  readonly text: string;
  readonly also: readonly string[];
  matches(name: string): boolean;
}

/** What Metadata is asked for: these, or all of them to look through. */
export type TopicsWanted = readonly string[] | MatchedTopics;

/** In a request; null: all topics. */
export function askedTopics(wanted: TopicsWanted): { name: string; topicId: string }[] | null {
  return "matches" in wanted ? null : wanted.map((name) => ({ name, topicId: ZERO_UUID }));
}

/** Of all topics those that are wanted: the others are not worth their memory. */
export function onlyWanted(response: MetadataResponse, wanted: TopicsWanted): MetadataResponse {
  if (!("matches" in wanted)) return response;
  const topics = response.topics.filter(
    ({ name, isInternal }) =>
      name !== null && ((!isInternal && wanted.matches(name)) || wanted.also.includes(name)),
  );
  return { ...response, topics };
}

export interface MetadataChange {
  /** False: the response was ignored as a whole. */
  readonly applied: boolean;
  /** Topics that it names, those with an error too. */
  readonly topics: ReadonlySet<string>;
  /** Topics with a top-level error, 5 (leader not available) for one without partitions. */
  readonly errors: ReadonlyMap<string, number>;
}

const LEADER_NOT_AVAILABLE = 5;
/** After so many older epochs in a row the cluster itself must have gone back (restored, or moved). */
const STALE_TOLERANCE = 5;

const UNKNOWN: PartitionLeader = { leader: -1, epoch: -1, requestEpoch: -1, stale: 0 };

/** The leader after a report of (leader, epoch). */
export function nextLeader(known: PartitionLeader, leader: number, epoch: number): PartitionLeader {
  if (leader < 0) return { ...known, leader: -1, stale: 0 };
  if (epoch < 0) return { leader, epoch: known.epoch, requestEpoch: -1, stale: 0 };
  if (epoch >= known.epoch) return { leader, epoch, requestEpoch: epoch, stale: 0 };
  if (known.stale + 1 < STALE_TOLERANCE) return { ...known, stale: known.stale + 1 };
  return { leader, epoch: known.epoch, requestEpoch: -1, stale: known.stale };
}

export class MetadataState {
  clusterId: string | null = null;
  readonly brokers = new Map<number, BrokerAddress>();
  readonly topics = new Map<string, TopicState>();
  /** By broker id, where brokers have one; of those that are down as well. */
  readonly racks = new Map<number, string>();

  apply(response: MetadataResponse): MetadataChange {
    const errors = new Map<string, number>();
    const topics = new Set<string>();
    if (response.errorCode !== 0 || response.brokers.length === 0) return { applied: false, topics, errors };
    this.brokers.clear();
    for (const b of response.brokers) {
      this.brokers.set(b.nodeId, { host: b.host, port: b.port });
      if (b.rack !== null && b.rack !== "") this.racks.set(b.nodeId, b.rack);
      else this.racks.delete(b.nodeId);
    }
    if (response.clusterId !== null) this.clusterId = response.clusterId;
    for (const topic of response.topics) {
      if (topic.name === null) continue;
      topics.add(topic.name);
      if (topic.errorCode !== 0 || topic.partitions.length === 0) {
        errors.set(topic.name, topic.errorCode === 0 ? LEADER_NOT_AVAILABLE : topic.errorCode);
        continue;
      }
      const before = this.topics.get(topic.name);
      if (before !== undefined && isOtherTopic(before.topicId, topic.topicId)) this.topics.delete(topic.name);
      this.#applyTopic(topic.name, topic);
    }
    return { applied: true, topics, errors };
  }

  #applyTopic(name: string, topic: MetadataTopic): void {
    const before = this.topics.get(name);
    const topicId = topic.topicId === ZERO_UUID && before !== undefined ? before.topicId : topic.topicId;
    const partitions = before?.partitions ?? new Map<number, PartitionLeader>();
    const replicas = before?.replicas ?? new Map<number, readonly number[]>();
    for (const p of topic.partitions) {
      applyPartition(partitions, p);
      if (p.partitionIndex >= 0) replicas.set(p.partitionIndex, p.replicaNodes);
    }
    this.topics.set(name, { topicId, partitions, replicas });
  }

  /** A hint of a broker that is not the leader any more. Only a newer epoch is news. True: adopted. */
  hint(
    topic: string,
    partition: number,
    leader: number,
    epoch: number,
    address: BrokerAddress | null,
  ): boolean {
    const partitions = this.topics.get(topic)?.partitions;
    const known = partitions?.get(partition);
    if (partitions === undefined || known === undefined || leader < 0 || epoch <= known.epoch) return false;
    if (address !== null) this.brokers.set(leader, address);
    else if (!this.brokers.has(leader)) return false;
    partitions.set(partition, { leader, epoch, requestEpoch: epoch, stale: 0 });
    return true;
  }

  leader(topic: string, partition: number): PartitionLeader {
    return this.topics.get(topic)?.partitions.get(partition) ?? UNKNOWN;
  }

  /** Racks of each partition's replicas, by partition; empty where no broker tells one. */
  racksOf(topic: string): ReadonlySet<string>[] {
    const known = this.topics.get(topic);
    if (known === undefined || this.racks.size === 0) return [];
    return Array.from(
      { length: known.partitions.size },
      (_, p) => new Set((known.replicas.get(p) ?? []).flatMap((id) => this.racks.get(id) ?? [])),
    );
  }

  /** ZERO_UUID where the broker has none, or the topic is not known. */
  idOf(topic: string): string {
    return this.topics.get(topic)?.topicId ?? ZERO_UUID;
  }
}

function applyPartition(partitions: Map<number, PartitionLeader>, p: MetadataPartition): void {
  if (p.partitionIndex < 0) return;
  const known = partitions.get(p.partitionIndex) ?? UNKNOWN;
  partitions.set(p.partitionIndex, nextLeader(known, p.leaderId, p.leaderEpoch));
}

/** A broker that gives no ids (or stopped to) tells nothing about identity. */
function isOtherTopic(before: string, now: string): boolean {
  return before !== now && before !== ZERO_UUID && now !== ZERO_UUID;
}

/** Metadata (key 3). Dead brokers are not listed; a topic may be asked for by id from v12. */
import { ERROR } from "../../../../src/adapters/kafka/wire/errors.ts";
import type { MetadataTopic } from "../../../../src/adapters/kafka/wire/messages/metadata.ts";
import type { Draft } from "../../../../src/adapters/kafka/wire/protocol.ts";
import { ZERO_UUID } from "../../../../src/adapters/kafka/wire/uuid.ts";
import type { Broker, FakeCluster, Partition, Topic } from "../cluster.ts";
import { epochOf, takeFault } from "./leadership.ts";
import type { Call } from "./table.ts";

const TOPIC_NAME = /^[a-zA-Z0-9._-]{1,249}$/;

export function metadata({ cluster, broker, request, reply }: Call<"Metadata">): void {
  const alive = cluster.brokers.filter((b) => b.alive);
  const wanted = request.body.topics;
  // v0 had no null: an empty list asked for all topics.
  const all = wanted === null || (request.version === 0 && wanted.length === 0);
  const topics = all
    ? [...cluster.topics.values()].map((t) => describe(cluster, broker, t))
    : wanted.map((w) => find(cluster, broker, w.name, w.topicId, request.body.allowAutoTopicCreation));
  reply({
    brokers: alive.map((b) => ({ nodeId: b.id, host: b.host, port: b.port, rack: b.rack })),
    clusterId: cluster.clusterId,
    controllerId: alive[0]?.id ?? -1,
    topics,
  });
}

function find(
  cluster: FakeCluster,
  broker: Broker,
  name: string | null,
  topicId: string,
  create: boolean,
): Draft<MetadataTopic> {
  if (topicId !== ZERO_UUID) {
    const topic = cluster.topicById(topicId);
    return topic === undefined
      ? { errorCode: ERROR.UNKNOWN_TOPIC_ID, name: null, topicId }
      : describe(cluster, broker, topic);
  }
  const wanted = name ?? "";
  if (!TOPIC_NAME.test(wanted)) return { errorCode: ERROR.INVALID_TOPIC_EXCEPTION, name: wanted };
  const topic = cluster.topics.get(wanted);
  if (topic !== undefined) return describe(cluster, broker, topic);
  if (!create || !cluster.autoCreateTopics)
    return { errorCode: ERROR.UNKNOWN_TOPIC_OR_PARTITION, name: wanted };
  cluster.createTopic(wanted);
  // A real broker too answers the first request before the topic has leaders.
  return { errorCode: ERROR.LEADER_NOT_AVAILABLE, name: wanted };
}

function describe(cluster: FakeCluster, broker: Broker, topic: Topic): Draft<MetadataTopic> {
  if (topic.error !== 0) return { errorCode: topic.error, name: topic.name };
  return {
    name: topic.name,
    topicId: broker.profile.topicIds === "real" ? topic.id : ZERO_UUID,
    partitions: topic.partitions.map((p) => partitionOf(cluster, broker, p)),
  };
}

function partitionOf(cluster: FakeCluster, broker: Broker, p: Partition) {
  const live = p.replicas.filter((id) => cluster.broker(id).alive);
  const fault = p.faults.some((f) => f.api === "Metadata") ? takeFault(p, "Metadata") : 0;
  return {
    errorCode: fault !== 0 ? fault : p.leader < 0 ? ERROR.LEADER_NOT_AVAILABLE : ERROR.NONE,
    partitionIndex: p.index,
    leaderId: p.leader,
    leaderEpoch: epochOf(broker, p.leaderEpoch),
    replicaNodes: p.replicas,
    isrNodes: live,
    offlineReplicas: p.replicas.filter((id) => !live.includes(id)),
  };
}

/** AddPartitionsToTxn, AddOffsetsToTxn, TxnOffsetCommit, EndTxn (keys 24, 25, 28, 26) and transactional InitProducerId. */
import { ERROR } from "../../../../src/adapters/kafka/wire/errors.ts";
import type { FakeCluster } from "../cluster.ts";
import type { Ended } from "../transactions.ts";
import type { Call } from "./table.ts";

function finish(cluster: FakeCluster, ended: Ended, type: "commit" | "abort"): void {
  const { producerId, epoch, transaction } = ended;
  for (const [topic, partitions] of transaction.partitions) {
    for (const index of partitions) {
      const p = cluster.partition(topic, index);
      p.log.endTransaction(type, producerId, p.leaderEpoch, epoch);
      p.producers.ended(producerId, epoch);
    }
  }
  if (type === "commit") {
    for (const [group, offsets] of transaction.offsets) {
      for (const [key, offset] of offsets) {
        const slash = key.lastIndexOf("/");
        cluster.commit(group, key.slice(0, slash), Number(key.slice(slash + 1)), offset);
      }
    }
  }
  cluster.changed();
}

export function initTransactional(call: Call<"InitProducerId">, id: string): void {
  const { cluster, broker, request, reply } = call;
  if (cluster.coordinatorOf(id) !== broker)
    return reply({ errorCode: ERROR.NOT_COORDINATOR, producerEpoch: -1 });
  const { producerId, producerEpoch } = request.body;
  const got = cluster.transactions.init(
    id,
    { id: producerId, epoch: producerEpoch },
    () => cluster.nextProducerId++,
  );
  if (got.abort !== null) finish(cluster, got.abort, "abort");
  reply({ errorCode: got.error, producerId: got.producerId, producerEpoch: got.epoch });
}

export function addPartitionsToTxn({ cluster, broker, request, reply }: Call<"AddPartitionsToTxn">): void {
  const { v3AndBelowTransactionalId: id, v3AndBelowTopics: topics } = request.body;
  const { v3AndBelowProducerId: producerId, v3AndBelowProducerEpoch: epoch } = request.body;
  const error =
    cluster.coordinatorOf(id) === broker
      ? cluster.transactions.check(id, producerId, epoch)
      : ERROR.NOT_COORDINATOR;
  reply({
    resultsByTopicV3AndBelow: topics.map(({ name, partitions }) => ({
      name,
      resultsByPartition: partitions.map((partitionIndex) => {
        const known = cluster.topics.get(name)?.partitions[partitionIndex] !== undefined;
        const partitionErrorCode = error !== 0 || known ? error : ERROR.UNKNOWN_TOPIC_OR_PARTITION;
        if (partitionErrorCode === 0) {
          const open = cluster.transactions.open(id).partitions;
          if (!open.has(name)) open.set(name, new Set());
          open.get(name)!.add(partitionIndex);
        }
        return { partitionIndex, partitionErrorCode };
      }),
    })),
  });
}

export function addOffsetsToTxn({ cluster, broker, request, reply }: Call<"AddOffsetsToTxn">): void {
  const { transactionalId: id, producerId, producerEpoch, groupId } = request.body;
  if (cluster.coordinatorOf(id) !== broker) return reply({ errorCode: ERROR.NOT_COORDINATOR });
  const errorCode = cluster.transactions.check(id, producerId, producerEpoch);
  if (errorCode === 0) cluster.transactions.open(id).offsets.set(groupId, new Map());
  reply({ errorCode });
}

/** Of a member or of nobody; who is not one any more is refused (KIP-447). */
function memberError({ cluster, broker, request }: Call<"TxnOffsetCommit">): number {
  const { groupId, memberId, generationIdOrMemberEpoch: generation } = request.body;
  if (cluster.coordinatorOf(groupId) !== broker) return ERROR.NOT_COORDINATOR;
  if (generation < 0 && memberId === "") return ERROR.NONE;
  const consumers = cluster.consumerGroups.get(groupId);
  if (consumers !== undefined && consumers.size > 0) return consumers.commit(memberId, generation);
  return cluster.classicGroup(groupId).commit(memberId, generation, request.body.groupInstanceId);
}

export function txnOffsetCommit(call: Call<"TxnOffsetCommit">): void {
  const { cluster, request, reply } = call;
  const { transactionalId: id, producerId, producerEpoch, groupId, topics } = request.body;
  const refused = memberError(call) || cluster.transactions.check(id, producerId, producerEpoch);
  reply({
    topics: topics.map(({ name, partitions }) => ({
      name,
      partitions: partitions.map((p) => {
        const offsets = refused === 0 ? cluster.transactions.open(id).offsets.get(groupId) : undefined;
        const errorCode = refused !== 0 || offsets !== undefined ? refused : ERROR.INVALID_TXN_STATE;
        offsets?.set(`${name}/${p.partitionIndex}`, {
          offset: p.committedOffset,
          leaderEpoch: p.committedLeaderEpoch,
          metadata: p.committedMetadata,
        });
        return { partitionIndex: p.partitionIndex, errorCode };
      }),
    })),
  });
}

export function endTxn({ cluster, broker, request, reply }: Call<"EndTxn">): void {
  const { transactionalId: id, producerId, producerEpoch, committed } = request.body;
  if (cluster.coordinatorOf(id) !== broker) return reply({ errorCode: ERROR.NOT_COORDINATOR });
  const refused = cluster.transactions.check(id, producerId, producerEpoch);
  if (refused !== 0) return reply({ errorCode: refused });
  const ended = cluster.transactions.end(id, committed);
  if (typeof ended === "number") return reply({ errorCode: ended });
  if (ended !== null) finish(cluster, ended, committed ? "commit" : "abort");
  reply({ errorCode: ERROR.NONE });
}

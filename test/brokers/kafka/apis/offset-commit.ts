/** OffsetCommit (key 8), of members and (generation -1, where there are none) from outside of membership. */
import { ERROR } from "../../../../src/adapters/kafka/wire/errors.ts";
import { TOPIC_ID_VERSION } from "../../../../src/adapters/kafka/wire/protocol.ts";
import type { Topic } from "../cluster.ts";
import { epochOf, takeFault } from "./leadership.ts";
import type { Call } from "./table.ts";

/** The error for the whole group, 0 for none. */
function groupError({ cluster, broker, request }: Call<"OffsetCommit">): number {
  const { groupId, generationIdOrMemberEpoch: generation, memberId } = request.body;
  if (groupId === "") return ERROR.INVALID_GROUP_ID;
  if (cluster.coordinatorOf(groupId) !== broker) return ERROR.NOT_COORDINATOR;
  if (cluster.groupsWithMembers.has(groupId)) return ERROR.UNKNOWN_MEMBER_ID;
  const consumers = cluster.consumerGroups.get(groupId);
  if (consumers !== undefined && consumers.size > 0) return consumers.commit(memberId, generation);
  const classic = cluster.classicGroup(groupId);
  if (generation < 0) return classic.members.length === 0 ? ERROR.NONE : ERROR.UNKNOWN_MEMBER_ID;
  return classic.commit(memberId, generation, request.body.groupInstanceId);
}

function partitionError(topic: Topic | undefined, index: number, unknown: number): number {
  if (topic === undefined) return unknown;
  if (topic.error !== 0) return topic.error;
  const partition = topic.partitions[index];
  if (partition === undefined) return ERROR.UNKNOWN_TOPIC_OR_PARTITION;
  return partition.faults.some((f) => f.api === "OffsetCommit")
    ? takeFault(partition, "OffsetCommit")
    : ERROR.NONE;
}

export function offsetCommit(call: Call<"OffsetCommit">): void {
  const { cluster, broker, request, reply } = call;
  const byId = request.version >= TOPIC_ID_VERSION.OffsetCommit;
  const unknown = byId ? ERROR.UNKNOWN_TOPIC_ID : ERROR.UNKNOWN_TOPIC_OR_PARTITION;
  const refused = groupError(call);
  reply({
    topics: request.body.topics.map(({ name, topicId, partitions }) => {
      const topic = byId ? cluster.topicById(topicId) : cluster.topics.get(name);
      return {
        name,
        topicId,
        partitions: partitions.map((p) => {
          const errorCode = refused !== 0 ? refused : partitionError(topic, p.partitionIndex, unknown);
          if (errorCode === 0) {
            cluster.commit(request.body.groupId, topic!.name, p.partitionIndex, {
              offset: p.committedOffset,
              leaderEpoch: epochOf(broker, p.committedLeaderEpoch),
              metadata: p.committedMetadata,
            });
          }
          return { partitionIndex: p.partitionIndex, errorCode };
        }),
      };
    }),
  });
}

/** DescribeGroups (key 15) and ConsumerGroupDescribe (key 69): members of a group, by its coordinator. */
import { ERROR } from "../../../../src/adapters/kafka/wire/errors.ts";
import type { Call } from "./table.ts";

const CLIENT = { clientId: "twg", clientHost: "/127.0.0.1" };

export function describeGroups({ cluster, broker, request, reply }: Call<"DescribeGroups">): void {
  const groups = request.body.groups.map((groupId) => {
    if (cluster.coordinatorOf(groupId) !== broker) return { groupId, errorCode: ERROR.NOT_COORDINATOR };
    const group = cluster.classicGroups.get(groupId);
    const members = group?.members ?? [];
    if (group === undefined || members.length === 0) {
      // Of whoever committed from outside only the offsets are known.
      if (cluster.groups.has(groupId)) return { groupId, groupState: "Empty", protocolType: "consumer" };
      if (request.version >= 6) return { groupId, errorCode: ERROR.GROUP_ID_NOT_FOUND };
      return { groupId, groupState: "Dead" };
    }
    const isStable = group.state === "stable";
    return {
      groupId,
      groupState: group.state[0]!.toUpperCase() + group.state.slice(1),
      protocolType: "consumer",
      protocolData: isStable ? group.protocol : "",
      members: members.map((m) => ({
        memberId: m.id,
        groupInstanceId: m.instanceId,
        ...CLIENT,
        memberAssignment: isStable ? group.assignments.get(m.id)! : new Uint8Array(0),
      })),
    };
  });
  reply({ groups });
}

export function consumerGroupDescribe({
  cluster,
  broker,
  request,
  reply,
}: Call<"ConsumerGroupDescribe">): void {
  const groups = request.body.groupIds.map((groupId) => {
    if (cluster.coordinatorOf(groupId) !== broker) return { groupId, errorCode: ERROR.NOT_COORDINATOR };
    const group = cluster.consumerGroups.get(groupId);
    if (group === undefined || group.size === 0) return { groupId, errorCode: ERROR.GROUP_ID_NOT_FOUND };
    return {
      groupId,
      groupState: "Stable",
      groupEpoch: group.epoch,
      assignmentEpoch: group.epoch,
      assignorName: "uniform",
      members: [...group.assignments].map(([memberId, assigned]) => ({
        memberId,
        ...CLIENT,
        memberEpoch: group.epoch,
        assignment: { topicPartitions: named(cluster, assigned) },
      })),
    };
  });
  reply({ groups });
}

function named(cluster: Call<"ConsumerGroupDescribe">["cluster"], assigned: ReadonlySet<string>) {
  const topics = Map.groupBy(assigned, (key) => key.slice(0, key.lastIndexOf("/")));
  return [...topics].map(([topicId, keys]) => ({
    topicId,
    topicName: cluster.topicById(topicId)?.name ?? "",
    partitions: keys.map((k) => Number(k.slice(k.lastIndexOf("/") + 1))),
  }));
}

/** JoinGroup, SyncGroup, Heartbeat and LeaveGroup (keys 11, 14, 12, 13): the wire of `group-classic.ts`. */
import { ERROR } from "../../../../src/adapters/kafka/wire/errors.ts";
import type { ApiName } from "../../../../src/adapters/kafka/wire/protocol.ts";
import type { Broker, FakeCluster } from "../cluster.ts";
import type { Call } from "./table.ts";

interface Asked {
  readonly cluster: FakeCluster;
  readonly broker: Broker;
}

/** The error that a request of a group meets before anybody looks at the member. */
function refusal({ cluster, broker }: Asked, groupId: string): number {
  if (groupId === "") return ERROR.INVALID_GROUP_ID;
  if (cluster.coordinatorOf(groupId) !== broker) return ERROR.NOT_COORDINATOR;
  return cluster.groupsWithMembers.has(groupId) ? ERROR.INCONSISTENT_GROUP_PROTOCOL : ERROR.NONE;
}

/** Answers may come long after the connection has gone. */
function ifOpen<A extends ApiName>(call: Call<A>): Call<A>["reply"] {
  return (body) => {
    if (call.connection.open) call.reply(body);
  };
}

export function joinGroup(call: Call<"JoinGroup">): void {
  const { body, version } = call.request;
  const errorCode = refusal(call, body.groupId);
  if (errorCode !== 0) return call.reply({ errorCode, memberId: body.memberId });
  call.cluster.classicGroup(body.groupId).join(body, version, ifOpen(call));
}

export function syncGroup(call: Call<"SyncGroup">): void {
  const { body } = call.request;
  const errorCode = refusal(call, body.groupId);
  if (errorCode !== 0) return call.reply({ errorCode });
  call.cluster.classicGroup(body.groupId).sync(body, ifOpen(call));
}

export function heartbeat(call: Call<"Heartbeat">): void {
  const { groupId, memberId, generationId, groupInstanceId } = call.request.body;
  const refused = refusal(call, groupId);
  const group = call.cluster.classicGroup(groupId);
  call.reply({
    errorCode: refused !== 0 ? refused : group.heartbeat(memberId, generationId, groupInstanceId),
  });
}

export function leaveGroup(call: Call<"LeaveGroup">): void {
  const { groupId, memberId, members } = call.request.body;
  const refused = refusal(call, groupId);
  if (refused !== 0) return call.reply({ errorCode: refused });
  const group = call.cluster.classicGroup(groupId);
  if (call.request.version < 3) return call.reply({ errorCode: group.leave(memberId, null) });
  call.reply({
    errorCode: 0,
    members: members.map((m) => ({
      memberId: m.memberId,
      groupInstanceId: m.groupInstanceId,
      errorCode: group.leave(m.memberId, m.groupInstanceId),
    })),
  });
}

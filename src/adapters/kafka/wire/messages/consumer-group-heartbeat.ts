/** ConsumerGroupHeartbeat (key 68): all of a KIP-848 membership. From v1 on the member names itself (KIP-1082). */
import { type ApiSpec, field, list, struct, structs } from "../spec.ts";

const topicPartitions = [field("topicId", "uuid", 0), list("partitions", "int32", 0)];

export const consumerGroupHeartbeat: ApiSpec = {
  key: 68,
  request: {
    versions: [0, 1],
    flexible: 0,
    fields: [
      field("groupId", "string", 0),
      field("memberId", "string", 0),
      field("memberEpoch", "int32", 0),
      field("instanceId", "string", 0, { nullable: 0, preset: null }),
      field("rackId", "string", 0, { nullable: 0, preset: null }),
      field("rebalanceTimeoutMs", "int32", 0, { preset: -1 }),
      list("subscribedTopicNames", "string", 0, { nullable: 0, preset: null }),
      field("subscribedTopicRegex", "string", 1, { nullable: 1, preset: null }),
      field("serverAssignor", "string", 0, { nullable: 0, preset: null }),
      structs("topicPartitions", 0, topicPartitions, { nullable: 0, preset: null }),
    ],
  },
  response: {
    versions: [0, 1],
    flexible: 0,
    fields: [
      field("throttleTimeMs", "int32", 0),
      field("errorCode", "int16", 0),
      field("errorMessage", "string", 0, { nullable: 0, preset: null }),
      field("memberId", "string", 0, { nullable: 0, preset: null }),
      field("memberEpoch", "int32", 0),
      field("heartbeatIntervalMs", "int32", 0),
      struct("assignment", 0, [structs("topicPartitions", 0, topicPartitions)], {
        nullable: 0,
        preset: null,
      }),
    ],
  },
};

export interface TopicIdPartitions {
  readonly topicId: string;
  readonly partitions: readonly number[];
}

export interface ConsumerGroupHeartbeatRequest {
  readonly groupId: string;
  readonly memberId: string;
  /** 0: joins. -1: leaves. -2: leaves for a while (static). */
  readonly memberEpoch: number;
  readonly instanceId: string | null;
  readonly rackId: string | null;
  /** -1: unchanged, as null is for the fields below. */
  readonly rebalanceTimeoutMs: number;
  readonly subscribedTopicNames: readonly string[] | null;
  readonly subscribedTopicRegex: string | null;
  readonly serverAssignor: string | null;
  readonly topicPartitions: readonly TopicIdPartitions[] | null;
}

export interface ConsumerGroupHeartbeatResponse {
  readonly throttleTimeMs: number;
  readonly errorCode: number;
  readonly errorMessage: string | null;
  readonly memberId: string | null;
  readonly memberEpoch: number;
  readonly heartbeatIntervalMs: number;
  /** null: unchanged. */
  readonly assignment: { readonly topicPartitions: readonly TopicIdPartitions[] } | null;
}

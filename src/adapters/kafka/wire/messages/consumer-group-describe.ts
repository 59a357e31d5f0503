/** ConsumerGroupDescribe (key 69): state and members of KIP-848 groups, where each is and where it is to go. */
import { type ApiSpec, type Field, field, list, struct, structs } from "../spec.ts";

/** "Not asked for" in the authorized-operations field. */
const OPERATIONS_UNKNOWN = -2147483648;

const assignment = (): Field[] => [
  structs("topicPartitions", 0, [
    field("topicId", "uuid", 0),
    field("topicName", "string", 0),
    list("partitions", "int32", 0),
  ]),
];

export const consumerGroupDescribe: ApiSpec = {
  key: 69,
  request: {
    versions: [0, 1],
    flexible: 0,
    fields: [list("groupIds", "string", 0), field("includeAuthorizedOperations", "bool", 0)],
  },
  response: {
    versions: [0, 1],
    flexible: 0,
    fields: [
      field("throttleTimeMs", "int32", 0),
      structs("groups", 0, [
        field("errorCode", "int16", 0),
        field("errorMessage", "string", 0, { nullable: 0, preset: null }),
        field("groupId", "string", 0),
        field("groupState", "string", 0),
        field("groupEpoch", "int32", 0),
        field("assignmentEpoch", "int32", 0),
        field("assignorName", "string", 0),
        structs("members", 0, [
          field("memberId", "string", 0),
          field("instanceId", "string", 0, { nullable: 0, preset: null }),
          field("rackId", "string", 0, { nullable: 0, preset: null }),
          field("memberEpoch", "int32", 0),
          field("clientId", "string", 0),
          field("clientHost", "string", 0),
          list("subscribedTopicNames", "string", 0),
          field("subscribedTopicRegex", "string", 0, { nullable: 0, preset: null }),
          struct("assignment", 0, assignment()),
          struct("targetAssignment", 0, assignment()),
          field("memberType", "int8", 1, { preset: -1 }),
        ]),
        field("authorizedOperations", "int32", 0, { preset: OPERATIONS_UNKNOWN }),
      ]),
    ],
  },
};

export interface ConsumerGroupDescribeRequest {
  readonly groupIds: readonly string[];
  readonly includeAuthorizedOperations: boolean;
}

interface DescribedAssignment {
  readonly topicPartitions: readonly {
    readonly topicId: string;
    readonly topicName: string;
    readonly partitions: readonly number[];
  }[];
}

export interface ConsumerGroupDescribeResponse {
  readonly throttleTimeMs: number;
  readonly groups: readonly {
    readonly errorCode: number;
    readonly errorMessage: string | null;
    readonly groupId: string;
    readonly groupState: string;
    readonly groupEpoch: number;
    readonly assignmentEpoch: number;
    readonly assignorName: string;
    readonly members: readonly {
      readonly memberId: string;
      readonly instanceId: string | null;
      readonly rackId: string | null;
      readonly memberEpoch: number;
      readonly clientId: string;
      readonly clientHost: string;
      readonly subscribedTopicNames: readonly string[];
      readonly subscribedTopicRegex: string | null;
      readonly assignment: DescribedAssignment;
      readonly targetAssignment: DescribedAssignment;
      /** -1: not told. 0: speaks the classic protocol. 1: KIP-848. */
      readonly memberType: number;
    }[];
    readonly authorizedOperations: number;
  }[];
}

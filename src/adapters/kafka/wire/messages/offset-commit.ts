/** OffsetCommit (key 8). A consumer outside of group membership sends generation -1 and an empty member id. Topic ids in v10. */
import { type ApiSpec, field, structs } from "../spec.ts";

export const offsetCommit: ApiSpec = {
  key: 8,
  request: {
    versions: [2, 10],
    flexible: 8,
    fields: [
      field("groupId", "string", 0),
      field("generationIdOrMemberEpoch", "int32", 1, { preset: -1 }),
      field("memberId", "string", 1),
      field("groupInstanceId", "string", 7, { nullable: 7, preset: null }),
      field("retentionTimeMs", "int64", [2, 4], { preset: -1n }),
      structs("topics", 0, [
        field("name", "string", [0, 9]),
        field("topicId", "uuid", 10),
        structs("partitions", 0, [
          field("partitionIndex", "int32", 0),
          field("committedOffset", "int64", 0),
          field("committedLeaderEpoch", "int32", 6, { preset: -1 }),
          field("committedMetadata", "string", 0, { nullable: 0 }),
        ]),
      ]),
    ],
  },
  response: {
    versions: [2, 10],
    flexible: 8,
    fields: [
      field("throttleTimeMs", "int32", 3),
      structs("topics", 0, [
        field("name", "string", [0, 9]),
        field("topicId", "uuid", 10),
        structs("partitions", 0, [field("partitionIndex", "int32", 0), field("errorCode", "int16", 0)]),
      ]),
    ],
  },
};

export interface OffsetCommitRequest {
  readonly groupId: string;
  readonly generationIdOrMemberEpoch: number;
  readonly memberId: string;
  readonly groupInstanceId: string | null;
  readonly retentionTimeMs: bigint;
  readonly topics: readonly {
    readonly name: string;
    readonly topicId: string;
    readonly partitions: readonly {
      readonly partitionIndex: number;
      readonly committedOffset: bigint;
      readonly committedLeaderEpoch: number;
      readonly committedMetadata: string | null;
    }[];
  }[];
}

export interface OffsetCommitResponse {
  readonly throttleTimeMs: number;
  readonly topics: readonly {
    readonly name: string;
    readonly topicId: string;
    readonly partitions: readonly { readonly partitionIndex: number; readonly errorCode: number }[];
  }[];
}

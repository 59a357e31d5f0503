/** TxnOffsetCommit (key 28). v3 proves membership of the group (KIP-447), v5 adds the group by itself (KIP-890), v6 topic ids. */
import { type ApiSpec, field, structs } from "../spec.ts";

export const txnOffsetCommit: ApiSpec = {
  key: 28,
  request: {
    versions: [0, 6],
    flexible: 3,
    fields: [
      field("transactionalId", "string", 0),
      field("groupId", "string", 0),
      field("producerId", "int64", 0),
      field("producerEpoch", "int16", 0),
      field("generationIdOrMemberEpoch", "int32", 3, { preset: -1 }),
      field("memberId", "string", 3, { preset: "" }),
      field("groupInstanceId", "string", 3, { nullable: 3, preset: null }),
      structs("topics", 0, [
        field("name", "string", [0, 5]),
        field("topicId", "uuid", 6),
        structs("partitions", 0, [
          field("partitionIndex", "int32", 0),
          field("committedOffset", "int64", 0),
          field("committedLeaderEpoch", "int32", 2, { preset: -1 }),
          field("committedMetadata", "string", 0, { nullable: 0 }),
        ]),
      ]),
    ],
  },
  response: {
    versions: [0, 6],
    flexible: 3,
    fields: [
      field("throttleTimeMs", "int32", 0),
      structs("topics", 0, [
        field("name", "string", [0, 5]),
        field("topicId", "uuid", 6),
        structs("partitions", 0, [field("partitionIndex", "int32", 0), field("errorCode", "int16", 0)]),
      ]),
    ],
  },
};

export interface TxnOffsetCommitRequest {
  readonly transactionalId: string;
  readonly groupId: string;
  readonly producerId: bigint;
  readonly producerEpoch: number;
  /** -1: no member of the group. */
  readonly generationIdOrMemberEpoch: number;
  readonly memberId: string;
  readonly groupInstanceId: string | null;
  readonly topics: readonly {
    readonly name: string;
    readonly partitions: readonly {
      readonly partitionIndex: number;
      readonly committedOffset: bigint;
      readonly committedLeaderEpoch: number;
      readonly committedMetadata: string | null;
    }[];
  }[];
}

export interface TxnOffsetCommitResponse {
  readonly throttleTimeMs: number;
  readonly topics: readonly {
    readonly name: string;
    readonly partitions: readonly { readonly partitionIndex: number; readonly errorCode: number }[];
  }[];
}

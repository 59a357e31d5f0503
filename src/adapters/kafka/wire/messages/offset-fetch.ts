/** OffsetFetch (key 9): one group up to v7, a list of groups from v8 (KIP-709), topic ids in v10. */
import { type ApiSpec, field, list, structs, type Versions } from "../spec.ts";

/** The shape for one group, and the one for many. */
const ONE: Versions = [0, 7];
const MANY: Versions = 8;

export const offsetFetch: ApiSpec = {
  key: 9,
  request: {
    versions: [1, 10],
    flexible: 6,
    fields: [
      field("groupId", "string", ONE),
      structs("topics", ONE, [field("name", "string", ONE), list("partitionIndexes", "int32", ONE)], {
        nullable: [2, 7],
      }),
      structs("groups", MANY, [
        field("groupId", "string", MANY),
        field("memberId", "string", 9, { nullable: 9, preset: null }),
        field("memberEpoch", "int32", 9, { preset: -1 }),
        structs(
          "topics",
          MANY,
          [
            field("name", "string", [8, 9]),
            field("topicId", "uuid", 10),
            list("partitionIndexes", "int32", MANY),
          ],
          { nullable: MANY },
        ),
      ]),
      field("requireStable", "bool", 7, { preset: false }),
    ],
  },
  response: {
    versions: [1, 10],
    flexible: 6,
    fields: [
      field("throttleTimeMs", "int32", 3),
      structs("topics", ONE, [
        field("name", "string", ONE),
        structs("partitions", ONE, [
          field("partitionIndex", "int32", ONE),
          field("committedOffset", "int64", ONE),
          field("committedLeaderEpoch", "int32", [5, 7], { preset: -1 }),
          field("metadata", "string", ONE, { nullable: ONE }),
          field("errorCode", "int16", ONE),
        ]),
      ]),
      field("errorCode", "int16", [2, 7], { preset: 0 }),
      structs("groups", MANY, [
        field("groupId", "string", MANY),
        structs("topics", MANY, [
          field("name", "string", [8, 9]),
          field("topicId", "uuid", 10),
          structs("partitions", MANY, [
            field("partitionIndex", "int32", MANY),
            field("committedOffset", "int64", MANY),
            field("committedLeaderEpoch", "int32", MANY, { preset: -1 }),
            field("metadata", "string", MANY, { nullable: MANY }),
            field("errorCode", "int16", MANY),
          ]),
        ]),
        field("errorCode", "int16", MANY, { preset: 0 }),
      ]),
    ],
  },
};

export interface OffsetFetchRequestTopic {
  readonly name: string;
  readonly topicId: string;
  readonly partitionIndexes: readonly number[];
}

export interface OffsetFetchRequest {
  readonly groupId: string;
  /** null: every partition that the group has committed (v2+). */
  readonly topics: readonly OffsetFetchRequestTopic[] | null;
  readonly groups: readonly {
    readonly groupId: string;
    readonly memberId: string | null;
    readonly memberEpoch: number;
    readonly topics: readonly OffsetFetchRequestTopic[] | null;
  }[];
  readonly requireStable: boolean;
}

export interface OffsetFetchResponseTopic {
  readonly name: string;
  readonly topicId: string;
  readonly partitions: readonly {
    readonly partitionIndex: number;
    /** -1: nothing committed. */
    readonly committedOffset: bigint;
    readonly committedLeaderEpoch: number;
    readonly metadata: string | null;
    readonly errorCode: number;
  }[];
}

export interface OffsetFetchResponse {
  readonly throttleTimeMs: number;
  readonly topics: readonly OffsetFetchResponseTopic[];
  readonly errorCode: number;
  readonly groups: readonly {
    readonly groupId: string;
    readonly topics: readonly OffsetFetchResponseTopic[];
    readonly errorCode: number;
  }[];
}

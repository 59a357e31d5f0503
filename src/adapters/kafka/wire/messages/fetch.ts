/**
 * Fetch (key 1). v4 transactions, v7 sessions (KIP-227), v9 leader epoch (KIP-320), v10 zstd, v11 racks (KIP-392),
 * v12 diverging epoch (KIP-595), v13 topic ids in place of names (KIP-516), v16 leader hints (KIP-951).
 */
import { type ApiSpec, type Field, field, list, struct, structs } from "../spec.ts";

const requestPartition: readonly Field[] = [
  field("partition", "int32", 0),
  field("currentLeaderEpoch", "int32", 9, { preset: -1 }),
  field("fetchOffset", "int64", 0),
  field("lastFetchedEpoch", "int32", 12, { preset: -1 }),
  field("logStartOffset", "int64", 5, { preset: -1n }),
  field("partitionMaxBytes", "int32", 0),
  field("replicaDirectoryId", "uuid", 17, { tag: 0, tagged: 17 }),
  field("highWatermark", "int64", 18, { tag: 1, tagged: 18, preset: 9223372036854775807n }),
];

const responsePartition: readonly Field[] = [
  field("partitionIndex", "int32", 0),
  field("errorCode", "int16", 0),
  field("highWatermark", "int64", 0),
  field("lastStableOffset", "int64", 4, { preset: -1n }),
  field("logStartOffset", "int64", 5, { preset: -1n }),
  struct(
    "divergingEpoch",
    12,
    [field("epoch", "int32", 12, { preset: -1 }), field("endOffset", "int64", 12, { preset: -1n })],
    { tag: 0, tagged: 12 },
  ),
  struct(
    "currentLeader",
    12,
    [field("leaderId", "int32", 12, { preset: -1 }), field("leaderEpoch", "int32", 12, { preset: -1 })],
    { tag: 1, tagged: 12 },
  ),
  struct(
    "snapshotId",
    12,
    [field("endOffset", "int64", 0, { preset: -1n }), field("epoch", "int32", 0, { preset: -1 })],
    { tag: 2, tagged: 12 },
  ),
  structs("abortedTransactions", 4, [field("producerId", "int64", 4), field("firstOffset", "int64", 4)], {
    nullable: 4,
  }),
  field("preferredReadReplica", "int32", 11, { preset: -1 }),
  field("records", "records", 0, { nullable: 0 }),
];

export const fetch: ApiSpec = {
  key: 1,
  request: {
    versions: [4, 18],
    flexible: 12,
    fields: [
      field("clusterId", "string", 12, { nullable: 12, preset: null, tag: 0, tagged: 12 }),
      field("replicaId", "int32", [0, 14], { preset: -1 }),
      struct(
        "replicaState",
        15,
        [
          field("replicaId", "int32", 15, { preset: -1 }),
          field("replicaEpoch", "int64", 15, { preset: -1n }),
        ],
        { tag: 1, tagged: 15 },
      ),
      field("maxWaitMs", "int32", 0),
      field("minBytes", "int32", 0),
      field("maxBytes", "int32", 3, { preset: 2147483647 }),
      field("isolationLevel", "int8", 4, { preset: 0 }),
      field("sessionId", "int32", 7, { preset: 0 }),
      field("sessionEpoch", "int32", 7, { preset: -1 }),
      structs("topics", 0, [
        field("topic", "string", [0, 12]),
        field("topicId", "uuid", 13),
        structs("partitions", 0, requestPartition),
      ]),
      structs("forgottenTopicsData", 7, [
        field("topic", "string", [7, 12]),
        field("topicId", "uuid", 13),
        list("partitions", "int32", 7),
      ]),
      field("rackId", "string", 11, { preset: "" }),
    ],
  },
  response: {
    versions: [4, 18],
    flexible: 12,
    fields: [
      field("throttleTimeMs", "int32", 1),
      field("errorCode", "int16", 7),
      field("sessionId", "int32", 7, { preset: 0 }),
      structs("responses", 0, [
        field("topic", "string", [0, 12]),
        field("topicId", "uuid", 13),
        structs("partitions", 0, responsePartition),
      ]),
      structs(
        "nodeEndpoints",
        16,
        [
          field("nodeId", "int32", 16),
          field("host", "string", 16),
          field("port", "int32", 16),
          field("rack", "string", 16, { nullable: 16, preset: null }),
        ],
        { tag: 0, tagged: 16 },
      ),
    ],
  },
};

export interface FetchRequestPartition {
  readonly partition: number;
  readonly currentLeaderEpoch: number;
  readonly fetchOffset: bigint;
  readonly lastFetchedEpoch: number;
  readonly logStartOffset: bigint;
  readonly partitionMaxBytes: number;
  readonly replicaDirectoryId: string;
  readonly highWatermark: bigint;
}

export interface FetchRequest {
  readonly clusterId: string | null;
  readonly replicaId: number;
  readonly replicaState: { readonly replicaId: number; readonly replicaEpoch: bigint };
  readonly maxWaitMs: number;
  readonly minBytes: number;
  readonly maxBytes: number;
  /** 0 read uncommitted, 1 read committed. */
  readonly isolationLevel: number;
  readonly sessionId: number;
  /** -1: no session (or close it). 0: open a new one. */
  readonly sessionEpoch: number;
  readonly topics: readonly {
    readonly topic: string;
    readonly topicId: string;
    readonly partitions: readonly FetchRequestPartition[];
  }[];
  readonly forgottenTopicsData: readonly {
    readonly topic: string;
    readonly topicId: string;
    readonly partitions: readonly number[];
  }[];
  readonly rackId: string;
}

export interface FetchResponsePartition {
  readonly partitionIndex: number;
  readonly errorCode: number;
  readonly highWatermark: bigint;
  readonly lastStableOffset: bigint;
  readonly logStartOffset: bigint;
  /** endOffset -1: none. */
  readonly divergingEpoch: { readonly epoch: number; readonly endOffset: bigint };
  /** leaderId -1: no hint. */
  readonly currentLeader: { readonly leaderId: number; readonly leaderEpoch: number };
  readonly snapshotId: { readonly endOffset: bigint; readonly epoch: number };
  readonly abortedTransactions:
    | readonly { readonly producerId: bigint; readonly firstOffset: bigint }[]
    | null;
  /** -1: none. */
  readonly preferredReadReplica: number;
  /** A view on the response's buffer. */
  readonly records: Uint8Array | null;
}

export interface FetchResponseTopic {
  /** Empty from v13 on. */
  readonly topic: string;
  /** ZERO_UUID below v13. */
  readonly topicId: string;
  readonly partitions: readonly FetchResponsePartition[];
}

export interface FetchResponse {
  readonly throttleTimeMs: number;
  readonly errorCode: number;
  readonly sessionId: number;
  readonly responses: readonly FetchResponseTopic[];
  readonly nodeEndpoints: readonly {
    readonly nodeId: number;
    readonly host: string;
    readonly port: number;
    readonly rack: string | null;
  }[];
}

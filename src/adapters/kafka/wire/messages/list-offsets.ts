/** ListOffsets (key 2): an offset by timestamp. Always asked of the leader. */
import { type ApiSpec, field, structs } from "../spec.ts";

/** Timestamps with a meaning of their own. -3 needs v7 (KIP-734). */
export const LATEST_TIMESTAMP = -1n;
export const EARLIEST_TIMESTAMP = -2n;
export const MAX_TIMESTAMP = -3n;

export const listOffsets: ApiSpec = {
  key: 2,
  request: {
    versions: [1, 11],
    flexible: 6,
    fields: [
      field("replicaId", "int32", 0),
      field("isolationLevel", "int8", 2),
      structs("topics", 0, [
        field("name", "string", 0),
        structs("partitions", 0, [
          field("partitionIndex", "int32", 0),
          field("currentLeaderEpoch", "int32", 4, { preset: -1 }),
          field("timestamp", "int64", 0),
        ]),
      ]),
      field("timeoutMs", "int32", 10),
    ],
  },
  response: {
    versions: [1, 11],
    flexible: 6,
    fields: [
      field("throttleTimeMs", "int32", 2),
      structs("topics", 0, [
        field("name", "string", 0),
        structs("partitions", 0, [
          field("partitionIndex", "int32", 0),
          field("errorCode", "int16", 0),
          field("timestamp", "int64", 1, { preset: -1n }),
          field("offset", "int64", 1, { preset: -1n }),
          field("leaderEpoch", "int32", 4, { preset: -1 }),
        ]),
      ]),
    ],
  },
};

export interface ListOffsetsRequest {
  /** A consumer sends -1. */
  readonly replicaId: number;
  /** 1: the latest offset is the last stable one. */
  readonly isolationLevel: number;
  readonly topics: readonly {
    readonly name: string;
    readonly partitions: readonly {
      readonly partitionIndex: number;
      readonly currentLeaderEpoch: number;
      readonly timestamp: bigint;
    }[];
  }[];
  readonly timeoutMs: number;
}

export interface ListOffsetsResponse {
  readonly throttleTimeMs: number;
  readonly topics: readonly {
    readonly name: string;
    readonly partitions: readonly {
      readonly partitionIndex: number;
      readonly errorCode: number;
      readonly timestamp: bigint;
      /** -1: no record at or after that time. */
      readonly offset: bigint;
      readonly leaderEpoch: number;
    }[];
  }[];
}

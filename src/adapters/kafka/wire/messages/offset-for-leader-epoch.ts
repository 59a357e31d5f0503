/** OffsetForLeaderEpoch (key 23): where an epoch ended, to detect truncation (KIP-320). */
import { type ApiSpec, field, structs } from "../spec.ts";

export const offsetForLeaderEpoch: ApiSpec = {
  key: 23,
  request: {
    versions: [2, 4],
    flexible: 4,
    fields: [
      field("replicaId", "int32", 3, { preset: -2 }),
      structs("topics", 0, [
        field("topic", "string", 0),
        structs("partitions", 0, [
          field("partition", "int32", 0),
          field("currentLeaderEpoch", "int32", 2, { preset: -1 }),
          field("leaderEpoch", "int32", 0),
        ]),
      ]),
    ],
  },
  response: {
    versions: [2, 4],
    flexible: 4,
    fields: [
      field("throttleTimeMs", "int32", 2),
      structs("topics", 0, [
        field("topic", "string", 0),
        structs("partitions", 0, [
          field("errorCode", "int16", 0),
          field("partition", "int32", 0),
          field("leaderEpoch", "int32", 1, { preset: -1 }),
          field("endOffset", "int64", 0, { preset: -1n }),
        ]),
      ]),
    ],
  },
};

export interface OffsetForLeaderEpochRequest {
  /** A consumer sends -1. */
  readonly replicaId: number;
  readonly topics: readonly {
    readonly topic: string;
    readonly partitions: readonly {
      readonly partition: number;
      readonly currentLeaderEpoch: number;
      readonly leaderEpoch: number;
    }[];
  }[];
}

export interface OffsetForLeaderEpochResponse {
  readonly throttleTimeMs: number;
  readonly topics: readonly {
    readonly topic: string;
    readonly partitions: readonly {
      readonly errorCode: number;
      readonly partition: number;
      /** -1 with endOffset -1: the broker cannot tell. */
      readonly leaderEpoch: number;
      readonly endOffset: bigint;
    }[];
  }[];
}

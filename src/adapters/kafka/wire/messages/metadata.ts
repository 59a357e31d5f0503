/** Metadata (key 3): brokers, topics, partitions and their leaders. Topic ids from v10 (KIP-516), rebootstrap in v13 (KIP-1102). */
import { type ApiSpec, field, list, structs } from "../spec.ts";

/** "Not asked for" in the authorized-operations fields. */
const OPERATIONS_UNKNOWN = -2147483648;

export const metadata: ApiSpec = {
  key: 3,
  request: {
    versions: [0, 13],
    flexible: 9,
    fields: [
      structs("topics", 0, [field("topicId", "uuid", 10), field("name", "string", 0, { nullable: 10 })], {
        nullable: 1,
      }),
      field("allowAutoTopicCreation", "bool", 4, { preset: true }),
      field("includeClusterAuthorizedOperations", "bool", [8, 10]),
      field("includeTopicAuthorizedOperations", "bool", 8),
    ],
  },
  response: {
    versions: [0, 13],
    flexible: 9,
    fields: [
      field("throttleTimeMs", "int32", 3),
      structs("brokers", 0, [
        field("nodeId", "int32", 0),
        field("host", "string", 0),
        field("port", "int32", 0),
        field("rack", "string", 1, { nullable: 1, preset: null }),
      ]),
      field("clusterId", "string", 2, { nullable: 2, preset: null }),
      field("controllerId", "int32", 1, { preset: -1 }),
      structs("topics", 0, [
        field("errorCode", "int16", 0),
        field("name", "string", 0, { nullable: 12 }),
        field("topicId", "uuid", 10),
        field("isInternal", "bool", 1, { preset: false }),
        structs("partitions", 0, [
          field("errorCode", "int16", 0),
          field("partitionIndex", "int32", 0),
          field("leaderId", "int32", 0),
          field("leaderEpoch", "int32", 7, { preset: -1 }),
          list("replicaNodes", "int32", 0),
          list("isrNodes", "int32", 0),
          list("offlineReplicas", "int32", 5),
        ]),
        field("topicAuthorizedOperations", "int32", 8, { preset: OPERATIONS_UNKNOWN }),
      ]),
      field("clusterAuthorizedOperations", "int32", [8, 10], { preset: OPERATIONS_UNKNOWN }),
      field("errorCode", "int16", 13),
    ],
  },
};

export interface MetadataRequest {
  /** null: all topics (v1+). Empty: none. */
  readonly topics: readonly { readonly topicId: string; readonly name: string | null }[] | null;
  readonly allowAutoTopicCreation: boolean;
  readonly includeClusterAuthorizedOperations: boolean;
  readonly includeTopicAuthorizedOperations: boolean;
}

export interface MetadataBroker {
  readonly nodeId: number;
  readonly host: string;
  readonly port: number;
  readonly rack: string | null;
}

export interface MetadataPartition {
  readonly errorCode: number;
  readonly partitionIndex: number;
  /** -1: none. */
  readonly leaderId: number;
  /** -1: unknown. */
  readonly leaderEpoch: number;
  readonly replicaNodes: readonly number[];
  readonly isrNodes: readonly number[];
  readonly offlineReplicas: readonly number[];
}

export interface MetadataTopic {
  readonly errorCode: number;
  /** null only in v12+, where a topic was asked for by an id that the broker does not know. */
  readonly name: string | null;
  /** ZERO_UUID: the broker has none. */
  readonly topicId: string;
  readonly isInternal: boolean;
  readonly partitions: readonly MetadataPartition[];
  readonly topicAuthorizedOperations: number;
}

export interface MetadataResponse {
  readonly throttleTimeMs: number;
  readonly brokers: readonly MetadataBroker[];
  readonly clusterId: string | null;
  readonly controllerId: number;
  readonly topics: readonly MetadataTopic[];
  readonly clusterAuthorizedOperations: number;
  readonly errorCode: number;
}

/**
 * AddPartitionsToTxn (key 24): v4 and later are the brokers' own form (KIP-890); a client sends v3 at most, so the
 * fields of the later ones have no type here.
 */
import { type ApiSpec, field, list, structs, type Versions } from "../spec.ts";

const CLIENT: Versions = [0, 3];
const TOPIC = [field("name", "string", 0), list("partitions", "int32", 0)];
const TOPIC_RESULT = [
  field("name", "string", 0),
  structs("resultsByPartition", 0, [
    field("partitionIndex", "int32", 0),
    field("partitionErrorCode", "int16", 0),
  ]),
];

export const addPartitionsToTxn: ApiSpec = {
  key: 24,
  request: {
    versions: [0, 5],
    flexible: 3,
    fields: [
      structs("transactions", 4, [
        field("transactionalId", "string", 4),
        field("producerId", "int64", 4),
        field("producerEpoch", "int16", 4),
        field("verifyOnly", "bool", 4, { preset: false }),
        structs("topics", 4, TOPIC),
      ]),
      field("v3AndBelowTransactionalId", "string", CLIENT),
      field("v3AndBelowProducerId", "int64", CLIENT),
      field("v3AndBelowProducerEpoch", "int16", CLIENT),
      structs("v3AndBelowTopics", CLIENT, TOPIC),
    ],
  },
  response: {
    versions: [0, 5],
    flexible: 3,
    fields: [
      field("throttleTimeMs", "int32", 0),
      field("errorCode", "int16", 4),
      structs("resultsByTransaction", 4, [
        field("transactionalId", "string", 4),
        structs("topicResults", 4, TOPIC_RESULT),
      ]),
      structs("resultsByTopicV3AndBelow", CLIENT, TOPIC_RESULT),
    ],
  },
};

export interface AddPartitionsToTxnRequest {
  readonly v3AndBelowTransactionalId: string;
  readonly v3AndBelowProducerId: bigint;
  readonly v3AndBelowProducerEpoch: number;
  readonly v3AndBelowTopics: readonly { readonly name: string; readonly partitions: readonly number[] }[];
}

export interface AddPartitionsToTxnResponse {
  readonly throttleTimeMs: number;
  readonly resultsByTopicV3AndBelow: readonly {
    readonly name: string;
    readonly resultsByPartition: readonly {
      readonly partitionIndex: number;
      readonly partitionErrorCode: number;
    }[];
  }[];
}

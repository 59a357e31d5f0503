/** CreateTopics (key 19). The topic's id comes back in v7. */
import { type ApiSpec, field, list, structs } from "../spec.ts";

export const createTopics: ApiSpec = {
  key: 19,
  request: {
    versions: [2, 7],
    flexible: 5,
    fields: [
      structs("topics", 0, [
        field("name", "string", 0),
        field("numPartitions", "int32", 0),
        field("replicationFactor", "int16", 0),
        structs("assignments", 0, [field("partitionIndex", "int32", 0), list("brokerIds", "int32", 0)]),
        structs("configs", 0, [field("name", "string", 0), field("value", "string", 0, { nullable: 0 })]),
      ]),
      field("timeoutMs", "int32", 0, { preset: 60000 }),
      field("validateOnly", "bool", 1, { preset: false }),
    ],
  },
  response: {
    versions: [2, 7],
    flexible: 5,
    fields: [
      field("throttleTimeMs", "int32", 2),
      structs("topics", 0, [
        field("name", "string", 0),
        field("topicId", "uuid", 7),
        field("errorCode", "int16", 0),
        field("errorMessage", "string", 1, { nullable: 0 }),
        field("topicConfigErrorCode", "int16", 5, { tag: 0, tagged: 5 }),
        field("numPartitions", "int32", 5, { preset: -1 }),
        field("replicationFactor", "int16", 5, { preset: -1 }),
        structs(
          "configs",
          5,
          [
            field("name", "string", 5),
            field("value", "string", 5, { nullable: 5 }),
            field("readOnly", "bool", 5),
            field("configSource", "int8", 5, { preset: -1 }),
            field("isSensitive", "bool", 5),
          ],
          { nullable: 5 },
        ),
      ]),
    ],
  },
};

export interface CreateTopicsRequest {
  readonly topics: readonly {
    readonly name: string;
    readonly numPartitions: number;
    readonly replicationFactor: number;
    readonly assignments: readonly {
      readonly partitionIndex: number;
      readonly brokerIds: readonly number[];
    }[];
    readonly configs: readonly { readonly name: string; readonly value: string | null }[];
  }[];
  readonly timeoutMs: number;
  readonly validateOnly: boolean;
}

export interface CreateTopicsResponse {
  readonly throttleTimeMs: number;
  readonly topics: readonly {
    readonly name: string;
    readonly topicId: string;
    readonly errorCode: number;
    readonly errorMessage: string | null;
    readonly topicConfigErrorCode: number;
    readonly numPartitions: number;
    readonly replicationFactor: number;
    readonly configs:
      | readonly {
          readonly name: string;
          readonly value: string | null;
          readonly readOnly: boolean;
          readonly configSource: number;
          readonly isSensitive: boolean;
        }[]
      | null;
  }[];
}

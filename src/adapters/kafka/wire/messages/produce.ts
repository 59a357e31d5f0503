/** Produce (key 0). v7 zstd, v8 errors per record (KIP-467), v10 leader hints (KIP-951), v13 topic ids. */
import { type ApiSpec, field, struct, structs } from "../spec.ts";

export const produce: ApiSpec = {
  key: 0,
  request: {
    versions: [3, 13],
    flexible: 9,
    fields: [
      field("transactionalId", "string", 3, { nullable: 3, preset: null }),
      field("acks", "int16", 0),
      field("timeoutMs", "int32", 0),
      structs("topicData", 0, [
        field("name", "string", [0, 12]),
        field("topicId", "uuid", 13),
        structs("partitionData", 0, [
          field("index", "int32", 0),
          field("records", "records", 0, { nullable: 0 }),
        ]),
      ]),
    ],
  },
  response: {
    versions: [3, 13],
    flexible: 9,
    fields: [
      structs("responses", 0, [
        field("name", "string", [0, 12]),
        field("topicId", "uuid", 13),
        structs("partitionResponses", 0, [
          field("index", "int32", 0),
          field("errorCode", "int16", 0),
          field("baseOffset", "int64", 0),
          field("logAppendTimeMs", "int64", 2, { preset: -1n }),
          field("logStartOffset", "int64", 5, { preset: -1n }),
          structs("recordErrors", 8, [
            field("batchIndex", "int32", 8),
            field("batchIndexErrorMessage", "string", 8, { nullable: 8, preset: null }),
          ]),
          field("errorMessage", "string", 8, { nullable: 8, preset: null }),
          struct(
            "currentLeader",
            10,
            [
              field("leaderId", "int32", 10, { preset: -1 }),
              field("leaderEpoch", "int32", 10, { preset: -1 }),
            ],
            { tag: 0, tagged: 10 },
          ),
        ]),
      ]),
      field("throttleTimeMs", "int32", 1, { preset: 0 }),
      structs(
        "nodeEndpoints",
        10,
        [
          field("nodeId", "int32", 10),
          field("host", "string", 10),
          field("port", "int32", 10),
          field("rack", "string", 10, { nullable: 10, preset: null }),
        ],
        { tag: 0, tagged: 10 },
      ),
    ],
  },
};

export interface ProduceRequest {
  readonly transactionalId: string | null;
  /** 0: no answer at all. */
  readonly acks: number;
  readonly timeoutMs: number;
  readonly topicData: readonly {
    readonly name: string;
    readonly topicId: string;
    readonly partitionData: readonly { readonly index: number; readonly records: Uint8Array | null }[];
  }[];
}

export interface ProduceResponse {
  readonly responses: readonly {
    readonly name: string;
    readonly topicId: string;
    readonly partitionResponses: readonly {
      readonly index: number;
      readonly errorCode: number;
      readonly baseOffset: bigint;
      readonly logAppendTimeMs: bigint;
      readonly logStartOffset: bigint;
      readonly recordErrors: readonly {
        readonly batchIndex: number;
        readonly batchIndexErrorMessage: string | null;
      }[];
      readonly errorMessage: string | null;
      readonly currentLeader: { readonly leaderId: number; readonly leaderEpoch: number };
    }[];
  }[];
  readonly throttleTimeMs: number;
  readonly nodeEndpoints: readonly {
    readonly nodeId: number;
    readonly host: string;
    readonly port: number;
    readonly rack: string | null;
  }[];
}

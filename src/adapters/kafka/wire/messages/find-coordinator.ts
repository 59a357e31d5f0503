/** FindCoordinator (key 10): one key up to v3, a list from v4 (KIP-699). */
import { type ApiSpec, field, list, structs } from "../spec.ts";

export const findCoordinator: ApiSpec = {
  key: 10,
  request: {
    versions: [0, 6],
    flexible: 3,
    fields: [
      field("key", "string", [0, 3]),
      field("keyType", "int8", 1, { preset: 0 }),
      list("coordinatorKeys", "string", 4),
    ],
  },
  response: {
    versions: [0, 6],
    flexible: 3,
    fields: [
      field("throttleTimeMs", "int32", 1),
      field("errorCode", "int16", [0, 3]),
      field("errorMessage", "string", [1, 3], { nullable: [1, 3] }),
      field("nodeId", "int32", [0, 3]),
      field("host", "string", [0, 3]),
      field("port", "int32", [0, 3]),
      structs("coordinators", 4, [
        field("key", "string", 4),
        field("nodeId", "int32", 4),
        field("host", "string", 4),
        field("port", "int32", 4),
        field("errorCode", "int16", 4),
        field("errorMessage", "string", 4, { nullable: 4 }),
      ]),
    ],
  },
};

export interface FindCoordinatorRequest {
  readonly key: string;
  /** 0 group, 1 transaction. */
  readonly keyType: number;
  readonly coordinatorKeys: readonly string[];
}

export interface FindCoordinatorResponse {
  readonly throttleTimeMs: number;
  readonly errorCode: number;
  readonly errorMessage: string | null;
  readonly nodeId: number;
  readonly host: string;
  readonly port: number;
  readonly coordinators: readonly {
    readonly key: string;
    readonly nodeId: number;
    readonly host: string;
    readonly port: number;
    readonly errorCode: number;
    readonly errorMessage: string | null;
  }[];
}

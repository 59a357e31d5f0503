/** ListGroups (key 16): the groups that one broker coordinates. States from v4 (KIP-518), types from v5 (KIP-848). */
import { type ApiSpec, field, list, structs } from "../spec.ts";

export const listGroups: ApiSpec = {
  key: 16,
  request: {
    versions: [0, 5],
    flexible: 3,
    fields: [list("statesFilter", "string", 4), list("typesFilter", "string", 5)],
  },
  response: {
    versions: [0, 5],
    flexible: 3,
    fields: [
      field("throttleTimeMs", "int32", 1),
      field("errorCode", "int16", 0),
      structs("groups", 0, [
        field("groupId", "string", 0),
        field("protocolType", "string", 0),
        field("groupState", "string", 4),
        field("groupType", "string", 5),
      ]),
    ],
  },
};

export interface ListGroupsRequest {
  /** Empty: all. */
  readonly statesFilter: readonly string[];
  readonly typesFilter: readonly string[];
}

export interface ListGroupsResponse {
  readonly throttleTimeMs: number;
  readonly errorCode: number;
  readonly groups: readonly {
    readonly groupId: string;
    readonly protocolType: string;
    /** Empty where the broker does not tell. */
    readonly groupState: string;
    readonly groupType: string;
  }[];
}

/** DescribeGroups (key 15): state and members of classic groups, whose bytes are as their clients wrote them. */
import { type ApiSpec, field, list, structs } from "../spec.ts";

/** "Not asked for" in the authorized-operations field. */
const OPERATIONS_UNKNOWN = -2147483648;

export const describeGroups: ApiSpec = {
  key: 15,
  request: {
    versions: [0, 6],
    flexible: 5,
    fields: [list("groups", "string", 0), field("includeAuthorizedOperations", "bool", 3)],
  },
  response: {
    versions: [0, 6],
    flexible: 5,
    fields: [
      field("throttleTimeMs", "int32", 1),
      structs("groups", 0, [
        field("errorCode", "int16", 0),
        field("errorMessage", "string", 6, { nullable: 6, preset: null }),
        field("groupId", "string", 0),
        field("groupState", "string", 0),
        field("protocolType", "string", 0),
        field("protocolData", "string", 0),
        structs("members", 0, [
          field("memberId", "string", 0),
          field("groupInstanceId", "string", 4, { nullable: 4, preset: null }),
          field("clientId", "string", 0),
          field("clientHost", "string", 0),
          field("memberMetadata", "bytes", 0),
          field("memberAssignment", "bytes", 0),
        ]),
        field("authorizedOperations", "int32", 3, { preset: OPERATIONS_UNKNOWN }),
      ]),
    ],
  },
};

export interface DescribeGroupsRequest {
  readonly groups: readonly string[];
  readonly includeAuthorizedOperations: boolean;
}

export interface DescribeGroupsResponse {
  readonly throttleTimeMs: number;
  readonly groups: readonly {
    readonly errorCode: number;
    readonly errorMessage: string | null;
    readonly groupId: string;
    /** "Dead": there is no such group, before v6. */
    readonly groupState: string;
    readonly protocolType: string;
    /** The chosen assignor, of a stable group. */
    readonly protocolData: string;
    readonly members: readonly {
      readonly memberId: string;
      readonly groupInstanceId: string | null;
      readonly clientId: string;
      readonly clientHost: string;
      readonly memberMetadata: Uint8Array;
      readonly memberAssignment: Uint8Array;
    }[];
    readonly authorizedOperations: number;
  }[];
}

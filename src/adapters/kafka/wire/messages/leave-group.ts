/** LeaveGroup (key 13): one member up to v2, a list from v3 on. */
import { type ApiSpec, field, structs } from "../spec.ts";

export const leaveGroup: ApiSpec = {
  key: 13,
  request: {
    versions: [0, 5],
    flexible: 4,
    fields: [
      field("groupId", "string", 0),
      field("memberId", "string", [0, 2]),
      structs("members", 3, [
        field("memberId", "string", 3),
        field("groupInstanceId", "string", 3, { nullable: 3, preset: null }),
        field("reason", "string", 5, { nullable: 5, preset: null }),
      ]),
    ],
  },
  response: {
    versions: [0, 5],
    flexible: 4,
    fields: [
      field("throttleTimeMs", "int32", 1),
      field("errorCode", "int16", 0),
      structs("members", 3, [
        field("memberId", "string", 3),
        field("groupInstanceId", "string", 3, { nullable: 3 }),
        field("errorCode", "int16", 3),
      ]),
    ],
  },
};

export interface LeaveGroupRequest {
  readonly groupId: string;
  readonly memberId: string;
  readonly members: readonly {
    readonly memberId: string;
    readonly groupInstanceId: string | null;
    readonly reason: string | null;
  }[];
}

export interface LeaveGroupResponse {
  readonly throttleTimeMs: number;
  readonly errorCode: number;
  readonly members: readonly {
    readonly memberId: string;
    readonly groupInstanceId: string | null;
    readonly errorCode: number;
  }[];
}

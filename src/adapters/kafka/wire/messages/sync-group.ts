/** SyncGroup (key 14): the leader hands in the assignment, every member takes its own. */
import { type ApiSpec, field, structs } from "../spec.ts";

export const syncGroup: ApiSpec = {
  key: 14,
  request: {
    versions: [0, 5],
    flexible: 4,
    fields: [
      field("groupId", "string", 0),
      field("generationId", "int32", 0),
      field("memberId", "string", 0),
      field("groupInstanceId", "string", 3, { nullable: 3, preset: null }),
      field("protocolType", "string", 5, { nullable: 5, preset: null }),
      field("protocolName", "string", 5, { nullable: 5, preset: null }),
      structs("assignments", 0, [field("memberId", "string", 0), field("assignment", "bytes", 0)]),
    ],
  },
  response: {
    versions: [0, 5],
    flexible: 4,
    fields: [
      field("throttleTimeMs", "int32", 1),
      field("errorCode", "int16", 0),
      field("protocolType", "string", 5, { nullable: 5, preset: null }),
      field("protocolName", "string", 5, { nullable: 5, preset: null }),
      field("assignment", "bytes", 0),
    ],
  },
};

export interface SyncGroupRequest {
  readonly groupId: string;
  readonly generationId: number;
  readonly memberId: string;
  readonly groupInstanceId: string | null;
  readonly protocolType: string | null;
  readonly protocolName: string | null;
  readonly assignments: readonly { readonly memberId: string; readonly assignment: Uint8Array }[];
}

export interface SyncGroupResponse {
  readonly throttleTimeMs: number;
  readonly errorCode: number;
  readonly protocolType: string | null;
  readonly protocolName: string | null;
  /** A ConsumerProtocolAssignment with its version in front; empty: nothing is assigned. */
  readonly assignment: Uint8Array;
}

/** JoinGroup (key 11). From v4 on a new member is first told its id (KIP-394); instance ids in v5, reasons in v8. */
import { type ApiSpec, field, structs } from "../spec.ts";

export const joinGroup: ApiSpec = {
  key: 11,
  request: {
    versions: [0, 9],
    flexible: 6,
    fields: [
      field("groupId", "string", 0),
      field("sessionTimeoutMs", "int32", 0),
      field("rebalanceTimeoutMs", "int32", 1, { preset: -1 }),
      field("memberId", "string", 0),
      field("groupInstanceId", "string", 5, { nullable: 5, preset: null }),
      field("protocolType", "string", 0),
      structs("protocols", 0, [field("name", "string", 0), field("metadata", "bytes", 0)]),
      field("reason", "string", 8, { nullable: 8, preset: null }),
    ],
  },
  response: {
    versions: [0, 9],
    flexible: 6,
    fields: [
      field("throttleTimeMs", "int32", 2),
      field("errorCode", "int16", 0),
      field("generationId", "int32", 0, { preset: -1 }),
      field("protocolType", "string", 7, { nullable: 7, preset: null }),
      field("protocolName", "string", 0, { nullable: 7 }),
      field("leader", "string", 0),
      field("skipAssignment", "bool", 9),
      field("memberId", "string", 0),
      structs("members", 0, [
        field("memberId", "string", 0),
        field("groupInstanceId", "string", 5, { nullable: 5, preset: null }),
        field("metadata", "bytes", 0),
      ]),
    ],
  },
};

export interface JoinGroupRequest {
  readonly groupId: string;
  readonly sessionTimeoutMs: number;
  readonly rebalanceTimeoutMs: number;
  readonly memberId: string;
  readonly groupInstanceId: string | null;
  readonly protocolType: string;
  /** In the order of preference; `metadata` is a ConsumerProtocolSubscription with its version in front. */
  readonly protocols: readonly { readonly name: string; readonly metadata: Uint8Array }[];
  readonly reason: string | null;
}

export interface JoinGroupResponse {
  readonly throttleTimeMs: number;
  readonly errorCode: number;
  readonly generationId: number;
  readonly protocolType: string | null;
  readonly protocolName: string | null;
  readonly leader: string;
  /** A static leader that came back: the assignment stands (KIP-814). */
  readonly skipAssignment: boolean;
  readonly memberId: string;
  /** Of the leader only. */
  readonly members: readonly {
    readonly memberId: string;
    readonly groupInstanceId: string | null;
    readonly metadata: Uint8Array;
  }[];
}

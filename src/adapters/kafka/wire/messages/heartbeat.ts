/** Heartbeat (key 12) of a member of a classic group. */
import { type ApiSpec, field } from "../spec.ts";

export const heartbeat: ApiSpec = {
  key: 12,
  request: {
    versions: [0, 4],
    flexible: 4,
    fields: [
      field("groupId", "string", 0),
      field("generationId", "int32", 0),
      field("memberId", "string", 0),
      field("groupInstanceId", "string", 3, { nullable: 3, preset: null }),
    ],
  },
  response: {
    versions: [0, 4],
    flexible: 4,
    fields: [field("throttleTimeMs", "int32", 1), field("errorCode", "int16", 0)],
  },
};

export interface HeartbeatRequest {
  readonly groupId: string;
  readonly generationId: number;
  readonly memberId: string;
  readonly groupInstanceId: string | null;
}

export interface HeartbeatResponse {
  readonly throttleTimeMs: number;
  readonly errorCode: number;
}

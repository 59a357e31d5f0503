/** SaslHandshake (key 17) names the mechanism; SaslAuthenticate (key 36) carries its messages (KIP-152, KIP-368). */
import { type ApiSpec, field, list } from "../spec.ts";

export const saslHandshake: ApiSpec = {
  key: 17,
  request: { versions: [0, 1], flexible: null, fields: [field("mechanism", "string", 0)] },
  response: {
    versions: [0, 1],
    flexible: null,
    fields: [field("errorCode", "int16", 0), list("mechanisms", "string", 0)],
  },
};

export const saslAuthenticate: ApiSpec = {
  key: 36,
  request: { versions: [0, 2], flexible: 2, fields: [field("authBytes", "bytes", 0)] },
  response: {
    versions: [0, 2],
    flexible: 2,
    fields: [
      field("errorCode", "int16", 0),
      field("errorMessage", "string", 0, { nullable: 0 }),
      field("authBytes", "bytes", 0),
      field("sessionLifetimeMs", "int64", 1, { preset: 0n }),
    ],
  },
};

export interface SaslHandshakeRequest {
  readonly mechanism: string;
}

export interface SaslHandshakeResponse {
  readonly errorCode: number;
  /** What the broker offers. */
  readonly mechanisms: readonly string[];
}

export interface SaslAuthenticateRequest {
  readonly authBytes: Uint8Array;
}

export interface SaslAuthenticateResponse {
  readonly errorCode: number;
  readonly errorMessage: string | null;
  readonly authBytes: Uint8Array;
  /** 0: no limit. Otherwise authenticate again before it ends. */
  readonly sessionLifetimeMs: bigint;
}

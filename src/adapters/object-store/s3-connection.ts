/** What a client of an S3-alike is made of. Plain data, since each lane has its own client: it crosses a thread. */
import type { BucketPlace } from "../../core/config/bucket-url.ts";
import type { Resolved } from "../../core/config/secret.ts";
import type { S3Options } from "./s3-spec.ts";

export interface S3Keys {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken: string | null;
}

export interface S3Connection extends BucketPlace {
  /** Null: the region's own. */
  readonly endpoint: string | null;
  /** Null: from the environment or the profile. */
  readonly region: string | null;
  readonly pathStyle: boolean;
  /** Null: the chain of the environment, which it finds and renews by itself. */
  readonly keys: S3Keys | null;
  readonly profile: string | null;
  readonly ca: string | null;
  readonly sse: "AES256" | "aws:kms" | null;
  readonly kmsKey: string | null;
  readonly checksum: boolean;
  readonly partBytes: number;
  readonly maxRequests: number;
  readonly requestTimeoutMs: number;
  /** How long an upload and its object must both stay away before they count as gone. */
  readonly goneAfterMs: number;
}

/** Region that is written into signatures where a private endpoint is named and no region: those ignore it. */
const ANY_REGION = "us-east-1";

export function s3Connection(place: BucketPlace, o: Resolved<S3Options>): S3Connection {
  const { access_key_id: id, secret_access_key: secret } = o;
  const keys =
    id === undefined || secret === undefined
      ? null
      : {
          accessKeyId: id.reveal(),
          secretAccessKey: secret.reveal(),
          sessionToken: o.session_token?.reveal() ?? null,
        };
  return {
    ...place,
    endpoint: o.endpoint ?? null,
    region: o.region ?? (o.endpoint === undefined ? null : ANY_REGION),
    pathStyle: o.style === "path",
    keys,
    profile: o.profile ?? null,
    ca: o.ca?.reveal() ?? null,
    sse: o.sse ?? null,
    kmsKey: o.sse_kms_key_id ?? null,
    checksum: o.checksum === "crc32",
    partBytes: o.part_bytes,
    maxRequests: o.max_requests,
    requestTimeoutMs: o.request_timeout_ms,
    goneAfterMs: o.gone_after_ms,
  };
}

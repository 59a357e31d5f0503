/**
 * The AWS SDK behind a door: loaded when the first request is made, so that nobody else pays for it. Its own retries
 * are off: it would repeat a conditional write whose answer was lost and call our own success a conflict.
 */
import type { S3Client } from "@aws-sdk/client-s3";
import type { S3Connection } from "./s3-connection.ts";

export type S3Sdk = typeof import("@aws-sdk/client-s3");

export interface S3Session {
  readonly sdk: S3Sdk;
  readonly client: S3Client;
}

/** A socket that makes no headway this long before the connection stands counts as dead. */
const CONNECT_TIMEOUT_MS = 10_000;

export async function openS3(c: S3Connection): Promise<S3Session> {
  const sdk = await import("@aws-sdk/client-s3");
  const agent = { keepAlive: true, maxSockets: c.maxRequests, ...(c.ca === null ? {} : { ca: c.ca }) };
  const when = c.checksum ? "WHEN_SUPPORTED" : "WHEN_REQUIRED";
  const client = new sdk.S3Client({
    maxAttempts: 1,
    forcePathStyle: c.pathStyle,
    // It opens a connection for each part and waits for an answer that some stores never give.
    expectContinueHeader: false,
    requestChecksumCalculation: when,
    responseChecksumValidation: when,
    // Values of a profile would else win over what the configuration leaves out.
    ...(c.endpoint === null ? {} : { endpoint: c.endpoint }),
    ...(c.region === null ? {} : { region: c.region }),
    ...(c.profile === null ? {} : { profile: c.profile }),
    ...(c.keys === null
      ? {}
      : {
          credentials: {
            accessKeyId: c.keys.accessKeyId,
            secretAccessKey: c.keys.secretAccessKey,
            ...(c.keys.sessionToken === null ? {} : { sessionToken: c.keys.sessionToken }),
          },
        }),
    requestHandler: {
      connectionTimeout: CONNECT_TIMEOUT_MS,
      socketTimeout: c.requestTimeoutMs,
      httpAgent: agent,
      httpsAgent: agent,
    },
  });
  return { sdk, client };
}

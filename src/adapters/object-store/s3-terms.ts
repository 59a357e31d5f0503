/** Terms that go with everything that is written: checksum and encryption, as the SDK names them. */
import type { ServerSideEncryption } from "@aws-sdk/client-s3";
import type { S3Connection } from "./s3-connection.ts";

/** CRC-32 of the bytes as headers carry it: four bytes, big-endian, base64. Ours, since the SDK's is slow. */
export function crc32Text(bytes: Uint8Array): string {
  const four = new Uint8Array(4);
  new DataView(four.buffer).setUint32(0, Bun.hash.crc32(bytes));
  return four.toBase64();
}

export function encryption(c: S3Connection): {
  ServerSideEncryption?: ServerSideEncryption;
  SSEKMSKeyId?: string;
} {
  if (c.sse === null) return {};
  return { ServerSideEncryption: c.sse, ...(c.kmsKey === null ? {} : { SSEKMSKeyId: c.kmsKey }) };
}

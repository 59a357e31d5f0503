/** The real S3 servers of scripts/with-servers.sh, and what tests look at there without the code under test. */
import {
  AbortMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from "@aws-sdk/client-s3";
import type { S3Connection } from "../../src/adapters/object-store/s3-connection.ts";
import { S3Requests } from "../../src/adapters/object-store/s3-requests.ts";
import { systemChance } from "../../src/adapters/system/chance.ts";
import { systemClock } from "../../src/adapters/system/clock.ts";
import type { S3Server, S3Servers } from "../servers/s3/server.ts";

const text = process.env["TWG_REAL_S3"];
export const S3_SERVERS: S3Servers | null = text === undefined ? null : (JSON.parse(text) as S3Servers);

if (S3_SERVERS === null) console.error("SKIP no real S3 servers: run below scripts/with-servers.sh --s3");

/** The servers by name, each a separate implementation; one that cannot be had is named all the same. */
export const EACH_SERVER: readonly (readonly [string, S3Server | null])[] = [
  ["versitygw", S3_SERVERS?.versitygw ?? null],
  ["SeaweedFS", S3_SERVERS?.seaweedfs ?? null],
];

const RUN = `t${Date.now().toString(36)}${Math.floor(Math.random() * 1e6).toString(36)}`;
let serial = 0;

/** A prefix that no other test uses. */
export function freshPrefix(): string {
  return `${RUN}/${serial++}`;
}

export function connectionTo(
  server: S3Server,
  prefix: string,
  more: Partial<S3Connection> = {},
): S3Connection {
  return {
    bucket: server.bucket,
    prefix,
    endpoint: server.endpoint,
    region: "us-east-1",
    pathStyle: true,
    keys: { accessKeyId: server.accessKey, secretAccessKey: server.secretKey, sessionToken: null },
    profile: null,
    ca: null,
    sse: null,
    kmsKey: null,
    checksum: true,
    partBytes: 5 * 1024 * 1024,
    maxRequests: 8,
    requestTimeoutMs: 20_000,
    goneAfterMs: 400,
    ...more,
  };
}

export function requestsTo(connection: S3Connection): S3Requests {
  return new S3Requests(connection, { clock: systemClock, chance: systemChance });
}

/** A plain client beside the one under test. */
export class Outside {
  readonly #client: S3Client;
  readonly #bucket: string;
  readonly #prefix: string;

  constructor(server: S3Server, prefix: string) {
    this.#bucket = server.bucket;
    this.#prefix = prefix;
    this.#client = new S3Client({
      endpoint: server.endpoint,
      region: "us-east-1",
      forcePathStyle: true,
      credentials: { accessKeyId: server.accessKey, secretAccessKey: server.secretKey },
    });
  }

  /** Keys below the prefix, relative to it. */
  async keys(): Promise<string[]> {
    const out: string[] = [];
    let token: string | undefined;
    do {
      const page = await this.#client.send(
        new ListObjectsV2Command({
          Bucket: this.#bucket,
          Prefix: `${this.#prefix}/`,
          ...(token === undefined ? {} : { ContinuationToken: token }),
        }),
      );
      for (const o of page.Contents ?? []) out.push((o.Key ?? "").slice(this.#prefix.length + 1));
      token = page.NextContinuationToken;
    } while (token !== undefined);
    return out.sort();
  }

  async read(key: string): Promise<Uint8Array> {
    const found = await this.#client.send(
      new GetObjectCommand({ Bucket: this.#bucket, Key: `${this.#prefix}/${key}` }),
    );
    return (await found.Body?.transformToByteArray()) ?? new Uint8Array(0);
  }

  async write(key: string, content: Uint8Array): Promise<void> {
    await this.#client.send(
      new PutObjectCommand({ Bucket: this.#bucket, Key: `${this.#prefix}/${key}`, Body: content }),
    );
  }

  async openUploads(): Promise<{ readonly key: string; readonly upload: string }[]> {
    const page = await this.#client.send(
      new ListMultipartUploadsCommand({ Bucket: this.#bucket, Prefix: `${this.#prefix}/` }),
    );
    return (page.Uploads ?? []).map((u) => ({
      key: (u.Key ?? "").slice(this.#prefix.length + 1),
      upload: u.UploadId ?? "",
    }));
  }

  async abort(key: string, upload: string): Promise<void> {
    const input = { Bucket: this.#bucket, Key: `${this.#prefix}/${key}`, UploadId: upload };
    await this.#client.send(new AbortMultipartUploadCommand(input));
  }

  async remove(key: string): Promise<void> {
    await this.#client.send(new DeleteObjectCommand({ Bucket: this.#bucket, Key: `${this.#prefix}/${key}` }));
  }

  close(): void {
    this.#client.destroy();
  }
}

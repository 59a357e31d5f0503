/** Reading, listing, writing and removing whole objects of one bucket. Keys are relative to the configured prefix. */
import type { GetObjectCommandOutput } from "@aws-sdk/client-s3";
import { Failure } from "../../core/failure/failure.ts";
import type {
  Condition,
  ConditionalObjects,
  ListedObject,
  ObjectHead,
  PutOutcome,
  StoredObject,
} from "../../core/ports/conditional-objects.ts";
import type { S3Session } from "./s3-client.ts";
import { s3Failure, s3Fault } from "./s3-failure.ts";
import type { S3Requests } from "./s3-requests.ts";
import { crc32Text, encryption } from "./s3-terms.ts";

/** Pages of a list; a prefix of ours with more objects has gone wrong. */
const MAX_PAGES = 10_000;

export class S3Objects implements ConditionalObjects {
  readonly place: string;
  readonly #r: S3Requests;

  constructor(requests: S3Requests) {
    this.#r = requests;
    this.place = requests.place();
  }

  async head(key: string): Promise<ObjectHead | null> {
    const input = this.#input(key);
    return absentIsNull("look at", this.#r.place(key), () =>
      this.#r.repeated("look at", key, async ({ sdk, client }, abortSignal) => {
        const found = await client.send(new sdk.HeadObjectCommand(input), { abortSignal });
        return headOf(found);
      }),
    );
  }

  async get(key: string, maxBytes: number): Promise<StoredObject | null> {
    const input = this.#input(key);
    return absentIsNull("read", this.#r.place(key), () =>
      this.#r.repeated("read", key, async ({ sdk, client }, abortSignal) => {
        const found = await client.send(new sdk.GetObjectCommand(input), { abortSignal });
        const content = await this.#body(found, key, maxBytes);
        return { ...headOf(found), content };
      }),
    );
  }

  /** Bytes [start, end) of an object. Throws store.absent; fails if the object has changed or ends before. */
  async getRange(key: string, start: number, end: number, revision: string | null): Promise<Uint8Array> {
    if (end === start) return new Uint8Array(0);
    const input = {
      ...this.#input(key),
      Range: `bytes=${start}-${end - 1}`,
      ...(revision === null ? {} : { IfMatch: revision }),
    };
    const range: (session: S3Session, abortSignal: AbortSignal) => Promise<Uint8Array> = async (
      { sdk, client },
      abortSignal,
    ) => {
      const found = await client.send(new sdk.GetObjectCommand(input), { abortSignal });
      const content = await this.#body(found, key, end - start);
      if (content.length === end - start) return content;
      const what = `${content.length} bytes came of ${end - start} that were asked for`;
      throw new Failure("store.io", what, { at: this.#r.place(key) });
    };
    return this.#r.repeated("read", key, range, { conditional: revision !== null });
  }

  async put(key: string, content: Uint8Array): Promise<void> {
    const input = { ...this.#input(key), ...this.#content(content) };
    await this.#r.repeated("write", key, ({ sdk, client }, abortSignal) =>
      client.send(new sdk.PutObjectCommand(input), { abortSignal }),
    );
  }

  async putIf(
    key: string,
    content: Uint8Array,
    metadata: Readonly<Record<string, string>>,
    { revision }: Condition,
  ): Promise<PutOutcome> {
    const condition = revision === null ? { IfNoneMatch: "*" } : { IfMatch: revision };
    const input = { ...this.#input(key), ...this.#content(content), ...condition, Metadata: { ...metadata } };
    try {
      const { ETag } = await this.#r.once(({ sdk, client }, abortSignal) =>
        client.send(new sdk.PutObjectCommand(input), { abortSignal }),
      );
      return ETag === undefined ? { outcome: "unknown" } : { outcome: "stored", revision: ETag };
    } catch (e) {
      const fault = s3Fault(e);
      // Some stores say 404 where the object of an If-Match is gone, others 412.
      const refused =
        ["refused", "conflict"].includes(fault.kind) || (fault.kind === "absent" && revision !== null);
      if (refused) return { outcome: "refused" };
      if (fault.noEffect) throw s3Failure(e, "write", this.#r.place(key));
      return { outcome: "unknown" };
    }
  }

  async list(prefix: string): Promise<readonly ListedObject[]> {
    const found: ListedObject[] = [];
    const root = this.#r.keyOf("");
    let token: string | undefined;
    for (let page = 0; page < MAX_PAGES; page++) {
      const input = {
        Bucket: this.#r.bucket,
        Prefix: this.#r.keyOf(prefix),
        ...(token === undefined ? {} : { ContinuationToken: token }),
      };
      const answer = await this.#r.repeated("list", prefix, ({ sdk, client }, abortSignal) =>
        client.send(new sdk.ListObjectsV2Command(input), { abortSignal }),
      );
      const now = this.#r.clock.now();
      for (const o of answer.Contents ?? []) {
        if (o.Key === undefined) continue;
        const ageMs = o.LastModified === undefined ? 0 : Math.max(0, now - o.LastModified.getTime());
        found.push({ key: o.Key.slice(root.length), bytes: o.Size ?? 0, ageMs });
      }
      token = answer.NextContinuationToken;
      if (answer.IsTruncated !== true || token === undefined) return found;
    }
    throw new Failure("store.refused", `a list does not end after ${MAX_PAGES} pages`, {
      at: this.#r.place(prefix),
    });
  }

  async remove(key: string): Promise<void> {
    const input = this.#input(key);
    await absentIsNull("remove", this.#r.place(key), () =>
      this.#r.repeated("remove", key, ({ sdk, client }, abortSignal) =>
        client.send(new sdk.DeleteObjectCommand(input), { abortSignal }),
      ),
    );
  }

  #input(key: string): { Bucket: string; Key: string } {
    return { Bucket: this.#r.bucket, Key: this.#r.keyOf(key) };
  }

  #content(content: Uint8Array) {
    const { connection } = this.#r;
    return {
      Body: content,
      ContentLength: content.length,
      ...(connection.checksum ? { ChecksumCRC32: crc32Text(content) } : {}),
      ...encryption(connection),
    };
  }

  async #body(found: GetObjectCommandOutput, key: string, maxBytes: number): Promise<Uint8Array> {
    const { ContentLength: length, Body } = found;
    if (length !== undefined && length > maxBytes) {
      throw new Failure("bytes.limit", `the object has ${length} bytes, at most ${maxBytes} are read`, {
        at: this.#r.place(key),
      });
    }
    if (Body === undefined) return new Uint8Array(0);
    const content = await Body.transformToByteArray();
    // A connection that is cut in the middle may look like an end.
    if (length !== undefined && content.length !== length) throw new CutBody(content.length, length);
    return content;
  }
}

class CutBody extends Error {
  override readonly name = "IncompleteBody";
  constructor(got: number, wanted: number) {
    super(`the answer ended after ${got} of ${wanted} bytes`);
  }
}

function headOf(found: {
  readonly ETag?: string | undefined;
  readonly ContentLength?: number | undefined;
  readonly Metadata?: Record<string, string> | undefined;
}): ObjectHead {
  return { revision: found.ETag ?? "", bytes: found.ContentLength ?? 0, metadata: found.Metadata ?? {} };
}

async function absentIsNull<T>(doing: string, at: string, work: () => Promise<T>): Promise<T | null> {
  try {
    return await work();
  } catch (e) {
    const failure = s3Failure(e, doing, at);
    if (failure.code === "store.absent") return null;
    throw failure;
  }
}

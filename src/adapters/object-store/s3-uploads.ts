/** Multipart uploads of one bucket: one method a request. Keys are relative to the configured prefix. */
import { Failure } from "../../core/failure/failure.ts";
import { s3Failure, s3Fault } from "./s3-failure.ts";
import type { S3Requests } from "./s3-requests.ts";
import type { UploadedPart } from "./s3-staging.ts";
import { crc32Text, encryption } from "./s3-terms.ts";

export const TOKEN = "twg-upload";

export interface OpenUpload {
  readonly key: string;
  readonly upload: string;
}

export interface ListedPart {
  readonly number: number;
  readonly tag: string;
  readonly bytes: number;
}

/** Parts that land behind an abort keep an upload alive: it is looked at again so often. */
const ABORT_ROUNDS = 5;

export async function abortUpload(uploads: S3Uploads, key: string, upload: string): Promise<void> {
  for (let round = 0; round < ABORT_ROUNDS; round++) {
    await uploads.abort(key, upload);
    if ((await uploads.parts(key, upload)) === null) return;
  }
}

/** What came of a completion. `open`: its outcome must be looked up. */
export type Completion = "done" | "open";

const MAX_PAGES = 10_000;

export class S3Uploads {
  readonly #r: S3Requests;

  constructor(requests: S3Requests) {
    this.#r = requests;
  }

  /** `unsure`: an answer was lost, so there may be a second upload of this key that nobody knows. */
  async create(key: string, token: string, unsure: () => void): Promise<string> {
    const { connection } = this.#r;
    const input = {
      ...this.#input(key),
      Metadata: { [TOKEN]: token },
      ContentType: "application/octet-stream",
      ...(connection.checksum ? { ChecksumAlgorithm: "CRC32" as const } : {}),
      ...encryption(connection),
    };
    const { UploadId } = await this.#r.repeated(
      "begin an upload of",
      key,
      ({ sdk, client }, abortSignal) =>
        client.send(new sdk.CreateMultipartUploadCommand(input), { abortSignal }),
      { unsure },
    );
    if (UploadId === undefined) throw this.#odd("the store named no upload", key);
    return UploadId;
  }

  /** Throws store.absent if the upload is gone. */
  async part(
    key: string,
    upload: string,
    number: number,
    bytes: Uint8Array,
    life?: AbortSignal,
  ): Promise<UploadedPart> {
    const crc = this.#r.connection.checksum ? crc32Text(bytes) : "";
    const input = {
      ...this.#input(key),
      UploadId: upload,
      PartNumber: number,
      Body: bytes,
      ContentLength: bytes.length,
      ...(crc === "" ? {} : { ChecksumCRC32: crc }),
    };
    const { ETag } = await this.#r.repeated(
      "upload a part of",
      key,
      ({ sdk, client }, abortSignal) => client.send(new sdk.UploadPartCommand(input), { abortSignal }),
      { ...(life === undefined ? {} : { life }) },
    );
    if (ETag === undefined) throw this.#odd("the store gave a part no tag", key);
    return { tag: ETag, crc };
  }

  /** Sent once. Throws a Failure only where it surely had no effect. */
  async complete(key: string, upload: string, parts: readonly UploadedPart[]): Promise<Completion> {
    const input = {
      ...this.#input(key),
      UploadId: upload,
      // The key is ours alone; if something stands there all the same it is not overwritten.
      IfNoneMatch: "*",
      MultipartUpload: {
        Parts: parts.map(({ tag, crc }, i) => ({
          PartNumber: i + 1,
          ETag: tag,
          ...(crc === "" ? {} : { ChecksumCRC32: crc }),
        })),
      },
    };
    try {
      await this.#r.once(({ sdk, client }, abortSignal) =>
        client.send(new sdk.CompleteMultipartUploadCommand(input), { abortSignal }),
      );
      return "done";
    } catch (e) {
      if (s3Fault(e).noEffect) throw s3Failure(e, "publish", this.#r.place(key));
      return "open";
    }
  }

  /** Idempotent. Parts that are still under way may outlive it: see `parts`. */
  async abort(key: string, upload: string): Promise<void> {
    const input = { ...this.#input(key), UploadId: upload };
    await this.#absentIsNull(key, "give up an upload of", () =>
      this.#r.repeated("give up an upload of", key, ({ sdk, client }, abortSignal) =>
        client.send(new sdk.AbortMultipartUploadCommand(input), { abortSignal }),
      ),
    );
  }

  /** Null: the store knows no such upload. */
  async parts(key: string, upload: string): Promise<readonly ListedPart[] | null> {
    const found: ListedPart[] = [];
    let marker: string | undefined;
    for (let page = 0; page < MAX_PAGES; page++) {
      const input = {
        ...this.#input(key),
        UploadId: upload,
        ...(marker === undefined ? {} : { PartNumberMarker: marker }),
      };
      const answer = await this.#absentIsNull(key, "look at an upload of", () =>
        this.#r.repeated("look at an upload of", key, ({ sdk, client }, abortSignal) =>
          client.send(new sdk.ListPartsCommand(input), { abortSignal }),
        ),
      );
      if (answer === null) return null;
      for (const p of answer.Parts ?? [])
        found.push({ number: p.PartNumber ?? 0, tag: p.ETag ?? "", bytes: p.Size ?? 0 });
      marker = answer.NextPartNumberMarker;
      if (answer.IsTruncated !== true || marker === undefined) return found;
    }
    throw this.#odd("a list of parts does not end", key);
  }

  /** Uploads whose keys begin so, whoever began them. */
  async under(prefix: string): Promise<readonly OpenUpload[]> {
    const found: OpenUpload[] = [];
    const root = this.#r.keyOf("");
    let marker: { KeyMarker?: string; UploadIdMarker?: string } = {};
    for (let page = 0; page < MAX_PAGES; page++) {
      const input = { Bucket: this.#r.bucket, Prefix: this.#r.keyOf(prefix), ...marker };
      const answer = await this.#r.repeated("list uploads", prefix, ({ sdk, client }, abortSignal) =>
        client.send(new sdk.ListMultipartUploadsCommand(input), { abortSignal }),
      );
      for (const u of answer.Uploads ?? []) {
        if (u.Key === undefined || u.UploadId === undefined || !u.Key.startsWith(root)) continue;
        found.push({ key: u.Key.slice(root.length), upload: u.UploadId });
      }
      const { NextKeyMarker: key, NextUploadIdMarker: id } = answer;
      if (answer.IsTruncated !== true || key === undefined) return found;
      marker = { KeyMarker: key, ...(id === undefined ? {} : { UploadIdMarker: id }) };
    }
    throw this.#odd("a list of uploads does not end", prefix);
  }

  #input(key: string): { Bucket: string; Key: string } {
    return { Bucket: this.#r.bucket, Key: this.#r.keyOf(key) };
  }

  #odd(message: string, key: string): Failure {
    return new Failure("store.refused", message, { at: this.#r.place(key) });
  }

  async #absentIsNull<T>(key: string, doing: string, work: () => Promise<T>): Promise<T | null> {
    try {
      return await work();
    } catch (e) {
      const failure = s3Failure(e, doing, this.#r.place(key));
      if (failure.code === "store.absent") return null;
      throw failure;
    }
  }
}

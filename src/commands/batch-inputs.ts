/** Input files of a batch job, of this machine and of buckets. Each thread opens them for itself. */
import { openLocalFile } from "../adapters/files/file-bytes.ts";
import { formatOfName, type LocalFile } from "../adapters/files/locate.ts";
import { type S3Connection, s3Connection } from "../adapters/object-store/s3-connection.ts";
import { objectAddress, objectKeys, openObject, placeObjects } from "../adapters/object-store/s3-input.ts";
import { S3Objects } from "../adapters/object-store/s3-objects.ts";
import { S3Requests } from "../adapters/object-store/s3-requests.ts";
import { s3Defaults } from "../adapters/object-store/s3-spec.ts";
import { systemChance } from "../adapters/system/chance.ts";
import { systemClock } from "../adapters/system/clock.ts";
import type { FileBytes, FilePlace } from "../core/ports/file-bytes.ts";
import type { BatchConfig } from "./batch-config.ts";
import type { Cli } from "./cli.ts";

/** How buckets are reached; which one stands in the address. Plain data: it crosses a thread. */
export type BucketAccess = Omit<S3Connection, "bucket" | "prefix">;

type S3Table = BatchConfig["source"]["s3"];

/** Of `[source.s3]`; without it AWS, or the store that the environment names, by the machine's own credentials. */
export function bucketAccess(table: S3Table, environment: Cli["environment"]): BucketAccess {
  const named = environment.AWS_ENDPOINT_URL ?? environment.AWS_ENDPOINT_URL_S3;
  const options =
    table ??
    (named === undefined ? s3Defaults() : { ...s3Defaults(), endpoint: named, style: "path" as const });
  const { bucket: _, prefix: __, ...access } = s3Connection({ bucket: "", prefix: "" }, options);
  return access;
}

export class BatchInputs {
  readonly #access: BucketAccess;
  readonly #buckets = new Map<string, S3Objects>();

  constructor(access: BucketAccess) {
    this.#access = access;
  }

  readonly open = (place: FilePlace): FileBytes => {
    if (place.revision === null) return openLocalFile(place);
    const { bucket, key } = objectAddress(place.path);
    return openObject(this.#bucket(bucket), key, place);
  };

  /** Objects behind an s3:// input, in the order of their names. */
  async objects(input: string): Promise<LocalFile[]> {
    const address = objectAddress(input);
    const bucket = this.#bucket(address.bucket);
    const keys = await objectKeys(bucket, address, (key) => formatOfName(key) !== null);
    const places = await placeObjects(bucket, address.bucket, keys);
    return places.map((p) => ({ ...p, name: p.path }));
  }

  #bucket(bucket: string): S3Objects {
    let objects = this.#buckets.get(bucket);
    if (objects === undefined) {
      const connection = { ...this.#access, bucket, prefix: "" };
      objects = new S3Objects(new S3Requests(connection, { clock: systemClock, chance: systemChance }));
      this.#buckets.set(bucket, objects);
    }
    return objects;
  }
}

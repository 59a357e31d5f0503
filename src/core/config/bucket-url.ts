/** `s3://bucket/prefix` as a place for files. Everything else that looks like a URL is refused with what to do. */

export interface BucketPlace {
  readonly bucket: string;
  /** Without slashes at its ends; may be empty. */
  readonly prefix: string;
}

const SCHEME = /^([a-z][a-z0-9+.-]*):\/\//i;
/** The rule of AWS; other stores allow no more. */
const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;
/** A key has 1024 bytes; the rest is for folders, the file's name and our own. */
const MOST_PREFIX_BYTES = 512;

const GOOGLE = "Google Cloud Storage takes no If-None-Match on writes, which the promise rests on";
const AZURE = "Azure Blob Storage does not speak the S3 protocol";
const ELSEWHERE: ReadonlyMap<string, string> = new Map([
  ["gs", GOOGLE],
  ["gcs", GOOGLE],
  ["az", AZURE],
  ["abfs", AZURE],
  ["abfss", AZURE],
  ["wasb", AZURE],
  ["r2", "for R2 write s3:// and the account's endpoint in [sink.s3]"],
  ["s3a", "write s3://"],
  ["s3n", "write s3://"],
]);

export function isUrl(path: string): boolean {
  return SCHEME.test(path);
}

export function isBucketUrl(path: string): boolean {
  return path.startsWith("s3://");
}

/** The place, or what is wrong with it. The text may hold parts in braces behind the bucket. */
export function parseBucketUrl(url: string): BucketPlace | string {
  const scheme = SCHEME.exec(url)?.[1] ?? "";
  if (scheme !== "s3") {
    const hint = ELSEWHERE.get(scheme.toLowerCase());
    return `this version writes to folders and to s3://, not to ${scheme}://${hint === undefined ? "" : `: ${hint}`}`;
  }
  const [bucket = "", ...names] = url.slice("s3://".length).replace(/\/+$/, "").split("/");
  if (!BUCKET.test(bucket)) return `'${bucket}' is no name of a bucket: 3 to 63 of a-z, 0-9, '.' and '-'`;
  if (names.includes("")) return "a prefix cannot hold two slashes in a row";
  if (names.some((n) => n === "." || n === "..")) return "a prefix cannot hold '.' or '..' as a name";
  const prefix = names.join("/");
  if (/[\p{Cc}\\]/u.test(prefix)) return "a prefix cannot hold a backslash or a control character";
  if (new TextEncoder().encode(prefix).length > MOST_PREFIX_BYTES) {
    return `a prefix has at most ${MOST_PREFIX_BYTES} bytes`;
  }
  return { bucket, prefix };
}

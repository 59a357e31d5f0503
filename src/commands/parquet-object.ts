/** Parquet files in a bucket for `inspect parquet`, read by ranges. */
import type { S3Objects } from "../adapters/object-store/s3-objects.ts";
import { Failure } from "../core/failure/failure.ts";
import { openBucket } from "./bucket-reader.ts";
import { checkSlice, type ParquetSource } from "./parquet-file.ts";

type S3Table = Parameters<typeof openBucket>[1];

/** An object as named; else what lies below the name, sorted, without what is ours. */
export async function parquetObjectsOf(url: string, options: S3Table): Promise<ParquetSource[]> {
  const slash = url.lastIndexOf("/");
  if (url.endsWith(".parquet")) {
    const folder = openBucket(url.slice(0, slash), options);
    return [objectSource(folder, url.slice(slash + 1))];
  }
  const folder = openBucket(url, options);
  const names = (await folder.list("")).map((o) => o.key).filter((key) => key.endsWith(".parquet"));
  const shown = names.filter((key) => !key.split("/").includes("_twg")).sort();
  return shown.map((key) => objectSource(folder, key));
}

function objectSource(objects: S3Objects, key: string): ParquetSource {
  const name = `${objects.place}/${key}`;
  return {
    name,
    open: async () => {
      const head = await objects.head(key);
      if (head === null) throw new Failure("inspect.unreadable", "there is no such object", { at: name });
      const { bytes: size, revision } = head;
      const slice = async (start: number, end = size) => {
        checkSlice(start, end, size);
        const bytes = await objects.getRange(key, start, end, revision);
        // The reader wants a buffer of its own.
        return new Uint8Array(bytes).buffer;
      };
      return { buffer: { byteLength: size, slice }, close: async () => {} };
    },
  };
}

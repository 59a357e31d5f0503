/** The files of a Parquet sink as they lie in its folder or bucket, those that landed first in front. */
import { existsSync } from "node:fs";
import { stat } from "node:fs/promises";
import { rootOf } from "../adapters/parquet/template.ts";
import { isBucketUrl } from "../core/config/bucket-url.ts";
import { openBucket } from "./bucket-reader.ts";
import type { SinkOf } from "./config-file.ts";
import { type ParquetSource, parquetFilesOf } from "./parquet-file.ts";
import { parquetObjectsOf } from "./parquet-object.ts";

export interface RawFile {
  /** Within the sink's root. */
  readonly key: string;
  readonly bytes: number;
  readonly ageMs: number;
  readonly source: ParquetSource;
}

export async function rawFilesOf(sink: SinkOf<"parquet">, now: number): Promise<readonly RawFile[]> {
  const root = rootOf(sink.path);
  const files = isBucketUrl(root) ? await inBucket(root, sink.s3) : await inFolder(root, now);
  return files.sort((a, b) => b.ageMs - a.ageMs || (a.key < b.key ? -1 : 1));
}

async function inFolder(root: string, now: number): Promise<RawFile[]> {
  const files: RawFile[] = [];
  // Before anything has landed there is no folder.
  if (!existsSync(root)) return files;
  for (const source of await parquetFilesOf([root])) {
    const { size: bytes, mtimeMs } = await stat(source.name);
    files.push({ key: source.name.slice(root.length + 1), bytes, ageMs: now - mtimeMs, source });
  }
  return files;
}

async function inBucket(root: string, options: SinkOf<"parquet">["s3"]): Promise<RawFile[]> {
  const objects = openBucket(root, options);
  const listed = new Map((await objects.list("")).map((o) => [o.key, o]));
  const sources = await parquetObjectsOf(root, options);
  return sources.flatMap((source) => {
    const key = source.name.slice(objects.place.length + 1);
    const found = listed.get(key);
    return found === undefined ? [] : [{ key, bytes: found.bytes, ageMs: found.ageMs, source }];
  });
}

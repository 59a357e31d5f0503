/**
 * Open uploads that nobody will complete. Uploads carry no metadata that can be listed, so ours are known by their
 * keys: each holds the id of the process that began it, and each process leaves its id in our folder before it begins
 * one. Another pipeline's uploads, or anybody's, never match.
 */
import type { S3Objects } from "./s3-objects.ts";
import { abortUpload, type S3Uploads } from "./s3-uploads.ts";

export interface SweepOptions {
  readonly own: string;
  /** Our own uploads are left alone: lanes may be at work. */
  readonly instance: string;
  /** Ids of uploads that open intents name. */
  readonly keep: ReadonlySet<string>;
}

/** A process that was stopped for longer and goes on may begin an upload that the bucket's lifecycle must remove. */
const FORGET_MS = 24 * 3_600_000;

/** Names what was removed. */
export async function sweepUploads(
  o: SweepOptions,
  uploads: S3Uploads,
  objects: S3Objects,
): Promise<readonly string[]> {
  const marks = await objects.list(`${o.own}/instances/`);
  const ids = marks.map((m) => ({ ...m, id: m.key.slice(m.key.lastIndexOf("/") + 1) }));
  const others = ids.filter(({ id }) => id !== o.instance);
  const gone: string[] = [];
  if (others.length > 0) {
    const ours = others.map(({ id }) => bounded(id));
    for (const { key, upload } of await uploads.under("")) {
      if (o.keep.has(upload) || !ours.some((id) => id.test(key))) continue;
      await abortUpload(uploads, key, upload);
      gone.push(key);
    }
  }
  for (const { key, ageMs } of others) if (ageMs > FORGET_MS) await objects.remove(key);
  for (const { key } of await objects.list(`${o.own}/probe/`)) await objects.remove(key);
  return gone;
}

/** The id as a whole word: `a1` is not in `a12`. */
function bounded(id: string): RegExp {
  return new RegExp(`(^|[^A-Za-z0-9])${RegExp.escape(id)}([^A-Za-z0-9]|$)`);
}

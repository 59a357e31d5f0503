/** Objects as input files: found by name, prefix or pattern, read by ranges of the revision that was found. */
import { Failure } from "../../core/failure/failure.ts";
import type { FileBytes, FilePlace } from "../../core/ports/file-bytes.ts";
import type { S3Objects } from "./s3-objects.ts";

export interface ObjectAddress {
  readonly bucket: string;
  /** May be empty, or hold a pattern. */
  readonly key: string;
}

const GLOB = /[*?[{]/;
const MAX_OBJECTS = 1_000_000;
/** Requests for revisions that are under way; the connection bounds them once more. */
const HEADS = 16;

export function objectAddress(url: string): ObjectAddress {
  const found = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/(.*))?$/s.exec(url);
  if (found === null)
    throw new Failure("files.none", "an address of an object is s3://bucket/key", { at: url });
  return { bucket: found[1]!, key: found[2] ?? "" };
}

/**
 * Keys behind an input, in order: the object itself, those that a pattern matches (* within a folder, ** over folders), or
 * those of a folder that `wanted` takes. Throws files.none.
 */
export async function objectKeys(
  objects: S3Objects,
  { bucket, key }: ObjectAddress,
  wanted: (key: string) => boolean,
): Promise<readonly string[]> {
  const at = `s3://${bucket}/${key}`;
  if (!GLOB.test(key) && key !== "" && !key.endsWith("/") && (await objects.head(key)) !== null) return [key];
  const pattern = GLOB.test(key);
  const first = key.search(GLOB);
  const prefix = pattern ? key.slice(0, key.lastIndexOf("/", first) + 1) : folderOf(key);
  const glob = new Bun.Glob(pattern ? key : "**");
  const keys = (await objects.list(prefix)).map((o) => o.key).filter((k) => !k.endsWith("/"));
  const found = pattern
    ? keys.filter((k) => glob.match(k) && !isHidden(k.slice(prefix.length)))
    : keys.filter((k) => !isOurs(k.slice(prefix.length)) && wanted(k));
  if (found.length === 0)
    throw new Failure("files.none", pattern ? "no object matches" : "there is no such object or folder", {
      at,
    });
  if (found.length > MAX_OBJECTS)
    throw new Failure("files.none", `more than ${MAX_OBJECTS} objects match`, { at });
  return found.sort((a, b) => (a < b ? -1 : 1));
}

const folderOf = (key: string): string => (key === "" || key.endsWith("/") ? key : `${key}/`);
const isHidden = (key: string): boolean => key.split("/").some((name) => name.startsWith("."));
/** Hidden objects and what twg itself writes (names with _ in front) are not data. */
const isOurs = (key: string): boolean => key.split("/").some((name) => /^[._]/.test(name));

/** The objects with their sizes and revisions; throws files.changed for one that went meanwhile. */
export async function placeObjects(
  objects: S3Objects,
  bucket: string,
  keys: readonly string[],
): Promise<FilePlace[]> {
  const places: FilePlace[] = [];
  for (let from = 0; from < keys.length; from += HEADS)
    places.push(
      ...(await Promise.all(keys.slice(from, from + HEADS).map((k) => placeOf(objects, bucket, k)))),
    );
  return places;
}

async function placeOf(objects: S3Objects, bucket: string, key: string): Promise<FilePlace> {
  const path = `s3://${bucket}/${key}`;
  const head = await objects.head(key);
  if (head === null) throw gone(path, "it was listed and is not there");
  return { path, revision: head.revision, bytes: head.bytes };
}

/** `path`: for messages. */
export function openObject(objects: S3Objects, key: string, { path, revision, bytes }: FilePlace): FileBytes {
  return {
    size: bytes,
    read: async (from, to) => {
      try {
        return await objects.getRange(key, from, to, revision);
      } catch (e) {
        if (!(e instanceof Failure)) throw e;
        // A condition that does not hold, or a range that is not there.
        if (["store.foreign", "store.absent", "store.refused"].includes(e.code))
          throw gone(path, "the store has another object under this name, or none", e);
        throw e;
      }
    },
    close: () => {},
  };
}

function gone(path: string, how: string, cause?: unknown): Failure {
  return new Failure("files.changed", `the object changed while it was read: ${how}`, {
    at: path,
    cause,
    hint: "Give objects that nobody writes to any more; what was covered is of the content as it was hashed",
  });
}

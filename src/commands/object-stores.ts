/** The stores of an object sink: a folder of this machine, or a bucket. The only place that tells them apart. */
import { stat } from "node:fs/promises";
import { join } from "node:path";
import {
  coverageFolderOf,
  dedupFolderOf,
  LocalVersionedStore,
  planFolderOf,
  schemaFolderOf,
  tableFolderOf,
} from "../adapters/coverage/local.ts";
import {
  coverageKeyOf,
  dedupKeyOf,
  ObjectVersionedStore,
  planKeyOf,
  tableKeyOf,
} from "../adapters/coverage/object-store.ts";
import { LocalObjectStore, stagingOf } from "../adapters/object-store/local.ts";
import { storeFailure } from "../adapters/object-store/local-failure.ts";
import { type S3Connection, s3Connection } from "../adapters/object-store/s3-connection.ts";
import { S3Objects } from "../adapters/object-store/s3-objects.ts";
import { S3Requests } from "../adapters/object-store/s3-requests.ts";
import { s3Defaults } from "../adapters/object-store/s3-spec.ts";
import { ownFolder, S3ObjectStore } from "../adapters/object-store/s3-store.ts";
import { rootOf } from "../adapters/parquet/template.ts";
import { systemChance } from "../adapters/system/chance.ts";
import { systemClock } from "../adapters/system/clock.ts";
import { isBucketUrl, parseBucketUrl } from "../core/config/bucket-url.ts";
import { errnoOf } from "../core/failure/disk.ts";
import { Failure } from "../core/failure/failure.ts";
import type { ObjectStore } from "../core/ports/object-store.ts";
import type { VersionedStore } from "../core/ports/versioned-store.ts";
import type { SinkOf } from "./config-file.ts";
import type { LaneStore } from "./lane-store.ts";
import type { PointHook } from "./sink-parts.ts";
import { newestFiles, newestObjects, type TableFile } from "./table-files.ts";

/** Shortest time between two writes of the coverage object on a disk, which bears more than an object store. */
const DISK_INTERVAL_MS = 20;

export interface ObjectSinkStores {
  readonly objects: ObjectStore;
  readonly versions: VersionedStore;
  /** Of what was learned of schemas. */
  readonly schemas: VersionedStore;
  /** The schema of its table, where that is decoded rows. */
  readonly table: VersionedStore;
  /** Of the primary sink: how duplicates are found. */
  readonly dedup: VersionedStore;
  /** Of the primary sink: by which plans records were decoded, and since when. */
  readonly plans: VersionedStore;
  /** Files of such a table that lie there: at most so many of the newest, those last. */
  newest(most: number): Promise<readonly TableFile[]>;
  /** How long ago the file was written, ms; null: it is not there. */
  age(key: string): Promise<number | null>;
  /** Shortest time between two writes of the coverage object, ms. */
  readonly intervalMs: number;
  readonly lane: LaneStore;
  /** Proves that the sink can be written. */
  prepare(): Promise<void>;
  /** Takes over keys that were read again. True if they differ. */
  renew(sink: SinkOf<"parquet">): boolean;
}

export function objectSinkStores(
  pipeline: string,
  sink: SinkOf<"parquet">,
  instance: string,
  hook: PointHook | null,
): ObjectSinkStores {
  const root = rootOf(sink.path);
  return isBucketUrl(root)
    ? bucketStores(s3Of(root, sink.s3), pipeline, sink, instance, hook)
    : folderStores(root, pipeline, sink.name, instance, hook);
}

function folderStores(
  root: string,
  pipeline: string,
  sink: string,
  instance: string,
  hook: PointHook | null,
): ObjectSinkStores {
  const staging = stagingOf(root, pipeline, sink);
  const objects = new LocalObjectStore({ root, staging, instance });
  return {
    objects,
    versions: new LocalVersionedStore(coverageFolderOf(root, pipeline, sink), hook ?? undefined),
    schemas: new LocalVersionedStore(schemaFolderOf(root, pipeline, sink)),
    table: new LocalVersionedStore(tableFolderOf(root, pipeline, sink), undefined, "table"),
    dedup: new LocalVersionedStore(dedupFolderOf(root, pipeline, sink), undefined, "dedup"),
    plans: new LocalVersionedStore(planFolderOf(root, pipeline, sink), undefined, "plans"),
    newest: (most) => newestFiles(root, most),
    age: (key) => fileAge(root, key),
    intervalMs: DISK_INTERVAL_MS,
    lane: { t: "local", root, staging },
    prepare: () => objects.prepare(),
    renew: () => false,
  };
}

/** Throws store.* where it is not known whether the file is there: what is gone for ever is recorded by this. */
export async function fileAge(root: string, key: string): Promise<number | null> {
  const path = join(root, key);
  try {
    return Math.max(0, Math.round(systemClock.now() - (await stat(path)).mtimeMs));
  } catch (e) {
    if (errnoOf(e) === "ENOENT") return null;
    throw storeFailure(e, "look at a raw file", path);
  }
}

function bucketStores(
  connection: S3Connection,
  pipeline: string,
  sink: SinkOf<"parquet">,
  instance: string,
  hook: PointHook | null,
): ObjectSinkStores {
  const requests = new S3Requests(connection, { clock: systemClock, chance: systemChance });
  const own = ownFolder(pipeline, sink.name);
  const objects = new S3ObjectStore({ own, instance }, requests);
  const conditional = new S3Objects(requests);
  return {
    objects,
    versions: new ObjectVersionedStore(conditional, {
      folder: coverageKeyOf(pipeline, sink.name),
      instance,
      hook: hook ?? undefined,
    }),
    schemas: new ObjectVersionedStore(conditional, {
      folder: `${ownFolder(pipeline, sink.name)}/schemas`,
      instance,
    }),
    table: new ObjectVersionedStore(conditional, {
      folder: tableKeyOf(pipeline, sink.name),
      object: "table.json",
      instance,
    }),
    dedup: new ObjectVersionedStore(conditional, {
      folder: dedupKeyOf(pipeline, sink.name),
      object: "dedup.json",
      instance,
    }),
    plans: new ObjectVersionedStore(conditional, {
      folder: planKeyOf(pipeline, sink.name),
      object: "plans.json",
      instance,
    }),
    newest: (most) => newestObjects(conditional, most),
    age: async (key) => (await conditional.list(key)).find((o) => o.key === key)?.ageMs ?? null,
    intervalMs: (sink.s3 ?? s3Defaults()).coverage_interval_ms,
    get lane(): LaneStore {
      return { t: "s3", connection: requests.connection, own };
    },
    prepare: () => objects.prepare(),
    renew: (renewed) => requests.renew(s3Of(rootOf(renewed.path), renewed.s3).keys),
  };
}

/** The path was checked with the configuration. */
export function s3Of(root: string, options: SinkOf<"parquet">["s3"]): S3Connection {
  const place = parseBucketUrl(root);
  if (typeof place === "string") throw new Failure("config.invalid", place, { at: root });
  return s3Connection(place, options ?? s3Defaults());
}

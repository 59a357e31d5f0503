/** Raw files for recovery: the row groups of a set of files, each as a file of its own, from a folder or a bucket. */
import { join } from "node:path";
import { openLocalFile } from "../adapters/files/file-bytes.ts";
import { parquetFooter } from "../adapters/files/parquet-footer.ts";
import { openObject } from "../adapters/object-store/s3-input.ts";
import { rootOf } from "../adapters/parquet/template.ts";
import { isBucketUrl } from "../core/config/bucket-url.ts";
import type { IndexEntry, IndexedFile } from "../core/coverage/state.ts";
import { asFailure, Failure } from "../core/failure/failure.ts";
import { planColumns } from "../core/formats/parquet/column-plan.ts";
import { MAGIC } from "../core/formats/parquet/footer.ts";
import { groupFooter, placeChunks } from "../core/formats/parquet/group-file.ts";
import type { ParquetFooter, RowGroupInfo } from "../core/formats/parquet/read-footer.ts";
import { walkPages } from "../core/formats/parquet/walk-pages.ts";
import type { FileBytes } from "../core/ports/file-bytes.ts";
import { type Span, streamKey, streamParts } from "../core/records/stream.ts";
import { RAW_PLACES } from "../core/recovery/raw-rows.ts";
import type { ReadSet } from "../core/recovery/replay-source.ts";
import { openBucket } from "./bucket-reader.ts";
import type { SinkOf } from "./config-file.ts";

const MAX_PAGE_BYTES = 512 * 1024 * 1024;

/** Opens a raw file by its key. */
type OpenRaw = (key: string) => Promise<FileBytes>;

export function rawSets(sink: SinkOf<"parquet">): ReadSet {
  return readSets(opener(sink), sink.metadata_prefix);
}

/** `prefix`: of the metadata columns. */
export function readSets(open: OpenRaw, prefix: string): ReadSet {
  return async (set) => {
    const groups: Uint8Array[] = [];
    for (const target of set.targets) groups.push(...(await groupsOf(set, target, open, prefix)));
    return { groups, oneFile: set.targets.length === 1, twoLives: hasTwoLives(set.spans) };
  };
}

/** Two incarnations of one partition. */
function hasTwoLives(spans: readonly Span[]): boolean {
  const streams = new Set(spans.map((s) => s.stream));
  const partitions = new Set([...streams].map((s) => streamKey({ ...streamParts(s), incarnation: 0 })));
  return partitions.size < streams.size;
}

function opener(sink: SinkOf<"parquet">): OpenRaw {
  const root = rootOf(sink.path);
  if (!isBucketUrl(root))
    return async (key) => openLocalFile({ path: join(root, key), revision: null, bytes: 0 });
  const objects = openBucket(root, sink.s3);
  return async (key) => {
    const head = await objects.head(key);
    if (head === null) throw new Failure("store.absent", "there is no such object", { at: key });
    return openObject(objects, key, { path: `${objects.place}/${key}`, ...head });
  };
}

async function groupsOf(
  set: IndexEntry,
  { key, rows }: IndexedFile,
  open: OpenRaw,
  prefix: string,
): Promise<Uint8Array[]> {
  let file: FileBytes | null = null;
  try {
    file = await open(key);
    const footer = await parquetFooter(file, key);
    checkColumns(footer, prefix, key);
    if (footer.rows !== rows)
      throw new Failure("recovery.not_raw", `it has ${footer.rows} rows, and ${rows} were written`, {
        at: key,
      });
    const groups: Uint8Array[] = [];
    for (const g of footer.groups) groups.push(await groupFile(file, footer, g, key));
    return groups;
  } catch (e) {
    throw missing(asFailure(e), set, key);
  } finally {
    file?.close();
  }
}

function checkColumns({ columns }: ParquetFooter, prefix: string, key: string): void {
  const other = RAW_PLACES.find(([place, name]) => columns[place]?.name !== prefix + name);
  if (other === undefined) return;
  throw new Failure("recovery.not_raw", `column ${other[0]} of it is not ${prefix}${other[1]}`, {
    at: key,
    hint: "Was metadata_prefix of the raw sink changed? Files that were written before keep theirs",
  });
}

async function groupFile(
  file: FileBytes,
  { columns, leaves }: ParquetFooter,
  group: RowGroupInfo,
  key: string,
): Promise<Uint8Array> {
  const chunks = placeChunks(group);
  const shown = planColumns(columns, key).map((c) => c.shown);
  const footer = groupFooter(shown, group.rows, chunks);
  const last = chunks.at(-1);
  const pagesEnd = last === undefined ? MAGIC.length : last.at + last.to - last.from;
  const bytes = new Uint8Array(pagesEnd + footer.length);
  bytes.set(MAGIC, 0);
  for (const c of chunks) bytes.set(await file.read(c.from, c.to), c.at);
  bytes.set(footer, pagesEnd);
  const parts = {
    read: (at: number, n: number) => bytes.subarray(at, at + n),
    crc32: (b: Uint8Array) => Bun.hash.crc32(b),
  };
  for (const [i, c] of chunks.entries())
    walkPages(c, `column ${JSON.stringify(leaves[i]!.name)}`, key, { maxPageBytes: MAX_PAGE_BYTES }, parts);
  return bytes;
}

const GONE: ReadonlySet<string> = new Set(["files.unreadable", "store.absent", "files.changed"]);

function missing(failure: Failure, { spans }: IndexEntry, key: string): Failure {
  if (!GONE.has(failure.code)) return failure;
  const held = spans.map((s) => `${s.stream} [${s.from}, ${s.next})`);
  const shown =
    held.length > 3 ? `${held.slice(0, 3).join(", ")} and ${held.length - 3} more` : held.join(", ");
  return new Failure("recovery.raw_missing", `it cannot be read (${failure.message}); it held ${shown}`, {
    at: key,
    cause: failure,
  });
}

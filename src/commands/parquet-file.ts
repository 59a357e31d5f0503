/**
 * Reads what `inspect` shows of Parquet files, with a reader that is not the writer: hyparquet, over bounded file slices.
 */
import { open, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { zstdDecompressSync } from "node:zlib";
import type { AsyncBuffer, FileMetaData } from "hyparquet";
import { parquetMetadataAsync, parquetReadObjects } from "hyparquet";
import { Failure } from "../core/failure/failure.ts";

export interface ParquetFacts {
  readonly file: string;
  readonly bytes: number;
  readonly rows: bigint;
  readonly rowGroups: number;
  readonly createdBy: string;
  readonly columns: readonly string[];
  readonly metadata: Readonly<Record<string, string>>;
  readonly sample: readonly Readonly<Record<string, unknown>>[];
}

/** Footers beyond this are no work of twg, and would be read into memory whole. */
const MAX_FOOTER = 256 * 1024 * 1024;
const MAX_DEPTH = 32;
/** Coverage and staged files. Other names that begin with `_` or `.` may be topics. */
const OWN_FOLDER = "_twg";

/** A Parquet file wherever it is. */
export interface ParquetSource {
  readonly name: string;
  open(): Promise<{ readonly buffer: AsyncBuffer; close(): Promise<void> }>;
}

export async function readParquetFacts(source: ParquetSource, sampleRows: number): Promise<ParquetFacts> {
  const { buffer, close } = await source.open();
  try {
    return await factsOf(source.name, buffer, sampleRows);
  } finally {
    await close();
  }
}

function localSource(path: string): ParquetSource {
  return { name: path, open: () => openLocal(path) };
}

async function openLocal(path: string) {
  const handle = await open(path, "r").catch((e: unknown) => {
    throw unreadable(path, e);
  });
  const { size } = await handle.stat();
  const buffer: AsyncBuffer = {
    byteLength: size,
    async slice(start, end = size) {
      checkSlice(start, end, size);
      const bytes = new Uint8Array(end - start);
      const { bytesRead } = await handle.read(bytes, 0, bytes.length, start);
      if (bytesRead < bytes.length) throw new RangeError("the file became shorter");
      return bytes.buffer;
    },
  };
  return { buffer, close: () => handle.close() };
}

export function checkSlice(start: number, end: number, size: number): void {
  if (start < 0 || end < start || end > size) throw new RangeError(`bytes ${start} to ${end} of ${size}`);
}

function factsOf(path: string, file: AsyncBuffer, sampleRows: number): Promise<ParquetFacts> {
  return checked(path, file, async (metadata, { top }) => {
    const rowEnd = Math.min(sampleRows, Number(metadata.num_rows));
    return {
      file: path,
      bytes: file.byteLength,
      rows: metadata.num_rows,
      rowGroups: metadata.row_groups.length,
      createdBy: metadata.created_by ?? "",
      columns: top,
      metadata: Object.fromEntries((metadata.key_value_metadata ?? []).map((kv) => [kv.key, kv.value ?? ""])),
      sample: rowEnd === 0 ? [] : await rowsOf(file, metadata, { rowStart: 0, rowEnd }),
    };
  });
}

/** Rows of a file, a row group or a part of one at a time. */
export interface ParquetRows {
  readonly columns: readonly string[];
  /** Rows of each row group. */
  readonly groups: readonly number[];
  /** Rows from `first` up to `end`, with these columns. */
  read(columns: readonly string[], first: number, end: number): Promise<readonly ParquetRow[]>;
}

export type ParquetRow = Readonly<Record<string, unknown>>;

export async function withParquetRows<T>(
  { name, open }: ParquetSource,
  use: (rows: ParquetRows) => Promise<T>,
): Promise<T> {
  const { buffer, close } = await open();
  try {
    return await checked(name, buffer, (metadata, { top }) =>
      use({
        columns: top,
        groups: metadata.row_groups.map((g) => Number(g.num_rows)),
        read: (columns, rowStart, rowEnd) =>
          rowsOf(buffer, metadata, { columns: [...columns], rowStart, rowEnd }),
      }),
    );
  } finally {
    await close();
  }
}

async function checked<T>(
  path: string,
  file: AsyncBuffer,
  use: (metadata: FileMetaData, columns: Columns) => Promise<T>,
): Promise<T> {
  try {
    await checkFrame(file);
    const metadata = await parquetMetadataAsync(file, { geoparquet: false });
    const columns = columnsOf(metadata);
    checkGroups(metadata, columns);
    return await use(metadata, columns);
  } catch (e) {
    if (e instanceof Failure) throw e;
    const why = e instanceof Error ? e.message : String(e);
    throw new Failure("inspect.not_parquet", `not a whole Parquet file: ${why}`, { at: path, cause: e });
  }
}

/** `PAR1` at both ends and a footer length that fits, before anything of that length is read. */
async function checkFrame(file: AsyncBuffer): Promise<void> {
  if (file.byteLength < 12) throw new RangeError(`${file.byteLength} bytes are too few`);
  const head = new DataView(await file.slice(0, 4));
  const tail = new DataView(await file.slice(file.byteLength - 8, file.byteLength));
  const magic = 0x31524150;
  if (head.getUint32(0, true) !== magic || tail.getUint32(4, true) !== magic)
    throw new RangeError("no PAR1 at its ends");
  const footer = tail.getUint32(0, true);
  if (footer > file.byteLength - 12 || footer > MAX_FOOTER)
    throw new RangeError(`a footer of ${footer} bytes`);
}

interface Columns {
  readonly top: readonly string[];
  /** Dotted paths of the leaves, in the order in which row groups must list them. */
  readonly leaves: readonly string[];
}

/** The schema is a tree listed depth first, the root at index 0. */
function columnsOf({ schema }: FileMetaData): Columns {
  const top: string[] = [];
  const leaves: string[] = [];
  let at = 1;
  const element = (path: readonly string[]): void => {
    const one = schema[at++];
    if (one === undefined) throw new RangeError("the schema ends too soon");
    if (path.length > MAX_DEPTH) throw new RangeError("the schema nests too deeply");
    const here = [...path, one.name];
    if (path.length === 0) top.push(one.name);
    if (one.num_children === undefined || one.num_children === 0) leaves.push(here.join("."));
    else for (let i = 0; i < one.num_children; i++) element(here);
  };
  const children = schema[0]?.num_children ?? 0;
  for (let i = 0; i < children; i++) element([]);
  if (at !== schema.length) throw new RangeError("the schema has elements that belong nowhere");
  return { top, leaves };
}

/** Row groups that list other columns than the schema would leave the reader with columns that nobody waits for. */
function checkGroups(metadata: FileMetaData, { top, leaves }: Columns): void {
  if (new Set(top).size < top.length || new Set(leaves).size < leaves.length) {
    throw new RangeError("two columns have one name");
  }
  let rows = 0n;
  for (const group of metadata.row_groups) {
    const listed = group.columns.map((c) => c.meta_data?.path_in_schema.join("."));
    if (listed.length !== leaves.length || listed.some((path, i) => path !== leaves[i])) {
      throw new RangeError("a row group lists other columns than the schema");
    }
    if (group.num_rows < 0n) throw new RangeError("a row group has less than no rows");
    rows += group.num_rows;
  }
  if (rows !== metadata.num_rows)
    throw new RangeError(`${rows} rows in row groups, ${metadata.num_rows} in the footer`);
}

function rowsOf(
  file: AsyncBuffer,
  metadata: FileMetaData,
  which: { readonly columns?: string[]; readonly rowStart: number; readonly rowEnd: number },
): Promise<ParquetRow[]> {
  return parquetReadObjects({
    ...{ file, metadata, ...which },
    utf8: false,
    useOffsetIndex: true,
    compressors: { ZSTD: inflateZstd },
  });
}

/** The page header says how long the output is; never more than that is inflated. */
function inflateZstd(input: Uint8Array, outputLength: number): Uint8Array {
  if (outputLength === 0) return new Uint8Array(0);
  return new Uint8Array(zstdDecompressSync(input, { maxOutputLength: outputLength }));
}

/** Files as named; folders are searched for `*.parquet`, sorted, leaving out what is staged. */
export async function parquetFilesOf(paths: readonly string[]): Promise<ParquetSource[]> {
  const found: ParquetSource[] = [];
  for (const path of paths) {
    const info = await stat(path).catch((e: unknown) => {
      throw unreadable(path, e);
    });
    const files = info.isDirectory() ? await searched(path) : [path];
    found.push(...files.map(localSource));
  }
  return found;
}

async function searched(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((e: unknown) => {
    throw unreadable(folder, e);
  });
  const found: string[] = [];
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (entry.name === OWN_FOLDER) continue;
    const path = join(folder, entry.name);
    if (entry.isDirectory()) found.push(...(await searched(path)));
    else if (entry.isFile() && entry.name.endsWith(".parquet")) found.push(path);
  }
  return found;
}

function unreadable(path: string, e: unknown): Failure {
  const code = e instanceof Error && "code" in e ? String(e.code) : "";
  const why = code === "ENOENT" ? "there is no such file or folder" : `cannot read it (${code})`;
  return new Failure("inspect.unreadable", why, { at: path });
}

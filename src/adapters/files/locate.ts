/** From what the user names to files: globs and folders are opened out, names decide the format, first bytes the compression. */
import { closeSync, fstatSync, openSync, readdirSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { Failure } from "../../core/failure/failure.ts";
import type { Compression } from "../../core/ports/batch-lane.ts";
import type { FilePlace, OpenFile } from "../../core/ports/file-bytes.ts";
import { unreadable } from "./blocks.ts";
import type { FilesOptions } from "./spec.ts";

export type FileFormat = "csv" | "ndjson" | "json" | "parquet" | "avro";

export interface LocalFile {
  /** As the user would name it. */
  readonly name: string;
  readonly path: string;
  /** Of an address: the revision that was found; null: a file of this machine. */
  readonly revision: string | null;
  readonly bytes: number;
}

const MAX_FILES = 1_000_000;
const GLOB = /[*?[{]/;

/** Local files behind one input, in the order of their names. */
export function localFiles(input: string): LocalFile[] {
  const plain = statOf(input);
  if (plain?.isDirectory()) return inFolder(input);
  if (plain !== null) return [fileAt(input, input)];
  if (!GLOB.test(input)) throw new Failure("files.none", "there is no such file", { at: input });
  const found: string[] = [];
  for (const path of new Bun.Glob(input).scanSync({ dot: false, onlyFiles: true, followSymlinks: true })) {
    found.push(path);
    if (found.length > MAX_FILES)
      throw new Failure("files.none", `more than ${MAX_FILES} files match`, { at: input });
  }
  if (found.length === 0) throw new Failure("files.none", "no file matches", { at: input });
  return found.sort(byName).map((p) => fileAt(p, p));
}

/** Hidden files and what twg itself writes (names with _ in front) are not data. */
function inFolder(folder: string): LocalFile[] {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8", withFileTypes: true })
    .filter((e) => e.isFile())
    .map((e) => join(e.parentPath, e.name))
    .filter(
      (p) =>
        !p
          .slice(folder.length)
          .split("/")
          .some((part) => /^[._]/.test(part)),
    )
    .filter((p) => formatOfName(p) !== null);
  if (names.length === 0)
    throw new Failure("files.none", "no file of a known format is in the folder", { at: folder });
  return names.sort(byName).map((p) => fileAt(p, p));
}

function byName(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function statOf(path: string) {
  try {
    return statSync(path);
  } catch (e) {
    const code = e instanceof Error && "code" in e ? e.code : "";
    if (code === "ENOENT" || code === "ENOTDIR") return null;
    throw unreadable(e, path);
  }
}

export function fileAt(path: string, name: string): LocalFile {
  try {
    const fd = openSync(path, "r");
    try {
      const stat = fstatSync(fd);
      if (!stat.isFile())
        throw new Failure("files.unreadable", "it is no regular file", {
          at: name,
          hint: "Pipes have no identity and no second reading: give standard input as -",
        });
      return { name, path, revision: null, bytes: stat.size };
    } finally {
      closeSync(fd);
    }
  } catch (e) {
    if (e instanceof Failure) throw e;
    throw unreadable(e, name);
  }
}

const FORMATS: ReadonlyMap<string, FileFormat> = new Map([
  ["csv", "csv"],
  ["tsv", "csv"],
  ["tab", "csv"],
  ["ndjson", "ndjson"],
  ["jsonl", "ndjson"],
  ["jsonlines", "ndjson"],
  ["json", "json"],
  ["parquet", "parquet"],
  ["avro", "avro"],
]);

/** By the extension, that of a compression left out. */
export function formatOfName(name: string): FileFormat | null {
  const plain = basename(name.split(/[?#]/)[0] ?? name)
    .toLowerCase()
    .replace(/\.(gz|gzip|zst|zstd)$/, "");
  const extension = /\.([a-z0-9]+)$/.exec(plain)?.[1];
  return extension === undefined ? null : (FORMATS.get(extension) ?? null);
}

export function formatOf(name: string, options: Pick<FilesOptions, "format">): FileFormat {
  const format = options.format === "auto" ? formatOfName(name) : options.format;
  if (format !== null) return format;
  throw new Failure("files.format", "the name does not say what format it is", {
    at: name,
    hint: "Name it: --format csv, ndjson, json, parquet or avro",
  });
}

/** RFC 1952 and RFC 8878. */
const GZIP = [0x1f, 0x8b];
const ZSTD = [0x28, 0xb5, 0x2f, 0xfd];

export async function compressionOf(
  place: FilePlace,
  options: Pick<FilesOptions, "compression">,
  open: OpenFile,
): Promise<Compression> {
  if (options.compression !== "auto") return options.compression;
  const file = open(place);
  const head = await file.read(0, Math.min(4, file.size)).finally(() => file.close());
  if (GZIP.every((b, i) => head[i] === b)) return "gzip";
  return ZSTD.every((b, i) => head[i] === b) ? "zstd" : "none";
}

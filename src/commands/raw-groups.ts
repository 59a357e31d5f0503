/** Row groups of one raw file: where they lie, and each as a file of its own, whose pages were compared with their checksums. */
import { Failure } from "../core/failure/failure.ts";
import { planColumns } from "../core/formats/parquet/column-plan.ts";
import { MAGIC } from "../core/formats/parquet/footer.ts";
import { groupFooter, type PlacedChunk, placeChunks } from "../core/formats/parquet/group-file.ts";
import {
  type ChunkInfo,
  LOGICAL,
  notParquet,
  type ParquetFooter,
} from "../core/formats/parquet/read-footer.ts";
import { walkPages } from "../core/formats/parquet/walk-pages.ts";
import type { FileBytes } from "../core/ports/file-bytes.ts";
import { SCANNED } from "../core/recovery/group-runs.ts";
import { leafOf, placeOf } from "../core/recovery/raw-columns.ts";
import { RAW_PLACES } from "../core/recovery/raw-rows.ts";

const MAX_PAGE_BYTES = 512 * 1024 * 1024;
/** Bytes between two chunks that are read with them: another request costs more. */
const HOLE_BYTES = 64 * 1024;

/** A unit of time (read-footer.ts). */
const MILLISECONDS = 1;
const TIMES = ["source_timestamp", "ingest_ts"].map(placeOf);
/** Leaves of one value a row. */
const FLAT = RAW_PLACES.flatMap(([, name]) => (name === "source_headers" ? [] : [leafOf(name)]));

export interface GroupPlace {
  readonly key: string;
  /** As a file of its own. */
  readonly bytes: number;
  readonly footer: Pick<ParquetFooter, "leaves">;
  readonly chunks: readonly PlacedChunk[];
  /** Behind the chunks. */
  readonly tail: Uint8Array;
}

/** `rows`: that the file was written with. Throws recovery.not_raw. */
export function groupsOf(
  footer: ParquetFooter,
  key: string,
  rows: number,
  prefix: string,
): readonly GroupPlace[] {
  checkColumns(footer, prefix, key);
  if (footer.rows !== rows)
    throw new Failure("recovery.not_raw", `it has ${footer.rows} rows, and ${rows} were written`, {
      at: key,
    });
  const shown = planColumns(footer.columns, key).map((c) => c.shown);
  return footer.groups.flatMap((group) => {
    if (group.rows === 0) return [];
    const chunks = placeChunks(group);
    const other = FLAT.find((leaf) => chunks[leaf]?.values !== group.rows);
    // Memory is taken by the number of values.
    if (other !== undefined)
      throw notParquet(
        `column ${other} of it has other than ${group.rows} values in ${group.rows} rows`,
        key,
      );
    const tail = groupFooter(shown, group.rows, chunks);
    const pages = chunks.reduce((n, c) => n + c.to - c.from, MAGIC.length);
    return [{ key, bytes: pages + tail.length, footer, chunks, tail }];
  });
}

function checkColumns({ columns }: ParquetFooter, prefix: string, key: string): void {
  const other = RAW_PLACES.find(([place, name]) => columns[place]?.name !== prefix + name);
  if (other === undefined) return checkTimes(columns, key);
  throw new Failure("recovery.not_raw", `column ${other[0]} of it is not ${prefix}${other[1]}`, {
    at: key,
    hint: "Was metadata_prefix of the raw sink changed? Files that were written before keep theirs",
  });
}

/** Programs that rewrite files like to write microseconds. */
function checkTimes(columns: ParquetFooter["columns"], key: string): void {
  for (const place of TIMES) {
    const { name, logical } = columns[place]!;
    if (logical?.id !== LOGICAL.timestamp || logical.unit !== MILLISECONDS)
      throw new Failure("recovery.not_raw", `${name} of it is no timestamp in milliseconds`, {
        at: key,
        hint: "Has another program rewritten it?",
      });
  }
}

/** The group into `body`, which has room for its bytes. Throws files.not_parquet where a page is not what was written. */
export async function readGroup(
  file: FileBytes,
  { chunks, tail, footer, key }: GroupPlace,
  body: Uint8Array,
): Promise<void> {
  body.set(MAGIC, 0);
  for (const [from, to, of] of stretches(chunks)) {
    const bytes = await file.read(from, to);
    for (const c of of) body.set(bytes.subarray(c.from - from, c.to - from), c.at);
  }
  const last = chunks.at(-1)!;
  body.set(tail, last.at + last.to - last.from);
  const parts = {
    read: (at: number, n: number) => body.subarray(at, at + n),
    crc32: (b: Uint8Array) => Bun.hash.crc32(b),
  };
  for (const [i, c] of chunks.entries()) {
    const column = `column ${JSON.stringify(footer.leaves[i]!.name)}`;
    walkPages(c, column, key, { maxPageBytes: MAX_PAGE_BYTES }, parts);
  }
}

/** Chunks that lie side by side, in one stretch of bytes each. */
function stretches<C extends ChunkInfo>(chunks: readonly C[]): readonly [number, number, readonly C[]][] {
  const found: [number, number, C[]][] = [];
  for (const c of chunks.toSorted((a, b) => a.from - b.from)) {
    const last = found.at(-1);
    if (last !== undefined && c.from - last[1] <= HOLE_BYTES) {
      last[1] = Math.max(last[1], c.to);
      last[2].push(c);
    } else found.push([c.from, c.to, [c]]);
  }
  return found;
}

/** The columns that tell whose its rows are. `chunks`: of all, those that were read where they lie in `bytes`. */
export async function readScanned(
  file: FileBytes,
  { chunks, footer, key }: GroupPlace,
): Promise<{ readonly bytes: Uint8Array; readonly chunks: readonly ChunkInfo[] }> {
  const wanted = SCANNED.map((leaf) => chunks[leaf]!);
  const bytes = new Uint8Array(wanted.reduce((n, c) => n + c.to - c.from, 0));
  const placed = new Map<number, number>();
  let at = 0;
  for (const [from, to, of] of stretches(wanted)) {
    const read = await file.read(from, to);
    for (const c of of) {
      bytes.set(read.subarray(c.from - from, c.to - from), at);
      placed.set(c.from, at);
      at += c.to - c.from;
    }
  }
  const there = chunks.map((c) => {
    const to = placed.get(c.from);
    return to === undefined ? { ...c, from: 0, to: 0 } : { ...c, from: to, to: to + c.to - c.from };
  });
  const parts = {
    read: (n: number, length: number) => bytes.subarray(n, n + length),
    crc32: (b: Uint8Array) => Bun.hash.crc32(b),
  };
  for (const leaf of SCANNED) {
    const column = `column ${JSON.stringify(footer.leaves[leaf]!.name)}`;
    walkPages(
      { ...there[leaf]!, at: there[leaf]!.from },
      column,
      key,
      { maxPageBytes: MAX_PAGE_BYTES },
      parts,
    );
  }
  return { bytes, chunks: there };
}

/** FileMetaData and RowGroup (parquet-format src/main/thrift/parquet.thrift). */
import type { ChunkInfo, ChunkStatistics } from "./page.ts";
import type { LeafSpec } from "./schema.ts";
import { T, ThriftWriter } from "./thrift.ts";

export const MAGIC = Uint8Array.of(0x50, 0x41, 0x52, 0x31); // PAR1
const FORMAT_VERSION = 2;
/** RowGroup.ordinal is an int16. */
const MOST_ORDINALS = 0x7fff;
const UTF8 = new TextEncoder();

type FooterLeaf = Pick<LeafSpec, "path" | "physical">;

/** One row group as footer bytes, so that a long file keeps bytes and not objects. */
export function rowGroupBytes(
  leaves: readonly FooterLeaf[],
  chunks: readonly ChunkInfo[],
  rows: number,
  at: number,
  ordinal: number,
): Uint8Array {
  const w = new ThriftWriter();
  w.open().list(1, T.struct, chunks.length);
  chunks.forEach((chunk, i) => {
    writeChunk(w, leaves[i]!, chunk);
  });
  const sum = (of: (c: ChunkInfo) => number) => chunks.reduce((n, c) => n + of(c), 0);
  w.i64(
    2,
    sum((c) => c.rawBytes),
  );
  w.i64(3, rows);
  w.i64(5, at);
  w.i64(
    6,
    sum((c) => c.bytes),
  );
  if (ordinal <= MOST_ORDINALS) w.i16(7, ordinal);
  w.close();
  return w.view().slice();
}

function writeChunk(w: ThriftWriter, leaf: FooterLeaf, c: ChunkInfo): void {
  w.open().i64(2, 0).open(3);
  w.i32(1, leaf.physical);
  w.list(2, T.i32, c.encodings.length);
  for (const e of c.encodings) w.rawI32(e);
  w.list(3, T.binary, leaf.path.length);
  for (const name of leaf.path) w.rawBinary(UTF8.encode(name));
  w.i32(4, c.codec).i64(5, c.values).i64(6, c.rawBytes).i64(7, c.bytes).i64(9, c.dataAt);
  if (c.dictionaryAt !== null) w.i64(11, c.dictionaryAt);
  if (c.statistics !== null) writeStatistics(w, c.statistics);
  w.close().close();
}

function writeStatistics(w: ThriftWriter, s: ChunkStatistics): void {
  w.open(12).i64(3, s.nulls);
  if (s.greatest !== null && s.least !== null) {
    w.binary(5, s.greatest).binary(6, s.least).bool(7, true).bool(8, true);
  }
  w.close();
}

export interface FooterContent {
  /** Encoded SchemaElements, the root first, and how many there are. */
  readonly schema: Uint8Array;
  readonly elements: number;
  readonly leaves: number;
  readonly rows: number;
  readonly rowGroups: readonly Uint8Array[];
  readonly metadata: readonly (readonly [key: string, value: string])[];
  readonly createdBy: string;
}

/** Footer, its length and the magic: the end of the file. */
export function footerBytes(f: FooterContent): Uint8Array {
  const w = new ThriftWriter();
  w.open().i32(1, FORMAT_VERSION);
  w.list(2, T.struct, f.elements).raw(f.schema);
  w.i64(3, f.rows);
  w.list(4, T.struct, f.rowGroups.length);
  for (const group of f.rowGroups) w.raw(group);
  w.list(5, T.struct, f.metadata.length);
  for (const [key, value] of f.metadata) w.open().string(1, key).string(2, value).close();
  w.string(6, f.createdBy);
  // Every leaf has the order of its type: without this readers must not trust the bounds.
  w.list(7, T.struct, f.leaves);
  for (let i = 0; i < f.leaves; i++) w.open().empty(1).close();
  w.close();
  const length = w.length;
  w.raw(Uint8Array.of(length, length >>> 8, length >>> 16, length >>> 24)).raw(MAGIC);
  return w.view().slice();
}

/**
 * The pages of a column chunk, counted by their headers before an engine sees them: they fill the chunk, hold the values
 * that the footer promises, none asks for more memory than allowed, and those with a checksum are what was written.
 */

import type { PlacedChunk } from "./group-file.ts";
import { notParquet, unsupported } from "./read-footer.ts";
import { ThriftDamage, ThriftReader } from "./thrift-reader.ts";

export interface PageLimits {
  /** Of one page, decompressed. */
  readonly maxPageBytes: number;
}

export interface PageParts {
  readonly read: (at: number, bytes: number) => Uint8Array;
  readonly crc32: (bytes: Uint8Array) => number;
}

export const PAGE = { data: 0, index: 1, dictionary: 2, dataV2: 3 } as const;
const UNCOMPRESSED = 0;
/** A header with statistics of long values; most have some 30 bytes. */
const HEADER_BYTES = [256, 64 * 1024, 16 * 1024 * 1024];

export interface PageHeader {
  kind: number;
  rawBytes: number;
  bytes: number;
  crc: number | null;
  values: number;
  /** Of values, of definition and of repetition levels; -1: it does not say. */
  encoding: number;
  definition: number;
  repetition: number;
  headerBytes: number;
}

/** `where`: the column, for messages. Throws files.not_parquet, files.parquet_feature. */
export function walkPages(
  chunk: PlacedChunk,
  where: string,
  name: string,
  limits: PageLimits,
  parts: PageParts,
): void {
  const end = chunk.at + chunk.to - chunk.from;
  let values = 0;
  for (let at = chunk.at; at < end && values < chunk.values; ) {
    const page = headerAt(at, end, where, name, parts);
    const from = at + page.headerBytes;
    checkPage(page, chunk, from, end, where, name, limits);
    if (page.crc !== null && parts.crc32(parts.read(from, page.bytes)) >>> 0 !== page.crc >>> 0)
      throw notParquet(`${where}: a page does not have the checksum that it says`, name);
    if (page.kind === PAGE.data || page.kind === PAGE.dataV2) values += page.values;
    at = from + page.bytes;
  }
  if (values !== chunk.values)
    throw notParquet(`${where}: its pages hold ${values} values, the footer says ${chunk.values}`, name);
}

function checkPage(
  { kind, rawBytes, bytes, values }: PageHeader,
  { codec }: PlacedChunk,
  from: number,
  end: number,
  where: string,
  name: string,
  { maxPageBytes }: PageLimits,
): void {
  if (bytes < 0 || rawBytes < 0 || values < 0 || from + bytes > end)
    throw notParquet(`${where}: a page of ${bytes} bytes ends behind its column`, name);
  if (kind < PAGE.data || kind > PAGE.dataV2) throw notParquet(`${where}: a page of kind ${kind}`, name);
  if (codec === UNCOMPRESSED && bytes !== rawBytes)
    throw notParquet(`${where}: a page of ${bytes} bytes says that it has ${rawBytes}`, name);
  if (rawBytes > maxPageBytes)
    throw unsupported(`${where}: a page of ${rawBytes} bytes, at most ${maxPageBytes} are read`, name);
}

/** The header at `at` of a chunk that ends at `end`. Throws files.not_parquet. */
export function headerAt(
  at: number,
  end: number,
  where: string,
  name: string,
  { read }: Pick<PageParts, "read">,
): PageHeader {
  for (const most of HEADER_BYTES) {
    const bytes = read(at, Math.min(most, end - at));
    try {
      return parseHeader(bytes);
    } catch (e) {
      if (!(e instanceof ThriftDamage)) throw e;
      if (bytes.length === end - at || most === HEADER_BYTES.at(-1))
        throw notParquet(`${where}: the header of a page can't be read: ${e.message}`, name);
    }
  }
  throw notParquet(`${where}: the header of a page has no end`, name);
}

function parseHeader(bytes: Uint8Array): PageHeader {
  const r = new ThriftReader(bytes);
  const h: PageHeader = {
    ...{ kind: -1, rawBytes: -1, bytes: -1, crc: null, values: -1, headerBytes: 0 },
    ...{ encoding: -1, definition: -1, repetition: -1 },
  };
  // The fields of the second version after the first have other meanings: nobody asks for them there.
  const counts = (kind: number) =>
    r.struct((id) => {
      if (id === 1) h.values = r.int();
      else if (kind === PAGE.dataV2) return;
      else if (id === 2) h.encoding = r.int();
      else if (id === 3 && kind === PAGE.data) h.definition = r.int();
      else if (id === 4 && kind === PAGE.data) h.repetition = r.int();
    });
  r.struct((id) => {
    if (id === 1) h.kind = r.int();
    else if (id === 2) h.rawBytes = r.int();
    else if (id === 3) h.bytes = r.int();
    else if (id === 4) h.crc = r.int();
    else if (id === 5) counts(PAGE.data);
    else if (id === 7) counts(PAGE.dictionary);
    else if (id === 8) counts(PAGE.dataV2);
  });
  if (h.kind === PAGE.index) h.values = 0;
  h.headerBytes = r.position;
  return h;
}

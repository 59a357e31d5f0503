/**
 * The pages of a column chunk in the form that raw files have: version 1, levels in runs, zstd or nothing. What is
 * stored otherwise (somebody rewrote the file) is left to an engine that reads everything.
 */
import type { Codecs } from "../../compression/codec.ts";
import { Output } from "../../compression/output.ts";
import { CODEC, ENCODING } from "./page.ts";
import type { ChunkInfo } from "./read-footer.ts";
import { headerAt, PAGE } from "./walk-pages.ts";

/** What cannot be in a page whose checksum is right, unless its writer was wrong. Callers say of which column. */
export class PageDamage extends Error {
  override readonly name = "PageDamage";
}

export interface StoredPage {
  /** Of the bytes as they are stored, in the file. */
  readonly at: number;
  readonly bytes: number;
  readonly rawBytes: number;
  /** Nulls and empty lists included. */
  readonly values: number;
  readonly encoding: number;
}

export interface StoredPages {
  readonly codec: number;
  readonly dictionary: StoredPage | null;
  readonly pages: readonly StoredPage[];
}

/** Of a page; ours end at some 30,000, but where lists are empty. */
const MOST_VALUES = 16 * 1024 * 1024;
/** Of memory for one page, kept from one to the next. */
const KEEP_BYTES = 4 * 1024 * 1024;

export type Inflate = Pick<Codecs, "zstd">;

/** Null: a page of it has another form, or values in none of `encodings`. Throws files.not_parquet. */
export function storedPages(
  file: Uint8Array,
  chunk: Pick<ChunkInfo, "from" | "to" | "values" | "codec">,
  encodings: readonly number[],
): StoredPages | null {
  if (chunk.codec !== CODEC.none && chunk.codec !== CODEC.zstd) return null;
  const read = (at: number, bytes: number) => file.subarray(at, at + bytes);
  const pages: StoredPage[] = [];
  let dictionary: StoredPage | null = null;
  let values = 0;
  for (let at = chunk.from; at < chunk.to && values < chunk.values; ) {
    const h = headerAt(at, chunk.to, "a column", "raw that is read again", { read });
    const from = at + h.headerBytes;
    const page = { at: from, bytes: h.bytes, rawBytes: h.rawBytes, values: h.values, encoding: h.encoding };
    // Memory is taken by their number.
    if (h.values > MOST_VALUES) return null;
    if (h.bytes < 0 || h.rawBytes < 0 || h.values < 0 || from + h.bytes > chunk.to)
      throw new PageDamage("a page ends behind its column");
    if (h.kind === PAGE.dictionary && dictionary === null && pages.length === 0) dictionary = page;
    else if (h.kind !== PAGE.data || !encodings.includes(h.encoding)) return null;
    else if (h.definition !== ENCODING.rle || h.repetition !== ENCODING.rle) return null;
    else {
      pages.push(page);
      values += page.values;
    }
    at = from + h.bytes;
  }
  return { codec: chunk.codec, dictionary, pages };
}

/** Pages of one column, decompressed one at a time into memory that is used again. */
export class PageInflater {
  readonly #inflate: Inflate;
  readonly #out = new Output(0);

  constructor(inflate: Inflate) {
    this.#inflate = inflate;
  }

  /** Gives back what a page of one huge row took. */
  shrink(): void {
    this.#out.shrink(KEEP_BYTES);
  }

  /** A view that lives until the next call. */
  raw(file: Uint8Array, codec: number, page: StoredPage): Uint8Array {
    if (codec === CODEC.none) return file.subarray(page.at, page.at + page.bytes);
    const out = this.#out;
    out.begin(0, page.rawBytes);
    this.#inflate.zstd(file, page.at, page.at + page.bytes, out);
    if (out.end !== page.rawBytes)
      throw new PageDamage(`a page of ${page.rawBytes} bytes turns out to have ${out.end}`);
    return out.bytes.subarray(0, out.end);
  }
}

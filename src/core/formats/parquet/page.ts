/**
 * Pages and column chunks. A page is compressed as soon as it is full; what stays in memory of an open row group is
 * its compressed pages. Data pages are version 1: levels and values in one compressed block, the form that every
 * reader knows. Each header has the CRC-32 of what is stored: a disk that gives back another bit is noticed by whoever
 * reads (recovery, batch jobs, Arrow and parquet-mr where they are told to), and never lands as a value.
 */
import { crc32 as plainCrc32 } from "../../bytes/crc32.ts";
import { type OutQueue, SlabBytes, type SlabPool } from "./slabs.ts";
import { ThriftWriter } from "./thrift.ts";

/** A compressor of whole pages. The bytes at `output` must be a complete frame of the codec. */
export interface PageCodec {
  readonly name: "zstd";
  /** Most bytes that `bytes` can become. */
  bound(bytes: number): number;
  /** Compresses `input` into the start of `output` (at least `bound(input.length)` long); bytes written. */
  compress(input: Uint8Array, output: Uint8Array): number;
}

/** CRC-32 (ISO-HDLC) of bytes[start, end). */
export type PageChecksum = (bytes: Uint8Array, start: number, end: number) => number;

/** parquet.thrift: CompressionCodec, Encoding, PageType. */
export const CODEC = { none: 0, zstd: 6 } as const;
export const ENCODING = {
  plain: 0,
  rle: 3,
  deltaBinaryPacked: 5,
  deltaLengthByteArray: 6,
  rleDictionary: 8,
} as const;
const PAGE_TYPE = { data: 0, dictionary: 2 } as const;

/** Raw bytes at which a page is closed. A single larger row has a page of its own. */
export const PAGE_BYTES = 1024 * 1024;
/** Values at which a page is closed: readers decode page by page. */
export const PAGE_VALUES = 32 * 1024;
/** Scratch above this is let go after the page that needed it. */
const KEEP_BYTES = 4 * 1024 * 1024;

/** What all files of a lane share: the codec, the slabs and two scratch areas. */
export class PageContext {
  readonly codec: PageCodec | null;
  readonly slabs: SlabPool;
  readonly crc32: PageChecksum;
  readonly header = new ThriftWriter();
  #compressed = new Uint8Array(0);
  #assembled = new Uint8Array(0);

  constructor(codec: PageCodec | null, slabs: SlabPool, crc32: PageChecksum = plainCrc32) {
    this.codec = codec;
    this.slabs = slabs;
    this.crc32 = crc32;
  }

  /** Scratch for one page's raw bytes; content is lost at the next call. */
  assemble(bytes: number): Uint8Array {
    if (this.#assembled.length < bytes || this.#assembled.length > Math.max(bytes, KEEP_BYTES)) {
      this.#assembled = new Uint8Array(bytes);
    }
    return this.#assembled;
  }

  /** `raw` as the codec makes it: a view that lives until the next call. */
  compress(raw: Uint8Array, codec: PageCodec): Uint8Array {
    const bound = codec.bound(raw.length);
    if (this.#compressed.length < bound || this.#compressed.length > Math.max(bound, KEEP_BYTES)) {
      this.#compressed = new Uint8Array(bound);
    }
    return this.#compressed.subarray(0, codec.compress(raw, this.#compressed));
  }

  get held(): number {
    return this.#compressed.length + this.#assembled.length + this.slabs.freeBytes;
  }
}

/** Everything a footer says about a column chunk, apart from its schema. */
export interface ChunkInfo {
  readonly codec: number;
  readonly encodings: readonly number[];
  readonly values: number;
  readonly rawBytes: number;
  readonly bytes: number;
  /** Offset in the file of the dictionary page, null if there is none, and of the first data page. */
  readonly dictionaryAt: number | null;
  readonly dataAt: number;
  readonly statistics: ChunkStatistics | null;
}

/** Bounds are PLAIN-encoded values; both null: no bounds are given (which is never wrong). */
export interface ChunkStatistics {
  readonly nulls: number;
  readonly least: Uint8Array | null;
  readonly greatest: Uint8Array | null;
}

/** The pages of one column in the open row group. */
export class ChunkPages {
  readonly #context: PageContext;
  readonly #codec: PageCodec | null;
  readonly #bytes: SlabBytes;
  #values = 0;
  #rawBytes = 0;
  #dictionaryBytes: number | null = null;
  readonly #encodings = new Set<number>([ENCODING.rle]);

  /** `codec` null: the chunk is stored as it is. */
  constructor(context: PageContext, codec: PageCodec | null) {
    this.#context = context;
    this.#codec = codec;
    this.#bytes = new SlabBytes(context.slabs);
  }

  get held(): number {
    return this.#bytes.held;
  }

  get length(): number {
    return this.#bytes.length;
  }

  /** `raw`: levels, then values in `encoding`. `values` counts nulls and empty lists too, as the format wants. */
  data(raw: Uint8Array, values: number, encoding: number): void {
    const stored = this.#store(raw);
    const h = this.#header(PAGE_TYPE.data, raw.length, stored);
    h.open(5).i32(1, values).i32(2, encoding).i32(3, ENCODING.rle).i32(4, ENCODING.rle).close().close();
    this.#add(stored, raw.length);
    this.#values += values;
    this.#encodings.add(encoding);
  }

  /** Must come before the data pages. `raw`: PLAIN values. */
  dictionary(raw: Uint8Array, values: number): void {
    const stored = this.#store(raw);
    const h = this.#header(PAGE_TYPE.dictionary, raw.length, stored);
    h.open(7).i32(1, values).i32(2, ENCODING.plain).close().close();
    this.#add(stored, raw.length);
    this.#dictionaryBytes = this.#bytes.length;
    this.#encodings.add(ENCODING.plain);
  }

  /** Moves the chunk to the end of the file and forgets it. */
  finish(out: OutQueue, statistics: ChunkStatistics | null): ChunkInfo {
    const at = out.position;
    const info: ChunkInfo = {
      codec: this.#codec === null ? CODEC.none : CODEC[this.#codec.name],
      encodings: [...this.#encodings].sort((a, b) => a - b),
      values: this.#values,
      rawBytes: this.#rawBytes,
      bytes: this.#bytes.length,
      dictionaryAt: this.#dictionaryBytes === null ? null : at,
      dataAt: at + (this.#dictionaryBytes ?? 0),
      statistics,
    };
    out.adopt(this.#bytes);
    this.#reset();
    return info;
  }

  drop(): void {
    this.#bytes.drop();
    this.#reset();
  }

  #reset(): void {
    this.#values = 0;
    this.#rawBytes = 0;
    this.#dictionaryBytes = null;
    this.#encodings.clear();
    this.#encodings.add(ENCODING.rle);
  }

  #store(raw: Uint8Array): Uint8Array {
    return this.#codec === null ? raw : this.#context.compress(raw, this.#codec);
  }

  #header(type: number, rawBytes: number, stored: Uint8Array): ThriftWriter {
    const h = this.#context.header;
    h.reset();
    const crc = this.#context.crc32(stored, 0, stored.length) | 0;
    return h.open().i32(1, type).i32(2, rawBytes).i32(3, stored.length).i32(4, crc);
  }

  #add(stored: Uint8Array, rawBytes: number): void {
    const header = this.#context.header.view();
    this.#bytes.append(header);
    this.#bytes.append(stored);
    this.#rawBytes += header.length + rawBytes;
  }
}

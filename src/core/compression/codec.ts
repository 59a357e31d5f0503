/**
 * The codec port: block codecs and checksums as functions over regions of typed arrays, so that no view is made
 * per block. The adapter gives native ones (self-checked at start) with the pure ones below as fallback; the
 * frame formats over them (`lz4-frame.ts`, `snappy-frame.ts`) do not know the difference.
 *
 * A block decoder returns the number of bytes written, or -1 for bytes that are no such block or do not fit.
 */
import type { Output } from "./output.ts";

export interface Codecs {
  /** CRC-32 and CRC-32C of bytes[start, end), uint32. */
  crc32(bytes: Uint8Array, start: number, end: number): number;
  crc32c(bytes: Uint8Array, start: number, end: number): number;
  /** src[start, end) to dst[at, limit). Matches may reach back to dst[window] (linked blocks); window <= at. */
  lz4Block(
    src: Uint8Array,
    start: number,
    end: number,
    dst: Uint8Array,
    at: number,
    limit: number,
    window: number,
  ): number;
  /** src[start, end) to dst[at, limit). */
  snappyBlock(
    src: Uint8Array,
    start: number,
    end: number,
    dst: Uint8Array,
    at: number,
    limit: number,
  ): number;
  /** All zstd frames of src[start, end), with or without a content size. Throws compression.corrupt or .limit. */
  zstd(src: Uint8Array, start: number, end: number, out: Output): void;
  /** All gzip members of src[start, end). Throws compression.corrupt or .limit. */
  gzip(src: Uint8Array, start: number, end: number, out: Output): void;
  /** The zlib stream (RFC 1950) of src[start, end). Throws compression.corrupt or .limit. */
  zlib(src: Uint8Array, start: number, end: number, out: Output): void;
  /** The raw deflate stream (RFC 1951) of src[start, end). Throws compression.corrupt or .limit. */
  inflate(src: Uint8Array, start: number, end: number, out: Output): void;
  /** Compress `src` into `dst`, which holds at least the bound; return the compressed size. */
  zstdCompress(src: Uint8Array, dst: Uint8Array, level: number): number;
  lz4Compress(src: Uint8Array, dst: Uint8Array): number;
  snappyCompress(src: Uint8Array, dst: Uint8Array): number;
  gzipCompress(src: Uint8Array, dst: Uint8Array, level: number): number;
}

/** Largest compressed size of `n` bytes: ZSTD_COMPRESSBOUND of zstd.h. */
export function zstdBound(n: number): number {
  const margin = n < 131072 ? (131072 - n) >>> 11 : 0;
  return n + Math.floor(n / 256) + margin;
}

/** LZ4_COMPRESSBOUND of lz4.h. */
export function lz4Bound(n: number): number {
  return n + Math.floor(n / 255) + 16;
}

/** snappy::MaxCompressedLength. */
export function snappyBound(n: number): number {
  return 32 + n + Math.floor(n / 6);
}

/**
 * Codecs without libduckdb: LZ4 and Snappy in plain JS, gzip and zstd by the runtime's zlib, always with a cap on
 * the output. Gzip is never native: nothing that is linked in does it better.
 */
import {
  constants,
  gunzipSync,
  gzipSync,
  inflateRawSync,
  inflateSync,
  crc32 as zlibCrc32,
  zstdCompressSync,
  zstdDecompressSync,
} from "node:zlib";
import { crc32c, crc32 as plainCrc32 } from "../../core/bytes/crc32.ts";
import type { Codecs } from "../../core/compression/codec.ts";
import { lz4BlockDecode, lz4BlockStore } from "../../core/compression/lz4-block.ts";
import type { Output } from "../../core/compression/output.ts";
import { snappyBlockDecode, snappyBlockStore } from "../../core/compression/snappy-block.ts";
import { checkZstdFrames } from "../../core/compression/zstd-frame.ts";
import { Failure } from "../../core/failure/failure.ts";

const CHUNK_BYTES = 1 << 16;
/** Below this a call costs more than the plain loop. */
const ZLIB_CRC_FROM_BYTES = 128;

/** Runs one capped call of zlib and tells "too large" from "not readable". */
function capped(name: string, out: Output, run: (maxOutputLength: number) => Uint8Array): void {
  let bytes: Uint8Array;
  try {
    // zlib refuses a cap of 0; one byte over an exhausted allowance is then refused by append.
    bytes = run(Math.max(out.allowance, 1));
  } catch (e) {
    if (e instanceof Error && "code" in e && e.code === "ERR_BUFFER_TOO_LARGE") throw out.tooLarge();
    const why = e instanceof Error ? e.message : String(e);
    throw new Failure("compression.corrupt", `${name}: ${why}`, { cause: e });
  }
  out.append(bytes);
}

/** As `Codecs.gzip`. */
export function gunzip(src: Uint8Array, start: number, end: number, out: Output): void {
  capped("gzip", out, (maxOutputLength) =>
    gunzipSync(src.subarray(start, end), { maxOutputLength, chunkSize: CHUNK_BYTES }),
  );
}

/** As `Codecs.zlib`. */
export function zlib(src: Uint8Array, start: number, end: number, out: Output): void {
  capped("zlib", out, (maxOutputLength) =>
    inflateSync(src.subarray(start, end), { maxOutputLength, chunkSize: CHUNK_BYTES }),
  );
}

/** As `Codecs.inflate`. */
function inflate(src: Uint8Array, start: number, end: number, out: Output): void {
  capped("deflate", out, (maxOutputLength) =>
    inflateRawSync(src.subarray(start, end), { maxOutputLength, chunkSize: CHUNK_BYTES }),
  );
}

function zstd(src: Uint8Array, start: number, end: number, out: Output): void {
  // The runtime's decoder gives out what it has of a cut frame and calls that a success.
  checkZstdFrames(src, start, end);
  capped("zstd", out, (maxOutputLength) =>
    zstdDecompressSync(src.subarray(start, end), { maxOutputLength, chunkSize: CHUNK_BYTES }),
  );
}

function zstdCompress(src: Uint8Array, dst: Uint8Array, level: number): number {
  const bytes = zstdCompressSync(src, { params: { [constants.ZSTD_c_compressionLevel]: level } });
  dst.set(bytes);
  return bytes.length;
}

function gzipCompress(src: Uint8Array, dst: Uint8Array, level: number): number {
  const bytes = gzipSync(src, { level });
  dst.set(bytes);
  return bytes.length;
}

/** CRC-32 of bytes[start, end), by zlib where that is worth the call. */
export function fastCrc32(bytes: Uint8Array, start: number, end: number): number {
  if (end - start < ZLIB_CRC_FROM_BYTES) return plainCrc32(bytes, start, end);
  return zlibCrc32(bytes.subarray(start, end));
}

export const fallbackCodecs: Codecs = {
  crc32: fastCrc32,
  crc32c,
  lz4Block: lz4BlockDecode,
  snappyBlock: snappyBlockDecode,
  zstd,
  gzip: gunzip,
  zlib,
  inflate,
  zstdCompress,
  lz4Compress: lz4BlockStore,
  snappyCompress: snappyBlockStore,
  gzipCompress,
};

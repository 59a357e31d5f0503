/** One door to compressing a record batch: the frame that Kafka's readers expect around each codec's blocks. */
import type { Codecs } from "./codec.ts";
import { snappyBound, zstdBound } from "./codec.ts";
import type { CodecName } from "./decompress.ts";
import { lz4FrameBound, writeLz4Frame } from "./lz4-frame-writer.ts";

/** Gzip is asked for its whole output at once; others write into room of this size at most. */
export function compressedBound(name: CodecName, n: number): number {
  switch (name) {
    case "snappy":
      return snappyBound(n);
    case "lz4":
      return lz4FrameBound(n);
    case "zstd":
      return zstdBound(n);
    // Stored blocks: 5 bytes for each 16 KiB, and header and trailer.
    case "gzip":
      return n + 5 * (Math.floor(n / 16383) + 1) + 32;
  }
}

/**
 * Compresses `src` into `dst` from `at` on, where there must be room for the bound. Answers how many bytes it wrote.
 * Snappy is one bare block, as librdkafka writes it: every reader takes it, and it needs no header of its own.
 */
export function compress(
  codecs: Codecs,
  name: CodecName,
  src: Uint8Array,
  dst: Uint8Array,
  at: number,
  level: number,
): number {
  switch (name) {
    case "snappy":
      return codecs.snappyCompress(src, dst.subarray(at));
    case "lz4":
      return writeLz4Frame(codecs, src, dst, at);
    case "zstd":
      return codecs.zstdCompress(src, dst.subarray(at), level);
    case "gzip":
      return codecs.gzipCompress(src, dst.subarray(at), level);
  }
}

/** One door to all codecs of a record batch. */
import type { Codecs } from "./codec.ts";
import { lz4Frames } from "./lz4-frame.ts";
import type { Output } from "./output.ts";
import { snappyFrames } from "./snappy-frame.ts";

export type CodecName = "gzip" | "snappy" | "lz4" | "zstd";

/**
 * Decompresses src[start, end) to `out`, which holds the cap. Throws a Failure with compression.corrupt,
 * compression.limit, bytes.short, bytes.limit or bytes.invalid; `out` may then hold a part.
 */
export function decompress(
  codecs: Codecs,
  name: CodecName,
  src: Uint8Array,
  start: number,
  end: number,
  out: Output,
  ignoreLz4HeaderChecksum = false,
): void {
  switch (name) {
    case "gzip":
      codecs.gzip(src, start, end, out);
      break;
    case "snappy":
      snappyFrames(codecs, src, start, end, out);
      break;
    case "lz4":
      lz4Frames(codecs, src, start, end, out, { ignoreHeaderChecksum: ignoreLz4HeaderChecksum });
      break;
    case "zstd":
      codecs.zstd(src, start, end, out);
      break;
  }
}

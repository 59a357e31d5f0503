/** Writes LZ4 frames: independent blocks of 64 KiB, no checksums but the header's. See lz4-frame.ts for the layout. */
import { type Codecs, lz4Bound } from "./codec.ts";
import { xxh32 } from "./xxh32.ts";

const BLOCK_BYTES = 65536;
/** Magic, FLG, BD, HC. */
const HEADER_BYTES = 7;
const END_BYTES = 4;
const SIZE_BYTES = 4;
/** Version 1, independent blocks; blocks of at most 64 KiB, the size that Kafka's own writer takes. */
const FLAGS = 0x60;
const BLOCK_CODE = 0x40;
const STORED = 0x80;

export function lz4FrameBound(n: number): number {
  const blocks = Math.ceil(n / BLOCK_BYTES);
  return HEADER_BYTES + END_BYTES + blocks * (SIZE_BYTES + lz4Bound(BLOCK_BYTES));
}

/** One frame of `src` at dst[at]; answers its size. */
export function writeLz4Frame(codecs: Codecs, src: Uint8Array, dst: Uint8Array, at: number): number {
  let d = at;
  dst[d++] = 0x04;
  dst[d++] = 0x22;
  dst[d++] = 0x4d;
  dst[d++] = 0x18;
  dst[d++] = FLAGS;
  dst[d++] = BLOCK_CODE;
  dst[d] = (xxh32(dst, d - 2, d) >>> 8) & 0xff;
  d++;
  for (let from = 0; from < src.length; from += BLOCK_BYTES) {
    const block = src.subarray(from, Math.min(from + BLOCK_BYTES, src.length));
    const n = codecs.lz4Compress(block, dst.subarray(d + SIZE_BYTES));
    const stored = n >= block.length;
    if (stored) dst.set(block, d + SIZE_BYTES);
    const size = stored ? block.length : n;
    dst[d] = size & 0xff;
    dst[d + 1] = (size >>> 8) & 0xff;
    dst[d + 2] = (size >>> 16) & 0xff;
    dst[d + 3] = stored ? STORED : 0;
    d += SIZE_BYTES + size;
  }
  dst.fill(0, d, d + END_BYTES);
  return d + END_BYTES - at;
}

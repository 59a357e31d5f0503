/**
 * Compressors for the batches that tests and the test broker make. Block formats that the runtime has no encoder for
 * (snappy, LZ4) are written here, with a plain greedy matcher: they share nothing with the decoders under test.
 */
import { gzipSync, zstdCompressSync } from "node:zlib";

export type BatchCodec = "none" | "gzip" | "snappy" | "lz4" | "zstd";

/** Bits 0 to 2 of a batch's attributes. */
export const CODEC_BITS: Record<BatchCodec, number> = { none: 0, gzip: 1, snappy: 2, lz4: 3, zstd: 4 };

export function compress(codec: BatchCodec, bytes: Uint8Array): Uint8Array {
  switch (codec) {
    case "none":
      return bytes;
    case "gzip":
      return gzipSync(bytes, { level: 1 });
    case "zstd":
      return zstdCompressSync(bytes);
    case "snappy":
      return snappyBlock(bytes);
    case "lz4":
      return lz4Frame(bytes);
  }
}

/** Calls back for every stretch: `literals` bytes from `at`, then a match of `length` bytes `distance` back (0: none). */
type OnStretch = (at: number, literals: number, length: number, distance: number) => void;

const HASH_BITS = 14;
const table = new Int32Array(1 << HASH_BITS);

function matches(src: Uint8Array, from: number, to: number, stretch: OnStretch): void {
  table.fill(-1);
  const view = new DataView(src.buffer, src.byteOffset, src.byteLength);
  // LZ4 ends a block with at least 5 literals and starts no match in its last 12 bytes; harmless for snappy.
  const lastStart = to - 12;
  let literalsFrom = from;
  let at = from;
  while (at < lastStart) {
    const word = view.getUint32(at, true);
    const slot = Math.imul(word, 2654435761) >>> (32 - HASH_BITS);
    const before = table[slot]!;
    table[slot] = at;
    if (before < 0 || at - before > 65535 || view.getUint32(before, true) !== word) {
      at++;
      continue;
    }
    let length = 4;
    while (at + length < to - 5 && src[before + length] === src[at + length]) length++;
    stretch(literalsFrom, at - literalsFrom, length, at - before);
    at += length;
    literalsFrom = at;
  }
  stretch(literalsFrom, to - literalsFrom, 0, 0);
}

/** Raw snappy: uvarint of the size, then literals and copies with 2-byte distances. As librdkafka writes it. */
export function snappyBlock(src: Uint8Array): Uint8Array {
  const out = new Uint8Array(32 + src.length + Math.ceil(src.length / 6));
  let n = 0;
  let size = src.length;
  while (size > 127) {
    out[n++] = size | 128;
    size >>>= 7;
  }
  out[n++] = size;
  matches(src, 0, src.length, (at, literals, length, distance) => {
    for (let done = 0; done < literals; ) {
      const part = Math.min(literals - done, 65536);
      // Tag 61: a literal whose length - 1 follows in 2 bytes.
      out[n++] = 61 << 2;
      out[n++] = part - 1;
      out[n++] = (part - 1) >> 8;
      out.set(src.subarray(at + done, at + done + part), n);
      n += part;
      done += part;
    }
    for (let left = length; left > 0; ) {
      const part = Math.min(left, 64);
      out[n++] = ((part - 1) << 2) | 2;
      out[n++] = distance;
      out[n++] = distance >> 8;
      left -= part;
    }
  });
  return out.slice(0, n);
}

/** The frame that Java clients put around snappy: magic, two versions, then sized blocks of at most 32 KiB each. */
export function snappyXerial(src: Uint8Array): Uint8Array {
  const parts: Uint8Array[] = [
    Uint8Array.of(0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0, 0, 0, 0, 1, 0, 0, 0, 1),
  ];
  for (let at = 0; at < src.length; at += 32768) {
    const block = snappyBlock(src.subarray(at, at + 32768));
    const size = new Uint8Array(4);
    new DataView(size.buffer).setInt32(0, block.length);
    parts.push(size, block);
  }
  return Buffer.concat(parts);
}

/** One LZ4 block: token, literals, distance, longer lengths in bytes of 255. */
function lz4Block(src: Uint8Array, from: number, to: number): Uint8Array {
  const out = new Uint8Array(16 + (to - from) + Math.ceil((to - from) / 200));
  let n = 0;
  const longer = (length: number) => {
    let left = length - 15;
    while (left >= 255) {
      out[n++] = 255;
      left -= 255;
    }
    out[n++] = left;
  };
  matches(src, from, to, (at, literals, length, distance) => {
    const extra = length === 0 ? 0 : length - 4;
    out[n++] = (Math.min(literals, 15) << 4) | Math.min(extra, 15);
    if (literals >= 15) longer(literals);
    out.set(src.subarray(at, at + literals), n);
    n += literals;
    if (length === 0) return;
    out[n++] = distance;
    out[n++] = distance >> 8;
    if (extra >= 15) longer(extra);
  });
  return out.subarray(0, n);
}

const LZ4_BLOCK_BYTES = 65536;

/** LZ4 frame: version 1, independent blocks of 64 KiB, no checksums of content: what Kafka's clients write. */
export function lz4Frame(src: Uint8Array): Uint8Array {
  const descriptor = Uint8Array.of(0x60, 0x40);
  const parts: Uint8Array[] = [
    Uint8Array.of(0x04, 0x22, 0x4d, 0x18),
    descriptor,
    Uint8Array.of((xxh32Small(descriptor) >>> 8) & 0xff),
  ];
  for (let at = 0; at < src.length; at += LZ4_BLOCK_BYTES) {
    const end = Math.min(at + LZ4_BLOCK_BYTES, src.length);
    const block = lz4Block(src, at, end);
    const stored = block.length >= end - at;
    const size = new Uint8Array(4);
    new DataView(size.buffer).setUint32(0, stored ? (end - at) | 0x80000000 : block.length, true);
    parts.push(size, stored ? src.subarray(at, end) : block);
  }
  parts.push(new Uint8Array(4));
  return Buffer.concat(parts);
}

/** xxHash32 with seed 0 of fewer than 4 bytes: enough for a frame descriptor of two. */
function xxh32Small(bytes: Uint8Array): number {
  let h = (0x165667b1 + bytes.length) | 0;
  for (const byte of bytes) {
    h = (h + Math.imul(byte, 0x165667b1)) | 0;
    h = Math.imul((h << 11) | (h >>> 21), 0x9e3779b1);
  }
  h = Math.imul(h ^ (h >>> 15), 0x85ebca77);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae3d);
  return (h ^ (h >>> 16)) >>> 0;
}

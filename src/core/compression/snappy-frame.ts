/**
 * Snappy as Kafka carries it. Java clients write the framing of snappy-java:
 *   0x82 'SNAPPY' 0x00 | version int32 | compatible int32 | blocks: length int32 | bare snappy block
 * and librdkafka and others one bare block. Some writers put the two version numbers in the wrong byte order, so
 * only the magic is looked at.
 */
import { ByteReader } from "../bytes/reader.ts";
import { Failure } from "../failure/failure.ts";
import type { Codecs } from "./codec.ts";
import type { Output } from "./output.ts";
import { snappyLength } from "./snappy-block.ts";

const MAGIC = [0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0x00] as const;
const VERSION_BYTES = 8;

function corrupt(message: string): Failure {
  return new Failure("compression.corrupt", `snappy: ${message}`);
}

function isFramed(src: Uint8Array, start: number, end: number): boolean {
  return end - start >= MAGIC.length && MAGIC.every((byte, i) => src[start + i] === byte);
}

/** Decompresses src[start, end), framed or bare. Throws compression.corrupt, compression.limit or bytes.short. */
export function snappyFrames(codecs: Codecs, src: Uint8Array, start: number, end: number, out: Output): void {
  if (!isFramed(src, start, end)) {
    block(codecs, src, start, end, out);
    return;
  }
  const r = new ByteReader(src, start, end, "snappy frame");
  r.skip(MAGIC.length + VERSION_BYTES);
  while (r.remaining > 0) {
    const n = r.i32();
    if (n < 0) throw corrupt(`a block of ${n} bytes`);
    const at = r.pos;
    r.skip(n);
    block(codecs, src, at, at + n, out);
  }
}

function block(codecs: Codecs, src: Uint8Array, start: number, end: number, out: Output): void {
  const length = snappyLength(src, start, end);
  if (length < 0) throw corrupt(`the length of the block at ${start} cannot be true`);
  out.reserve(length);
  const at = out.end;
  if (codecs.snappyBlock(src, start, end, out.bytes, at, at + length) !== length) {
    throw corrupt(`block at ${start} cannot be read`);
  }
  out.end = at + length;
}

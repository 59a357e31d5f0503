/**
 * Walks zstd frames by their headers (RFC 8878, 3.1) without decompressing. A fallback decoder that gives out a
 * cut frame as if it were whole is checked with this first.
 *
 *   magic 0xFD2FB528 | descriptor | window (0-1) | dictionary id (0-4) | content size (0-8) | blocks | checksum (0, 4)
 *   block: 3 bytes little endian: bit 0 last, bits 1-2 type (0 raw, 1 run, 2 compressed), rest size
 */
import { ByteReader } from "../bytes/reader.ts";
import { Failure } from "../failure/failure.ts";

const MAGIC = 0xfd2fb528;
const SKIPPABLE = 0x184d2a50;
const DICTIONARY_BYTES = [0, 1, 2, 4] as const;
const CONTENT_SIZE_BYTES = [0, 2, 4, 8] as const;

function corrupt(message: string): Failure {
  return new Failure("compression.corrupt", `zstd: ${message}`);
}

/** Throws compression.corrupt or bytes.short unless src[start, end) is one or more whole frames. */
export function checkZstdFrames(src: Uint8Array, start: number, end: number): void {
  const r = new ByteReader(src, start, end, "zstd frame");
  if (r.remaining === 0) throw corrupt("no frame");
  while (r.remaining > 0) {
    const magic = r.u32le();
    if ((magic & ~15) === SKIPPABLE) skippable(r);
    else if (magic === MAGIC) frame(r);
    else throw corrupt(`0x${magic.toString(16)} is no frame`);
  }
}

function skippable(r: ByteReader): void {
  const n = r.u32le();
  if (n > r.remaining) throw corrupt(`a skippable frame of ${n} bytes with ${r.remaining} left`);
  r.skip(n);
}

function frame(r: ByteReader): void {
  const descriptor = r.u8();
  const singleSegment = (descriptor & 32) !== 0;
  const sizeCode = descriptor >>> 6;
  const sizeBytes = singleSegment && sizeCode === 0 ? 1 : CONTENT_SIZE_BYTES[sizeCode]!;
  r.skip((singleSegment ? 0 : 1) + DICTIONARY_BYTES[descriptor & 3]! + sizeBytes);
  for (let last = false; !last; ) {
    const header = r.u8() | (r.u8() << 8) | (r.u8() << 16);
    last = (header & 1) === 1;
    const type = (header >>> 1) & 3;
    if (type === 3) throw corrupt("a block of a reserved type");
    r.skip(type === 1 ? 1 : header >>> 3);
  }
  if ((descriptor & 4) !== 0) r.skip(4);
}

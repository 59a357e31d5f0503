/**
 * LZ4 frames (lz4_Frame_format.md) over a block codec:
 *   magic 0x184D2204 | FLG | BD | content size (8, if FLG) | dictionary id (4, if FLG) | HC
 *   | blocks: size (4, high bit = stored) | bytes | checksum (4, if FLG) | ... | 0 | content checksum (4, if FLG)
 * Frames may follow each other, and skippable frames may stand between them.
 */
import { ByteReader } from "../bytes/reader.ts";
import { Failure } from "../failure/failure.ts";
import type { Codecs } from "./codec.ts";
import type { Output } from "./output.ts";
import { xxh32 } from "./xxh32.ts";

const MAGIC = 0x184d2204;
const SKIPPABLE = 0x184d2a50;
/** Matches reach back this far. */
const WINDOW_BYTES = 65536;
/** One byte of input gives at most 255 of output. */
const MAX_RATIO = 255;

export interface Lz4FrameOptions {
  /**
   * Kafka's magic 0 computed the descriptor checksum over the magic number too (KAFKA-3160): readers ignore it
   * there. Everywhere else it must be right.
   */
  readonly ignoreHeaderChecksum: boolean;
}

interface Descriptor {
  readonly independent: boolean;
  readonly blockChecksum: boolean;
  readonly contentChecksum: boolean;
  readonly contentSize: bigint | null;
  readonly blockMax: number;
}

function corrupt(message: string): Failure {
  return new Failure("compression.corrupt", `lz4: ${message}`);
}

/** Decompresses all frames of src[start, end). Throws compression.corrupt, compression.limit or bytes.short. */
export function lz4Frames(
  codecs: Codecs,
  src: Uint8Array,
  start: number,
  end: number,
  out: Output,
  options: Lz4FrameOptions,
): void {
  const r = new ByteReader(src, start, end, "lz4 frame");
  if (r.remaining === 0) throw corrupt("no frame");
  while (r.remaining > 0) {
    const magic = r.u32le();
    if ((magic & ~15) === SKIPPABLE) r.skip(skippedBytes(r));
    else if (magic === MAGIC) frame(codecs, r, out, options);
    else throw corrupt(`0x${magic.toString(16)} is no frame`);
  }
}

function skippedBytes(r: ByteReader): number {
  const n = r.u32le();
  if (n > r.remaining) throw corrupt(`a skippable frame of ${n} bytes with ${r.remaining} left`);
  return n;
}

function descriptor(r: ByteReader, options: Lz4FrameOptions): Descriptor {
  const start = r.pos;
  const flags = r.u8();
  const block = r.u8();
  if (flags >>> 6 !== 1) throw corrupt(`frame version ${flags >>> 6}`);
  if ((flags & 1) === 1) throw corrupt("a dictionary is needed and there is none");
  const code = (block >>> 4) & 7;
  if (code < 4) throw corrupt(`block size code ${code}`);
  let contentSize: bigint | null = null;
  if ((flags & 8) !== 0) {
    const low = r.u32le();
    contentSize = (BigInt(r.u32le()) << 32n) | BigInt(low);
  }
  const expected = (xxh32(r.bytes, start, r.pos) >>> 8) & 0xff;
  const seen = r.u8();
  if (!options.ignoreHeaderChecksum && seen !== expected) throw corrupt("descriptor checksum is wrong");
  return {
    independent: (flags & 32) !== 0,
    blockChecksum: (flags & 16) !== 0,
    contentChecksum: (flags & 4) !== 0,
    contentSize,
    // 4: 64 KiB, 5: 256 KiB, 6: 1 MiB, 7: 4 MiB
    blockMax: 1 << (8 + 2 * code),
  };
}

function frame(codecs: Codecs, r: ByteReader, out: Output, options: Lz4FrameOptions): void {
  const d = descriptor(r, options);
  const begin = out.end;
  for (let size = r.u32le(); size !== 0; size = r.u32le()) {
    const stored = size >= 0x80000000;
    const bytes = stored ? size - 0x80000000 : size;
    if (bytes > d.blockMax) throw corrupt(`a block of ${bytes} bytes where ${d.blockMax} are allowed`);
    const at = r.pos;
    r.skip(bytes);
    if (d.blockChecksum && r.u32le() !== xxh32(r.bytes, at, at + bytes))
      throw corrupt("block checksum is wrong");
    if (stored) out.append(r.bytes.subarray(at, at + bytes));
    else block(codecs, r.bytes, at, at + bytes, out, d, begin);
  }
  if (d.contentSize !== null && BigInt(out.end - begin) !== d.contentSize) {
    throw corrupt(`content of ${out.end - begin} bytes where ${d.contentSize} are declared`);
  }
  if (d.contentChecksum && r.u32le() !== xxh32(out.bytes, begin, out.end)) {
    throw corrupt("content checksum is wrong");
  }
}

function block(
  codecs: Codecs,
  src: Uint8Array,
  start: number,
  end: number,
  out: Output,
  d: Descriptor,
  frameBegin: number,
): void {
  const most = Math.min(d.blockMax, (end - start) * MAX_RATIO);
  // A block near the cap may still fit though the most it could give does not.
  const capped = most > out.allowance;
  out.reserve(capped ? out.allowance : most);
  const at = out.end;
  const window = d.independent ? at : Math.max(frameBegin, at - WINDOW_BYTES);
  const n = codecs.lz4Block(src, start, end, out.bytes, at, at + Math.min(most, out.allowance), window);
  if (n < 0) throw capped ? out.tooLarge() : corrupt(`block at ${start} cannot be read`);
  out.end = at + n;
}

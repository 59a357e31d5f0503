/**
 * Snappy blocks in plain JS: the fallback where the native codec is missing, and the judge of its self-check.
 *
 * A block is the decompressed length as a uvarint, then elements (format_description.txt of snappy): the low two
 * bits of a tag say literal (0) or copy with a 1, 2 or 4 byte offset (1, 2, 3).
 */

/** No element gives more than 64 bytes for its two or more, so a larger ratio is a lie about the length. */
const MAX_RATIO = 32;

/**
 * Declared decompressed length of the block src[start, end), or -1 if there is none or the bytes cannot give it.
 * What it returns is safe to allocate, within the caller's cap.
 */
export function snappyLength(src: Uint8Array, start: number, end: number): number {
  let n = 0;
  for (let i = 0; i < 5 && start + i < end; i++) {
    const b = src[start + i]!;
    n += (b & 0x7f) * 2 ** (7 * i);
    if (b < 0x80) return n <= 0xffffffff && n <= (end - start) * MAX_RATIO ? n : -1;
  }
  return -1;
}

function headerBytes(src: Uint8Array, start: number): number {
  let p = start;
  while (src[p]! >= 0x80) p++;
  return p + 1 - start;
}

/** As `Codecs.snappyBlock`. */
export function snappyBlockDecode(
  src: Uint8Array,
  start: number,
  end: number,
  dst: Uint8Array,
  at: number,
  limit: number,
): number {
  const length = snappyLength(src, start, end);
  if (length < 0 || length > limit - at) return -1;
  const stop = at + length;
  let p = start + headerBytes(src, start);
  let d = at;
  while (p < end) {
    const tag = src[p]!;
    const argument = argumentBytes(tag);
    if (argument > end - p - 1) return -1;
    const value = little(src, p + 1, argument);
    p += 1 + argument;
    const n = elementLength(tag, value);
    if (n > stop - d) return -1;
    if ((tag & 3) === 0) {
      if (n > end - p) return -1;
      dst.set(src.subarray(p, p + n), d);
      p += n;
    } else {
      const distance = (tag & 3) === 1 ? ((tag >>> 5) << 8) | value : value;
      if (distance === 0 || distance > d - at) return -1;
      repeat(dst, d, distance, n);
    }
    d += n;
  }
  return d === stop ? length : -1;
}

/** Bytes behind a tag: the length of a long literal, or the offset of a copy. */
function argumentBytes(tag: number): number {
  const kind = tag & 3;
  if (kind === 0) return Math.max((tag >>> 2) - 59, 0);
  return kind === 3 ? 4 : kind;
}

/** Bytes that an element gives. `value` is its argument. */
function elementLength(tag: number, value: number): number {
  const high = tag >>> 2;
  if ((tag & 3) === 0) return (high < 60 ? high : value) + 1;
  return (tag & 3) === 1 ? (high & 7) + 4 : high + 1;
}

/** Copies `n` bytes from `distance` before `d`; the ranges overlap on purpose. */
function repeat(dst: Uint8Array, d: number, distance: number, n: number): void {
  for (const q = d + n; d < q; d++) dst[d] = dst[d - distance]!;
}

/** Little endian unsigned integer of 1 to 4 bytes. */
function little(src: Uint8Array, p: number, bytes: number): number {
  let n = 0;
  for (let i = 0; i < bytes; i++) n += src[p + i]! * 2 ** (8 * i);
  return n;
}

const LONGEST_LITERAL = 65536;

/** As `Codecs.snappyCompress`: a valid block of literals only. Correct, not small. */
export function snappyBlockStore(src: Uint8Array, dst: Uint8Array): number {
  let d = 0;
  let n = src.length;
  for (; n > 0x7f; n = Math.floor(n / 128)) dst[d++] = (n & 0x7f) | 0x80;
  dst[d++] = n;
  for (let p = 0; p < src.length; p += LONGEST_LITERAL) {
    const piece = src.subarray(p, p + LONGEST_LITERAL);
    const last = piece.length - 1;
    dst[d++] = 61 << 2;
    dst[d++] = last & 0xff;
    dst[d++] = last >>> 8;
    dst.set(piece, d);
    d += piece.length;
  }
  return d;
}

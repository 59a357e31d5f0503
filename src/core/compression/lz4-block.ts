/**
 * LZ4 blocks in plain JS: the fallback where the native codec is missing, and the judge of its self-check.
 *
 * A block is a row of sequences (lz4_Block_format.md):
 *   token (4 bit literal length, 4 bit match length - 4) | length bytes while 255 | literals
 *   | offset (2 bytes little endian) | length bytes while 255
 * and ends after the literals of its last sequence.
 */

const MIN_MATCH = 4;

/** As `Codecs.lz4Block`. */
export function lz4BlockDecode(
  src: Uint8Array,
  start: number,
  end: number,
  dst: Uint8Array,
  at: number,
  limit: number,
  window: number,
): number {
  let p = start;
  let d = at;
  while (p < end) {
    const token = src[p++]!;
    let literals = token >>> 4;
    if (literals === 15) {
      const more = extra(src, p, end);
      if (more < 0) return -1;
      literals += more;
      p += extraBytes(more);
    }
    if (literals > end - p || literals > limit - d) return -1;
    for (const stop = p + literals; p < stop; ) dst[d++] = src[p++]!;
    if (p === end) return d - at;
    if (end - p < 2) return -1;
    const distance = src[p]! | (src[p + 1]! << 8);
    p += 2;
    let match = (token & 15) + MIN_MATCH;
    if ((token & 15) === 15) {
      const more = extra(src, p, end);
      if (more < 0) return -1;
      match += more;
      p += extraBytes(more);
    }
    if (distance === 0 || distance > d - window || match > limit - d) return -1;
    for (const stop = d + match; d < stop; d++) dst[d] = dst[d - distance]!;
  }
  // Not even an empty block may end anywhere but behind literals; an empty input is no block.
  return -1;
}

/** Sum of the length bytes at `p`: 255s and one that is smaller. -1 if they run out. */
function extra(src: Uint8Array, p: number, end: number): number {
  let sum = 0;
  for (; p < end; p++) {
    const b = src[p]!;
    sum += b;
    if (b !== 255) return sum;
  }
  return -1;
}

/** How many length bytes stand for `sum`. */
function extraBytes(sum: number): number {
  return Math.floor(sum / 255) + 1;
}

/** As `Codecs.lz4Compress`: a valid block of literals only. Correct, not small; used where the native codec is missing. */
export function lz4BlockStore(src: Uint8Array, dst: Uint8Array): number {
  const n = src.length;
  let d = 0;
  dst[d++] = n < 15 ? n << 4 : 0xf0;
  if (n >= 15) {
    let rest = n - 15;
    for (; rest >= 255; rest -= 255) dst[d++] = 255;
    dst[d++] = rest;
  }
  dst.set(src, d);
  return d + n;
}

/** xxHash, 32 bits, seed 0 (xxhash_spec.md): the checksum of LZ4 frames. */

const P1 = 0x9e3779b1;
const P2 = 0x85ebca77;
const P3 = 0xc2b2ae3d;
const P4 = 0x27d4eb2f;
const P5 = 0x165667b1;

const rotl = (x: number, n: number): number => (x << n) | (x >>> (32 - n));
const round = (acc: number, lane: number): number => Math.imul(rotl((acc + Math.imul(lane, P2)) | 0, 13), P1);
const word = (b: Uint8Array, i: number): number =>
  b[i]! | (b[i + 1]! << 8) | (b[i + 2]! << 16) | (b[i + 3]! << 24);

/** Hash of bytes[start, end) as uint32. */
export function xxh32(bytes: Uint8Array, start = 0, end = bytes.length): number {
  let p = start;
  let h = P5 | 0;
  if (end - start >= 16) {
    let a = (P1 + P2) | 0;
    let b = P2 | 0;
    let c = 0;
    let d = -P1 | 0;
    for (const stop = end - 16; p <= stop; p += 16) {
      a = round(a, word(bytes, p));
      b = round(b, word(bytes, p + 4));
      c = round(c, word(bytes, p + 8));
      d = round(d, word(bytes, p + 12));
    }
    h = (rotl(a, 1) + rotl(b, 7) + rotl(c, 12) + rotl(d, 18)) | 0;
  }
  h = (h + (end - start)) | 0;
  for (; p + 4 <= end; p += 4) h = Math.imul(rotl((h + Math.imul(word(bytes, p), P3)) | 0, 17), P4);
  for (; p < end; p++) h = Math.imul(rotl((h + Math.imul(bytes[p]!, P5)) | 0, 11), P1);
  h = Math.imul(h ^ (h >>> 15), P2);
  h = Math.imul(h ^ (h >>> 13), P3);
  return (h ^ (h >>> 16)) >>> 0;
}
